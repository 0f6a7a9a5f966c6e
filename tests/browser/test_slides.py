"""Files that need no network: every slide of every deck fits 1024 x 768, and every page to read is alive."""

import html
import json
import re

import nbformat
import pytest
from front_end import ends_of, prepared, serious, slider_of

from attncourse.catalogue import EXERCISES, PREDICTIONS, RECALLS
from attncourse.engine.exercise import Number
from attnlib.colours import rgb, token
from attnlib.live import frames
from tools import reading, slides
from tools.licence import LICENCE_LINK
from tools.series import SERIES, find_notebook

EVERY = PREDICTIONS | {
    f"{name}-{i}": question for name, recall in RECALLS.items() for i, question in enumerate(recall.questions, 1)
}
NUMBERS = {name for name, exercise in EXERCISES.items() if isinstance(exercise, Number)}


def watched(page):
    """Return a list that fills with errors of the page, and with requests for what is not part of the file."""
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith(("file:", "data:")) else problems.append(request.url)
    )
    return problems


def answered(page):
    """Press each option of all questions of a page; each reply is that of `predict`. Return the questions' names."""
    found = page.evaluate("ask.replies()")
    for name, replies in found.items():
        wanted = {one: re.sub("<.*?>", "", EVERY[name](one)._repr_html_()) for one in EVERY[name].options}
        assert {one: words.split() for one, words in replies.items()} == {
            one: html.unescape(words).split() for one, words in wanted.items()
        }
    for name, replies in page.evaluate("ask.verdicts()").items():
        *known, (_, other), (_, none) = replies
        for numbers, words in known:
            numbers = json.loads(numbers)
            verdict = EXERCISES[name](numbers if len(numbers) > 1 else numbers[0])
            assert words.split() == html.unescape(re.sub("<.*?>", "", verdict._repr_html_())).split()
        title = EXERCISES[name].heading
        assert EXERCISES[name].right is not None and known[0][1].startswith(f"✓ {title}")
        assert other.startswith(f"✗ {title}: wrongYours is -7, 77.") and "Give me a hint (1 of" in other
        assert none.startswith(f"… {title}: not read“no idea” is no number")
        found[name] = known
    return {*found}


@pytest.mark.parametrize("path", [notebook.built for notebook in SERIES], ids=lambda path: path.stem)
def test_every_slide_fits(new_page, tmp_path, path):
    file = tmp_path / "deck.html"
    file.write_text(slides.deck(path), encoding="utf-8")
    page = prepared(new_page())
    problems = watched(page)
    page.goto(file.as_uri())
    page.wait_for_selector(".reveal.ready")
    found = page.evaluate("ask.slides()")
    assert problems == [] and found["faults"] == []
    assert page.evaluate("ask.borrowed()") == []
    assert found["smallest"]["code"] >= 20 and found["smallest"]["prose"] >= 24
    revived = page.locator("[data-attnlib] .attnlib-live").count()
    assert revived == page.locator("[data-attnlib]").count() and (revived or path.stem != find_notebook("scaling").name)
    headings = [c for c in nbformat.read(path, as_version=4).cells if c.source.startswith("#")]
    assert found["count"] >= len(headings)
    assert page.locator(f'a[href="{LICENCE_LINK}"]').count() == 1
    assert "Solution" not in found["text"] and "not tried yet" not in found["text"]
    asked = page.locator(".attnlib-fills:has(span)")
    asked.evaluate_all("all => all.forEach((one) => one.querySelector('button').click())")
    assert page.evaluate("ask.slides()")["faults"] == [] and asked.count() == 0  # nor is an answer cut


@pytest.mark.parametrize("how", ["", "?print-pdf"], ids=["first slide", "all slides"])
def test_axe_finds_nothing_serious_in_a_deck(new_page, tmp_path, how):
    path = find_notebook("multi_head").built
    file = tmp_path / "deck.html"
    file.write_text(slides.deck(path), encoding="utf-8")
    page = new_page()
    page.goto(file.as_uri() + how)
    page.wait_for_selector(".reveal.ready")
    assert serious(page) == []


