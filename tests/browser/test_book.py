"""The book: every page loads from a folder alone, is described, fits a phone; sliders move, and the search finds.

It is built here by .venv-lite, as `make book` builds it, and opened from its files.
"""

import io
import re
import subprocess
from itertools import pairwise
from urllib.parse import quote

import nbformat
import numpy as np
import pytest
from bs4 import BeautifulSoup
from front_end import BIN, ROOT, ends_of, prepared, serious, slider_of
from PIL import Image
from test_lite import served
from test_slides import EVERY, NUMBERS, answered, watched

from attnlib.colours import contrast, luminance, rgb, token
from tools.links import address
from tools.series import SERIES, find_notebook

NAMES = [notebook.name for notebook in SERIES]
BESIDE = [
    "index",
    "questions",
    "glossary",
    "api",
    "references",
    "teaching",
    "checks",
    "diagnose",
    "watch",
    "assistants",
    "symptoms",
    "class",
    "grading",
]


@pytest.fixture(scope="session")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book") / "a folder"
    command = [str(ROOT / ".venv-lite" / BIN / "python"), "-m", "tools.book", "--to", str(folder)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert result.returncode == 0 and not result.stderr, result.stderr
    return folder


def opened(new_page, book, name, width=390):
    """Return a page of the book with its problems, and with all that is folded open."""
    page = prepared(new_page(width, 844))
    problems = watched(page)
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto((book / f"{name}.html").as_uri())
    page.wait_for_function("ask.allAlive()")
    page.evaluate("ask.unfold()")
    page.evaluate("new Promise((laid) => requestAnimationFrame(() => requestAnimationFrame(laid)))")  # what was folded
    return page, problems


@pytest.mark.parametrize("name", [*NAMES, *BESIDE])
def test_a_page_stands_alone_on_a_phone(new_page, book, name):
    page, problems = opened(new_page, book, name)
    assert problems == []
    assert page.evaluate("ask.fitsAcross()")
    assert page.evaluate("ask.borrowed()") == []
    assert page.evaluate("ask.formulasAreDrawn()")
    assert "$" not in page.evaluate("ask.prose()")
    assert page.evaluate("ask.imagesAreShown()")
    assert page.locator("article svg[role=img]:not(:has(> title), [aria-label])").count() == 0
    assert page.locator(".attnlib-run").count() == (name in NAMES)
    assert page.locator(".table-wrapper.attnlib-goes-on, .output.stream").count() == 0  # a table folds
    assert page.locator(".attnlib-run a").count() == 2 * (name in NAMES and address() is not None)  # nothing runs here


@pytest.mark.parametrize("width", [390, 768, 1366, 1920])
def test_the_front_page_has_a_picture_a_first_step_and_the_course(new_page, book, width):
    page, problems = opened(new_page, book, "index", width)
    picture, begin = page.locator(".attnlib-sentence svg:visible"), page.locator("article a.btn.main")
    assert picture.count() == 1 and problems == [] and page.evaluate("ask.fitsAcross()")
    assert "Mary" in picture.text_content() and page.evaluate("ask.tooSmall()") == []
    assert begin.get_attribute("href") == f"{NAMES[0]}.html"
    assert begin.evaluate("part => part.getBoundingClientRect().bottom") < 844  # in sight without a scroll
    rows = page.locator(".part li a")
    assert rows.evaluate_all("all => all.map((a) => a.getAttribute('href'))") == [f"{name}.html" for name in NAMES]
    assert page.locator(".part").count() == len({notebook.part for notebook in SERIES if notebook.part})
    sizes = page.locator(".part li .glyph").evaluate_all("all => all.map((g) => [g.clientWidth, g.clientHeight])")
    assert sizes == [[72, 44]] * len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_pictures_are_described_and_folds_are_folded(book, name):
    """As the file has it, before any script: each picture says what the notebook says of it."""
    cells = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code" and cell.id != "setup"]
    said = [o.metadata["image/png"]["alt"] for cell in code for o in cell.outputs if "image/png" in o.get("data", {})]
    page = BeautifulSoup((book / f"{name}.html").read_text("utf-8"), "html.parser").article
    for reply in page("template"):  # of an answer that nobody has given yet
        reply.decompose()
    described = [picture.get("alt") or picture["aria-label"] for picture in page.select("img, .attnlib-figure")]
    assert described == said and all(len(alt) > 20 for alt in said)
    assert not any(words in str(page) for words in ("attnlib-note", "No description", "not tried yet"))
    for sign in page.select("math:not([display=block])"):  # what follows a formula stays on its line
        after = sign.next_sibling if isinstance(sign.next_sibling, str) else ""
        assert sign.parent.get("class") == ["glue"] or not re.match("[.,:;?!)]", after), after
    hidden = [cell.metadata.get("jupyter", {}) for cell in code]
    to_predict = [cell for cell, one in zip(code, hidden, strict=True) if one.get("outputs_hidden") and cell.outputs]
    behind = page.select("details.below-input:not([open]), details.attnlib-answer:not([open]) .cell_output")
    assert len(behind) >= len(to_predict)  # what the answer is seen in goes with it
    folds = page.select("details.above-input:not([open])")
    folded = [cell.source for cell, one in zip(code, hidden, strict=True) if one.get("source_hidden")]
    assert "\n".join(fold.select_one("pre").get_text() for fold in folds).split() == "\n".join(folded).split()
    silent = "div.cell:has(> details.above-input):not(:has(.cell_output))"
    assert not page.select(f"{silent} + div.cell > details.above-input")  # one line to click, not two below each other


def test_every_letter_of_every_question_gets_the_reply_of_the_notebook(new_page, book):
    page, asked = prepared(new_page(1366, 768)), set()
    problems = watched(page)
    for name in NAMES:
        page.goto((book / f"{name}.html").as_uri())
        asked |= answered(page)
        assert page.locator(".attnlib-answer[open]").count() == 0
    assert asked == {*EVERY, *NUMBERS}
    assert problems == []


def test_a_question_is_answered_by_keys(new_page, book):
    """Arrows only move on, so that all options are heard before one is chosen; Enter chooses; Tab leads to the end."""
    page, _ = opened(new_page, book, find_notebook("scaling").name, 1366)
    page.reload()
    box = page.locator('[data-name="score_std"]')
    options, fold = box.get_by_role("radio"), page.locator("#answer-score-std")
    options.first.focus()
    page.keyboard.press("ArrowDown")
    assert options.nth(1).evaluate("option => option === document.activeElement")
    assert box.locator(".attnlib-reply").inner_text() == "" and fold.get_attribute("open") is None
    page.keyboard.press("Enter")
    assert box.locator(".attnlib-reply").inner_text().startswith("✓ b is right")
    assert fold.locator("table").is_visible() and fold.get_by_text("65.18").is_visible()
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert not fold.locator("table").is_visible() and box.locator(".attnlib-reply").inner_text() == ""
    assert options.first.evaluate("option => option === document.activeElement")
    assert page.get_by_text("Here are both knobs").or_(page.get_by_text("Here\nare both knobs")).count() <= 1


@pytest.mark.parametrize("width", [390, 1366])
@pytest.mark.parametrize(
    "name", [find_notebook("start_here").name, find_notebook("scaling").name, find_notebook("it_speaks").name]
)
def test_a_slider_moves_a_picture(new_page, book, name, width):
    page, problems = opened(new_page, book, name, width)
    for still in page.locator("[data-attnlib]").all():
        before, after = [still.locator(".attnlib-live").evaluate("ask.seen") for _ in ends_of(still)]
        assert before != after
    assert page.locator("[data-attnlib]").count() and problems == []


@pytest.mark.parametrize("width", [390, 1024, 1280, 1366])
@pytest.mark.parametrize("name", NAMES)
def test_words_in_pictures_can_be_read(new_page, book, name, width):
    page, _ = opened(new_page, book, name, width)
    assert page.evaluate("ask.tooSmall()") == [] and page.evaluate("ask.clipped()") == []
    assert page.evaluate("ask.fitsAcross()")
    assert page.evaluate("ask.loose().length") == 0
    side = page.evaluate("ask.boxes('.sidebar-drawer')")[0]["right"]
    assert all(box["left"] >= side + 4 for box in page.evaluate("ask.boxes('[data-attnlib]')"))
    assert width < 1024 or page.locator(".attnlib-live.attnlib-goes-on").count() == 0  # no picture is cut there


def test_a_narrow_page_has_its_own_layouts(new_page, book):
    """Words stand below each other, and each part of a call fits the page."""
    page, _ = opened(new_page, book, find_notebook("start_here").name)
    ribbons, _, call = page.locator("[data-attnlib]").all()
    down, across = (ribbons.locator(f"div.attnlib-{name}").first for name in ("down", "across"))
    assert down.is_visible() and not across.is_visible()
    assert all(part.bounding_box()["width"] <= 358 for part in [ribbons, *call.locator(".attnlib-parts svg").all()])
    assert slider_of(ribbons).bounding_box()["width"] > 140  # beside its name: two sliders take a line each
    page.set_viewport_size({"width": 1024, "height": 768})
    assert across.is_visible() and not down.is_visible()


def test_what_goes_on_beyond_its_box_fades_until_its_end_is_seen(new_page, book):
    page, _ = opened(new_page, book, find_notebook("program_a_head").name)
    figure, going_on = page.locator(".attnlib-figure").nth(1), page.locator(".attnlib-goes-on")
    assert "gradient" in figure.evaluate("ask.masked")
    assert going_on.count() and page.locator(".attnlib-goes-on:not([tabindex])").count() == 0
    figure.evaluate("ask.toItsEnd")
    figure.and_(page.locator(":not(.attnlib-goes-on)")).wait_for()
    assert figure.evaluate("ask.masked") == "none"
    page.set_viewport_size({"width": 1366, "height": 768})
    page.locator(".attnlib-figure.attnlib-goes-on").first.wait_for(state="detached")


@pytest.mark.parametrize("name", [*(find_notebook(slug).name for slug in ("scaling", "casebook")), "watch", "class"])
def test_on_paper_nothing_is_cut_and_nothing_around_the_page_is_printed(new_page, book, name):
    page, _ = opened(new_page, book, name, 1366)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 643, "height": 980})  # A4 within its margins
    assert page.evaluate("ask.fitsAcross()")
    around = ".sidebar-drawer, .toc-drawer, .mobile-header, .skip-to-content, .related-pages, .attnlib-run"
    assert not any(part.is_visible() for part in page.locator(around).all())
    boxes = page.locator("article :is(pre, .table-wrapper, .cell_output, .attnlib-formula):visible")
    assert boxes.evaluate_all("all => all.filter((box) => box.scrollWidth > box.clientWidth + 1).length") == 0
    assert not page.locator("article summary:visible").evaluate_all("all => all.filter((s) => !s.parentElement.open)")