@pytest.mark.parametrize(
    "given, told",
    [
        ("2", "✓"),
        ("6/3", "✓"),
        ("(36*1/3*1/3)**0.5", "✓"),
        ("np.sqrt(36/9)", "✓"),
        ("√4", "✓"),
        ("[2]", "✓"),
        ("36/9", "the root was left out"),
        ("36*x", "no number"),
        ("abc", "“abc” is no number"),
        ("", "not tried yet"),
        ("2,0", "Read as 2."),
        ("2,0", "✓"),
        ("1,75", "Yours is 1.75."),
        ("[0,75]", "Yours is 0.75."),
        ("1,000", "can be 1000 or 1.000"),
        ("1,000,000", "Yours is 1000000."),
        ("2,000.5", "Yours is 2000.5."),
        ("2, 0", "Yours is 2, 0."),
        ("3", "Yours is 3."),
        ("3,4641", "Read as 3.4641."),
    ],
)
def test_a_number_may_be_a_formula(new_page, tmp_path, given, told, notebook="scaling", name="uniform_divisor"):
    path = find_notebook(notebook).built
    reading.write({path.stem: nbformat.read(path, as_version=4)}, tmp_path)
    page = new_page(1024, 768)
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    form = page.locator(f"form[data-name={name}]")
    form.locator("input").fill(given)
    form.get_by_role("button", name="Check").click()
    assert told in form.locator(".attnlib-reply").inner_text()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("0,8849 0,0360", "Read as 0.8849, 0.036."),
        ("0,8849; 0,0360", "✓"),
        ("[0,8849, 0,0360]", "✓"),
        ("0.8849,0.0360", "✓"),
        ("1,0", "Yours is 1, 0."),
        ("1,000 2,000", "can be 1000 or 1.000"),
    ],
)
def test_several_numbers_may_have_decimal_commas(new_page, tmp_path, given, told):
    test_a_number_may_be_a_formula(new_page, tmp_path, given, told, "by_hand", "output_of_she")


def moves_by_its_controls(still):
    if not (knobs := frames.unpack_stops(still.get_attribute("data-attnlib"))["knobs"]):
        return  # a picture alone
    slider_of(still)  # which answers the question that a view asks first
    controls = still.locator("[aria-label]:is(input, [role=radiogroup])").all()
    assert [one.get_attribute("aria-label") for one in controls] == [knob["name"] for knob in knobs]
    before, after = [still.locator(".attnlib-live").inner_html() for _ in ends_of(still)]
    assert before != after


@pytest.mark.parametrize("path", [notebook.built for notebook in SERIES], ids=lambda path: path.stem)
def test_every_page_to_read_is_alive(new_page, tmp_path, path):
    reading.write({path.stem: nbformat.read(path, as_version=4)}, tmp_path)
    assert (tmp_path / f"{path.stem}.html").stat().st_size < 1_500_000
    page = prepared(new_page(1024, 768))
    problems = watched(page)
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    called = re.findall(
        r"^predict\.", "\n".join(c.source for c in nbformat.read(path, as_version=4).cells), re.MULTILINE
    )
    assert bool(answered(page)) == bool(called) and page.locator("text=No choice made yet").count() == 0
    assert len(page.locator("meta[name=description]").get_attribute("content")) > 40
    assert page.locator("link[rel=icon]").get_attribute("href").startswith("data:image/svg+xml")
    answers = page.locator("details:has(.output)")
    assert answers.count() or path.stem == SERIES[0].name
    assert page.locator("details[open]").count() == 0
    answers.evaluate_all("all => all.forEach(one => one.open = true)")
    stills = page.locator("[data-attnlib]")
    for still in stills.all():
        moves_by_its_controls(still)
    assert page.locator(f'a[href="{LICENCE_LINK}"]').count() == 1
    assert problems == [] and stills.count()
    turns = page.locator("nav.bar a")
    assert {turns.nth(i).get_attribute("rel") for i in range(turns.count())} <= {"prev", "next"}
    assert all(len(turns.nth(i).get_attribute("aria-label")) > 12 for i in range(turns.count()))
    assert page.evaluate("ask.first()") < 900
    assert page.evaluate("ask.fitsAcross()") and page.evaluate("ask.borrowed()") == []
    sizes = page.evaluate("ask.sizes()")
    assert {*sizes} <= {f"{size}px" for size in (13, 16, 20, 25, 31, 49)}, sizes
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(300)
    assert page.evaluate("ask.unlit()") == []
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 794, "height": 1123})  # A4: what is narrower has a phone's rules
    assert page.evaluate("ask.onPaper()") == []


NARROW = ["start_here", "by_hand", "scaling", "multi_head", "one_token_at_a_time", "todays_head", "less_to_keep"]


@pytest.mark.parametrize(
    ("slug", "width"),
    [
        *((slug, 390) for slug in [*NARROW, "bug_clinic", "a_real_model", "two_texts"]),
        *((slug, 768) for slug in NARROW[::2]),
    ],
)
def test_no_picture_is_wider_than_its_frame_and_letters_have_13_pixels(new_page, tmp_path, slug, width):
    path = find_notebook(slug).built
    reading.write({path.stem: nbformat.read(path, as_version=4)}, tmp_path)
    page = prepared(new_page(width, 844))
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    page.locator(".attnlib-asks button:first-of-type").evaluate_all("all => all.forEach(one => one.click())")
    page.wait_for_timeout(800)
    assert page.evaluate("ask.cut()") == [] and page.evaluate("ask.foldsInARow()") == 0
    assert width > 700 or page.evaluate("ask.wrapped()") == []
    if slug == "one_token_at_a_time":  # a picture that is too large for its page loses the last controls
        assert page.locator("[data-attnlib] input[type=range]").count() == 3


def test_on_a_phone_sliders_stay_in_sight_names_are_whole_and_no_word_speaks_of_other_controls(new_page, tmp_path):
    found = {}
    for slug in ("start_here", "scaling", "multi_head"):
        path = find_notebook(slug).built
        reading.write({path.stem: nbformat.read(path, as_version=4)}, tmp_path)
        page = prepared(new_page(390, 844))
        page.goto((tmp_path / f"{path.stem}.html").as_uri())
        page.locator(".attnlib-asks button:first-of-type").evaluate_all("all => all.forEach(one => one.click())")
        page.wait_for_timeout(500)
        found[slug] = page, page.locator(".attnlib-still")
    assert found["start_here"][0].get_by_text("On this page").first.is_hidden()
    assert found["multi_head"][1].nth(1).evaluate("ask.slidersAtItsEnd") == [0, 32, 64, 96]
    assert found["scaling"][1].nth(1).bounding_box()["height"] <= 844
    names = {name for name in found["multi_head"][1].first.evaluate("ask.seen") if "gave" in name}
    assert names >= {"John gave", "Mary gave"} and not any("…" in name for name in names)


@pytest.mark.parametrize("width", [768, 1366])
def test_a_page_has_two_right_edges_and_its_contents_are_at_hand(new_page, tmp_path, width, slug="scaling"):
    """Of the text, and of all that is wider; a picture ends at one of them, or is narrower than the text."""
    path = find_notebook(slug).built
    reading.write({path.stem: nbformat.read(path, as_version=4)}, tmp_path)
    page = prepared(new_page(width, 768))
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    page.wait_for_function("ask.allAlive()")
    page.wait_for_timeout(500)
    fold, contents = page.locator(".toc summary"), page.locator(".toc a")
    assert fold.is_visible() == (width < 1081) != contents.first.is_visible()
    if width < 1081:
        fold.click()
        contents.nth(1).click()
        assert contents.first.is_hidden() and page.evaluate("scrollY") > 500
    ends = {round(box["right"]) for box in page.evaluate("ask.boxes('main > .code, .card, main .attnlib-control')")}
    text = max(box["right"] for box in page.evaluate("ask.boxes('main > p')"))
    assert len(ends) == 1 and text < min(ends)
    for still in page.locator(".attnlib-still:not(:has(svg[style*='width:min('])), .attnlib-figure").all():
        right = max(box["right"] for box in still.evaluate("one => [...one.querySelectorAll('svg')].map(ask.box)"))
        assert right <= text + 1 or min(ends) - 3 < right <= min(ends), right