def test_the_mark_of_what_goes_on_is_not_why_it_does(new_page, book):
    page, _ = opened(new_page, book, find_notebook("scaling").name)
    plane = page.locator(".attnlib-live:has(.attnlib-parts)").last
    for width, goes_on in ((390, 0), (375, 1), (390, 0)):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(300)
        assert plane.and_(page.locator(".attnlib-goes-on")).count() == goes_on


def test_the_search_finds_softmax(new_page, book):
    page, problems = opened(new_page, book, "index", 1366)
    page.get_by_role("textbox", name="Search").fill("softmax")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")
    found = [link.get_attribute("href").split("?")[0] for link in page.locator("#search-results li > a").all()]
    assert any("api.html#attnlib.softmax" in link for link in found), found
    assert {f"{name}.html" for name in NAMES[:4]} & {link.split("#")[0] for link in found}
    assert all("#" in link for link in found)  # a section, or the first place of the word
    assert problems == []


# What a reader types, a page that has it, and what its excerpt says: text rather than code, a formula as one types it.
EXCERPTS = {
    "sqrt d_k": ("scaling", "Attention divides its scores by √d_k."),
    "kv cache": ("one_token_at_a_time", "A KV cache uses that."),
    "causal": ("masks", "This mask is causal: each word"),
    "NaN": ("vectorized", "inf divided by a sum that is inf is nan"),
    "nan_to_num": ("casebook", ".nan_to_num() after"),
    "rope": ("todays_head", "rotary position embedding, RoPE"),
}


@pytest.mark.parametrize("asked", EXCERPTS)
def test_a_result_of_the_search_shows_a_paragraph_and_leads_to_its_section(new_page, book, asked):
    lesson, words = EXCERPTS[asked]
    with served(book) as url:  # from a file a browser reads no other file
        page = new_page(1366, 768)
        page.goto(f"{url}/search.html?q={quote(asked)}")
        found = page.locator(f"#search-results li:has(> a[href^='{find_notebook(lesson).name}'])")
        found.locator("p.context", has_text=words).wait_for(timeout=30_000)
        shown = page.locator("#search-results p.context").all_inner_texts()
        first = page.locator("#search-results li > a").first.get_attribute("href")
        assert first.startswith(find_notebook(lesson).name) or asked != "sqrt d_k"
        glued = r"(?!\bnn)[a-z]{2}[.?!][A-Z][a-z]"  # blocks have a space between
        assert not [text for text in shown if re.search(glued, text)] and all(len(text) < 330 for text in shown)
        section = found.locator("p.context[data-at]")
        if section.count():
            place = section.get_attribute("data-at")
            assert found.locator("a").get_attribute("href").endswith(f"#{place}")
            found.locator("a").click()
            page.wait_for_function("scrollY > 300")
            assert page.locator(f"section#{place}").count() == 1