@pytest.mark.parametrize("width", [390, 1366])
def test_a_guess_has_its_sentence_below_it_and_its_answer_moves_nothing(new_page, tmp_path, width):
    path = find_notebook("start_here").built
    reading.write({path.stem: nbformat.read(path, as_version=4)}, tmp_path)
    page = prepared(new_page(width, 768))
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    still, below = page.locator(".attnlib-still").first, page.locator("h2").first
    word, asked = still.locator("text:text-is('When'):visible").first.bounding_box(), still.locator(".attnlib-asks")
    button, before = asked.bounding_box(), below.bounding_box()["y"]
    assert 0 < word["y"] - button["y"] - button["height"] < 240
    asked.locator("button").first.click(trial=True)  # nothing lies over it
    asked.locator("button").first.evaluate("one => one.click()")
    page.wait_for_timeout(1500)
    assert asked.count() == 0 or asked.is_hidden()
    now = still.locator("text:text-is('When'):visible").first.bounding_box()
    assert abs(page.evaluate("scrollY") + now["y"] - word["y"]) < 4  # the words stay, and so does the text below
    if width > 700:  # which on a phone is far out of sight: no room is kept for the answer there
        assert abs(page.evaluate("scrollY") + below.bounding_box()["y"] - before) < 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("slug", ["scaling", "multi_head"])
def test_numbers_in_cells_can_be_read_at_every_stop_and_weights_have_one_orange(new_page, tmp_path, slug, scheme):
    path = find_notebook(slug).built
    reading.write({path.stem: nbformat.read(path, as_version=4)}, tmp_path)
    page = prepared(new_page(1366, 768))
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    page.wait_for_function("ask.allAlive()")
    page.locator(".attnlib-asks button:first-of-type").evaluate_all("all => all.forEach(one => one.click())")
    weight = "rgb({}, {}, {})".format(*rgb(token("weight", scheme == "dark")))
    cells, bars = page.evaluate("ask.oranges()")
    assert weight in cells and bars == [weight]
    for slider in page.locator("[data-attnlib] input[type=range]").all():
        for stop in range(int(slider.get_attribute("max")) + 1):
            slider.evaluate("ask.moveTo", stop)
            assert page.evaluate("ask.dim()") == []


def test_on_paper_code_is_no_output_and_short_lists_stay_whole(new_page, tmp_path):
    path = find_notebook("by_hand").built
    reading.write({path.stem: nbformat.read(path, as_version=4)}, tmp_path)
    page = new_page(800, 1100)
    page.emulate_media(media="print")
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    style = "(one, name) => getComputedStyle(one)[name]"
    frames = [page.locator(f"main {kind}").first.evaluate(style, "borderLeftWidth") for kind in (".code", ".printed")]
    assert frames == ["4px", "0px"]
    assert page.locator("main ul").first.evaluate(style, "breakInside") == "avoid"
    assert page.locator(".attnlib-asked").first.evaluate(style, "breakInside") == "avoid"
    assert page.locator(".card .code + .code").first.evaluate(style, "breakBefore") == "avoid"
    brief = page.locator("main > .code:has(+ .output > .brief:only-child)")  # its output stays below it
    assert brief.first.evaluate(style, "breakAfter") == "avoid"
    option = page.locator("[role=radio]").first  # an option is a line of a list, no button
    assert (option.evaluate(style, "borderTopWidth"), option.evaluate(style, "minHeight")) == ("0px", "0px")
    assert "counter(pages)" in page.content()