@pytest.mark.parametrize("name", [*NAMES, *BESIDE, "search"])
def test_a_page_says_what_it_is_about_and_has_a_picture_for_those_who_link_to_it(book, name):
    page = BeautifulSoup((book / f"{name}.html").read_text("utf-8"), "html.parser")
    told = {tag["name"]: tag["content"] for tag in page.select("meta[name][property]")}
    assert len(told["description"]) > 40 and told["og:description"] == told["description"]
    assert "$" not in told["description"] and "\\" not in told["description"]
    assert told["og:title"].lower() in page.title.text.lower() and len(page.title.text) > 10
    picture = told["og:image"][told["og:image"].index("_static") :]
    assert (book / picture).read_bytes()[:4] == b"\x89PNG"
    assert (book / page.select_one("link[rel~=icon]")["href"]).exists()
    assert not page.select("summary[aria-label]")  # it would be read in place of its words


def test_next_leads_through_the_notebooks_in_order(new_page, book):
    page, _ = opened(new_page, book, NAMES[0])
    seen = [NAMES[0]]
    while not seen[-1].startswith(find_notebook("long_texts").number):
        page.locator("a.next-page").click()
        seen.append(page.url.rpartition("/")[2].partition(".")[0])
    assert seen == [name for name in NAMES if name <= seen[-1]]


def test_figures_take_the_colours_of_the_theme(new_page, book):
    page, _ = opened(new_page, book, find_notebook("masks").name, 1366)
    toggle, body = page.locator(".theme-toggle:visible").first, page.locator("body")
    words = page.locator(".attnlib-figure [class=attnlib-word]").first
    inks = [words.evaluate("ask.ink")]
    while body.get_attribute("data-theme") != "dark":  # auto, light and dark take turns
        toggle.click()
    inks.append(words.evaluate("ask.ink"))
    wanted = ["rgb({}, {}, {})".format(*rgb(token("ink", dark))) for dark in (False, True)]
    assert [(fill, halo) for fill, _, halo in inks] == [(ink, "none") for ink in wanted]


def test_a_large_number_of_a_table_stands_out_most_in_either_theme(new_page, book):
    page, _ = opened(new_page, book, find_notebook("long_texts").name, 1366)
    toggle, body = page.locator(".theme-toggle:visible").first, page.locator("body")
    for theme, sign in (("light", -1), ("dark", 1)):
        while body.get_attribute("data-theme") != theme:
            toggle.click()
        first = page.locator("table:has(td[style*='background:#'])").first  # each table has a scale of its own
        cells = first.locator("td[style*='background:#']").evaluate_all("ask.tints")
        bright = [sum(ground) for _, *ground in sorted(cells)]
        assert len(set(bright)) > 5 and bright == sorted(bright, key=lambda x: sign * x)


def test_in_the_dark_no_masked_cell_box_or_rail_is_brighter_than_what_it_leaves_free(new_page, book):
    """Each is painted as its token says, in figures and live views alike."""
    names = ("masks", "casebook", "train_and_look")  # a live view, a figure with blocked cells, one with boxes
    pages = {name: opened(new_page, book, find_notebook(name).name, 1366)[0] for name in names}
    rail = pages["masks"].locator(".attnlib-control > input").first
    pages["masks"].get_by_role("slider", name="length").press("Home")  # no query has a key then
    live, figure = ".attnlib-live [{}^='var(--{},']".format, ".attnlib-figure path[style*='fill:var(--{},']".format
    parts = {
        "paper": [live("fill", "paper"), f"{figure('paper')}:has(+ path)", f"{figure('paper')}:has(+ text)"],
        "edge": [live("stroke", "edge"), f"{figure('paper')} + path"],
        "ink": [live("fill", "ink"), None, f"{figure('paper')} + text"],
        "sunk": [live("fill", "sunk"), figure("sunk")],
    }
    for theme in ("light", "dark"):
        for page in pages.values():
            while page.locator("body").get_attribute("data-theme") != theme:
                page.locator(".theme-toggle:visible").first.click()
        # Nor has a scale a ground of its own: what is 0 beside a map is 0 in it.
        assert pages["casebook"].locator(".attnlib-figure path[style*='fill:#fff']").count() == 0
        shades = {}
        for name, found in parts.items():
            seen = [
                pages[n].locator(part).evaluate_all("ask.painted")
                for n, part in zip(names, found, strict=False)
                if part
            ]
            assert all(seen) and len({shade for one in seen for shade in one}) == 1, (theme, name, seen)
            shades[name] = f"#{bytes(map(int, seen[0][0].split(','))).hex()}"
        assert shades == {name: token(name, theme == "dark") for name in parts}
        assert contrast(shades["paper"], shades["edge"]) > 2.2 and contrast(shades["paper"], shades["ink"]) > 4.5
        drawn = np.asarray(Image.open(io.BytesIO(rail.screenshot())).convert("L")).astype(int)
        filled, rest, around = (drawn[y, x] for y, x in ((len(drawn) // 2, 5), (len(drawn) // 2, -5), (0, 0)))
        assert abs(filled - around) > abs(rest - around)
    assert luminance(shades["paper"]) < luminance(shades["sunk"])


@pytest.mark.parametrize("name", [find_notebook("pytorch_module").name, find_notebook("casebook").name])
def test_the_columns_of_a_figure_stand_below_each_other_on_a_phone(new_page, book, name):
    """And beside each other where there is room for letters that can be read."""
    page, _ = opened(new_page, book, name)
    figures = page.locator(".attnlib-figure:has(> svg + svg)")
    boxes = [[column.bounding_box() for column in figure.locator("> svg").all()] for figure in figures.all()]
    apart = [
        b["y"] >= a["y"] + a["height"] - 1 or b["x"] >= a["x"] + a["width"] - 1
        for columns in boxes
        for a, b in pairwise(columns)
    ]
    assert apart and all(apart)
    page.set_viewport_size({"width": 1366, "height": 768})
    beside = [len({box["y"] for box in figure.evaluate("ask.places")}) == 1 for figure in figures.all()]
    assert any(beside) and beside == [figure.evaluate("ask.hasRoom") for figure in figures.all()]


@pytest.mark.parametrize("name", [find_notebook("pytorch_module").name, find_notebook("casebook").name])
def test_a_column_names_its_rows_where_it_begins_a_line(new_page, book, name):
    page, _ = opened(new_page, book, name)
    for width, below in ((390, True), (1366, False), (390, True)):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(300)
        begins, shows = zip(*page.evaluate("ask.namesOfRows()"), strict=True)
        assert begins == shows and any(begins) == below
        for scales in (
            figure.evaluate("ask.alone") for figure in page.locator(".attnlib-figure:has([data-rows])").all()
        ):
            assert not scales or max(scales) - min(scales) < 0.01  # of maps to compare none is larger


def test_the_ring_of_the_last_head_is_on_a_phone(new_page, book):
    page, _ = opened(new_page, book, find_notebook("it_speaks").name)
    view = page.locator(".attnlib-still:has(.attnlib-layers)")
    view.get_by_role("slider", name="layer").press("End")
    ring, picture = (view.locator(part).first.bounding_box() for part in ("rect[stroke*='--paper']", ".attnlib-live"))
    assert picture["x"] < ring["x"] and ring["x"] + ring["width"] <= picture["x"] + picture["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(chromium, book, scheme):
    context = chromium.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page, found = prepared(context.new_page()), []
    for name in [*NAMES, *BESIDE, "search"]:
        page.goto((book / f"{name}.html").as_uri())
        page.evaluate("ask.unfold()")
        page.evaluate("ask.answer()")
        assert not page.evaluate("ask.fades()")  # what is half faded in has too little contrast
        page.wait_for_timeout(700)  # what is wider than its box takes the focus after a frame; an answer fades in
        found += [(name, *fault) for fault in serious(page, options={"preload": False})]
    context.close()
    assert found == []