@pytest.mark.parametrize("slug", ["by_hand", "vectorized", "scaling", "multi_head"])
def test_on_paper_answers_stand_at_the_end_controls_are_values_and_no_picture_takes_half_a_page(
    new_page, tmp_path, slug
):
    path = find_notebook(slug).built
    reading.write({path.stem: nbformat.read(path, as_version=4)}, tmp_path)
    page = prepared(new_page(588, 994))  # A4 without its margins
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    page.wait_for_function("ask.allAlive()")
    page.emulate_media(media="print")
    before = page.locator("main").inner_text()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    solved, notes = page.locator(".solved details"), page.locator("main .see")
    assert solved.count() == notes.count() > 4 and page.locator(".solved").is_visible()
    assert all(one.is_visible() for one in page.locator(".solved details > :last-child").all())
    said = notes.all_inner_texts()
    assert [int(words.rpartition(" ")[2]) for words in said] == [*range(1, len(said) + 1)] and "Solution" in str(said)
    assert page.locator(".attnlib-control input:visible, .attnlib-fills:not(.attnlib-asks):visible").count() == 0
    assert page.locator(".attnlib-control output:visible").count() and page.locator("text=Nothing is kept").count() == 0
    assert page.locator("main [visibility=hidden][data-stage='1']").count() == 0  # what asks first shows its answer
    assert page.locator(".attnlib-asks button:visible").count() == 0
    tall = [box["height"] for box in page.evaluate("ask.boxes('.attnlib-still, .attnlib-figure')")]
    assert max(tall) < 0.45 * 994, tall
    ends = [box["right"] for box in page.evaluate("ask.boxes('main > p, .code, .card, .attnlib-live svg')")]
    assert max(ends) < 588 + 55 and sum(586 < end < 589 for end in ends) > len(ends) / 3  # one right edge
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert solved.count() == notes.count() == 0 and page.locator("main").inner_text() == before


@pytest.mark.parametrize("slug", ["bug_clinic", "fixed_state"])
def test_on_letter_and_a4_pictures_leave_no_holes_at_the_feet_of_sheets(new_page, tmp_path, slug):
    path = find_notebook(slug).built
    reading.write({path.stem: nbformat.read(path, as_version=4)}, tmp_path)
    page = prepared(new_page(1366, 900))
    page.goto((tmp_path / f"{path.stem}.html").as_uri())
    page.wait_for_function("ask.allAlive()")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for sheet in page.evaluate("SHEETS"):
        *feet, _ = page.evaluate("ask.feet", sheet)
        assert len(feet) > 5 and max(feet) < 0.14, (sheet, feet)


@pytest.mark.parametrize("path", [notebook.built for notebook in SERIES], ids=lambda path: path.stem)
def test_on_a_phone_no_word_of_a_figure_covers_another_or_leaves_its_box(new_page, tmp_path, path):
    reading.write({path.stem: nbformat.read(path, as_version=4)}, tmp_path)
    for width in (390, 360):
        page = prepared(new_page(width, 844))
        page.goto((tmp_path / f"{path.stem}.html").as_uri())
        page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
        page.wait_for_timeout(400)
        assert page.evaluate("ask.collisions()") == [] and page.evaluate("ask.fitsAcross()")


@pytest.mark.parametrize("size", [(390, 844), (1366, 768)], ids=lambda size: f"{size[0]}")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_a_page_to_read(new_page, tmp_path, scheme, size):
    """Nor when each question is answered; and it fits a phone."""
    name = find_notebook("scaling").name
    reading.write({name: nbformat.read(find_notebook("scaling").built, as_version=4)}, tmp_path)
    page = prepared(new_page(*size))
    page.emulate_media(color_scheme=scheme)
    page.goto((tmp_path / f"{name}.html").as_uri())
    page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
    for option in (":first-child", ":nth-last-child(2)"):
        page.locator(f".attnlib-asked [role=radio]{option}").evaluate_all("all => all.forEach((one) => one.click())")
        page.wait_for_timeout(300)
        assert serious(page) == [] and page.evaluate("ask.fitsAcross()")
    right, wrong = (page.locator(f".attnlib-{kind}").first for kind in ("yes", "no"))
    seen = [one.evaluate("one => getComputedStyle(one, '::after').content[1]") for one in (right, wrong)]
    assert seen == ["✓", "✗"]
