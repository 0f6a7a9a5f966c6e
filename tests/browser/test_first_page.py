"""The sentence on top of the first page, in Chromium, without Python: what one guesses, clicks, moves and shares.

With the model it is tested in test_decoder.py, which needs a site. Here a worker of a few lines stands for it where the
page alone is tested: loading, cancelling, reading, and what fails.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from front_end import prepared
from test_lite import served

from attnlib import svg
from lite import first_page
from tests.test_smollm_sentences import HEADS, STORED, weights
from tools.record_sentences import SENTENCES, STOPS
from tools.series import find_notebook

ENTRY = {
    "name": find_notebook("start_here").name,
    "title": "start",
    "text": "",
    "read": "r",
    "run": "u",
    "runs_here": True,
    "picture": "",
}
SCRIPTS = Path(__file__).with_name("first_page.js")
PLACES = {"pyodide": "p", "lock": "l", "wheel": "w", "script": "s"}
WORKER = Path(__file__).with_name("worker.js").read_text("utf-8")


def made(folder, writes):
    first_page.write(folder, [ENTRY], {"read": "r", "run": "u", "teach": "t", "decks": "d"}, writes)
    (folder / "write").mkdir(exist_ok=True)
    (folder / "write" / "worker.js").write_text(WORKER, "utf-8")
    return folder


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The page of a site without a model."""
    with served(made(tmp_path_factory.mktemp("first page"), None)) as address:
        yield address


@pytest.fixture(scope="module")
def with_model(tmp_path_factory):
    """Return a function that gives the page's address; the worker's script may fail or never end."""
    folder = tmp_path_factory.mktemp("with model")
    with served(folder) as address:

        def page(script="s"):
            made(folder, {**PLACES, "script": script})
            return address

        yield page


def opened(page, address):
    page.emulate_media(reduced_motion="reduce")
    page.add_init_script(path=SCRIPTS)
    page.goto(address)
    page.locator("#chips button").first.wait_for()
    return page


def guess(page):
    """Answer what the page asks before it shows anything."""
    page.locator("#ask button").first.click()


def row(page):
    """Return the weights below the words; one below 0.05 has no number."""
    return [float(text or 0) for text in page.locator("#ribbons-picture .weight").all_text_contents()]


def same(shown, weights):
    return all(abs(a - b) <= 0.0051 if a else b < 0.0501 for a, b in zip(shown, [*weights], strict=False))


def test_at_first_there_is_a_blank_and_no_verdict(with_model, new_page):
    page = opened(new_page(1366, 768), with_model())
    assert page.locator("#ask button").all_inner_texts() == ["Mary", "John"]
    assert page.inner_text("#blank") == "" and not page.locator("#answer").is_visible()
    assert page.locator("#ribbons-picture path[d^=M]").count() == 0 and row(page) == [0] * 14
    assert not page.locator("#d_k").is_visible()
    page.locator("#ribbons-picture .word").nth(3).click()  # nothing is told before a guess
    assert row(page) == [0] * 14
    page.locator("#ask button", has_text="John").click()
    assert page.inner_text("#verdict") == "You said John. The model says Mary."
    assert page.inner_text("#blank") == "Mary" and page.inner_text("#next-words li").split() == ["Mary", "0.92"]
    assert same(row(page), weights(STORED["mary"], 24, 1, 13))


def test_every_sentence_asks_first_and_begins_as_trained_above_the_fold(with_model, new_page):
    page = opened(new_page(1366, 768), with_model())
    for sentence in SENTENCES:
        page.locator(f"#chips [data-id={sentence['id']}]").click()
        page.locator("#ask p", has_text=sentence["ask"]).wait_for()
        assert page.locator("#ask button").all_inner_texts() == sentence["guess"] and page.inner_text("#blank") == ""
        assert page.locator("#ribbons-picture path[d^=M]").count() == 0 and not any(row(page))
        assert f"#s={sentence['id']}&" in page.url or sentence is SENTENCES[0]  # a reload brings it again
        assert page.evaluate("first.inside('#ask', '#next')"), sentence["id"]
        page.locator("#ask button").last.click()
        said = STORED[sentence["id"]]["next"][0][0].strip()
        piece = ", the first piece of noir" if said == "no" else ""
        assert page.inner_text("#verdict") == f"You said {sentence['guess'][1]}. The model says {said}{piece}."
        if sentence is not SENTENCES[0]:  # the mistake before is over, and that is said
            assert "begins like this, with nothing broken" in page.inner_text("#slider-says")
        assert page.locator("#mistakes [aria-pressed=true]").count() == 0
        boxes = (page.locator(part).bounding_box() for part in ("#line", "#slider-says", "#goes-on", "#copy", "#heads"))
        assert all(box["y"] + box["height"] <= 768 for box in boxes), sentence["id"]
        page.get_by_role("button", name="no mask").click()


def test_a_sentence_that_comes_late_replaces_nothing_newer(with_model, new_page):
    page, held = new_page(1366, 768), []
    page.route("**/sentences/*.json", lambda route: held.append(route))
    opened(page, with_model())
    page.locator("#chips button", has_text="In French").click()
    page.locator("#typed").fill(OWN)  # typed while the sentence is on its way
    wait_for(page, lambda: len(held) == 1)
    held.pop().continue_()
    page.locator("#ask button", has_text="noir").wait_for()
    assert page.input_value("#typed") == OWN and page.locator("#typed.other").count() == 1
    page.locator("#chips button", has_text="A line of code").click()
    wait_for(page, lambda: len(held) == 1)
    page.locator("#chips button", has_text="Who gets the drink?").click()  # pressed later, and here at once
    with page.expect_response("**/add.json"):
        held.pop().continue_()
    page.wait_for_timeout(200)
    assert page.inner_text("#ask p") == "Who gets the drink?" and page.input_value("#typed") == SENTENCES[0]["text"]


def wait_for(page, true):
    for _ in range(100):
        if true():
            return
        page.wait_for_timeout(50)
    raise AssertionError("nothing was asked for in 5 s")


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda s: s["id"])
def test_the_script_shows_the_weights_that_python_reads(url, new_page, sentence):
    page, item = new_page(1366, 768), STORED[sentence["id"]]
    opened(page, url)
    last = len(item["words"]) - 1
    for layer, head in HEADS:
        page.goto(f"{url}/#s={sentence['id']}&l={layer}&h={head}&q={last}&d=64")
        page.locator(f"#chips [data-id={sentence['id']}][aria-pressed=true]").wait_for()
        if (layer, head) == HEADS[0]:
            guess(page)  # once a sentence
        page.wait_for_function("h => location.hash.includes(h)", arg=f"l={layer}&h={head}&q={last}")
        for query, shown in enumerate(page.evaluate(EVERY_WORD)):
            assert same([float(text or 0) for text in shown], weights(item, layer, head, query)), (layer, head, query)
    layer, head, _ = item["start"]
    page.goto(f"{url}/#s={sentence['id']}&l={layer}&h={head}&q={last}&d=64")
    page.wait_for_function("h => location.hash.includes(h)", arg=f"l={layer}&h={head}&q={last}")
    assert drawn_shares(page) == pytest.approx(weights(item, layer, head, last), abs=0.006)
    for link in page.locator("#line [data-head]").all():
        layer, head, query, key = map(int, link.get_attribute("data-head").split(","))
        assert link.inner_text() == f"{weights(item, layer, head, query)[key]:.2f}"
    page.locator("#line [data-head]").first.click()
    layer, head = page.locator("#line [data-head]").first.get_attribute("data-head").split(",")[:2]
    assert page.inner_text("#head-says").startswith(f"Layer {layer}, head {head}: ")


def test_heads_of_the_second_word_are_told_by_the_first(url, new_page):
    """There is no word between them."""
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="Mary").click()
    page.locator("#ribbons-picture .word").nth(1).click()
    assert page.inner_text("#grid-says").startswith("How much Mary looks at When")
    bright = "all => Math.max(...all.map((one) => Number(one.getAttribute('opacity'))))"
    assert page.locator("#heads .heat").evaluate_all(bright) > 0.9


# Click each word, and collect the numbers below all words.
EVERY_WORD = "first.everyWord()"


def drawn_shares(page):
    """Return how wide each ribbon is at its query, as a share of 36 pixels: the words' weights."""
    shares = []
    for d in page.locator("#ribbons-picture path").evaluate_all("all => all.map((one) => one.getAttribute('d'))"):
        x = [float(pair.split()[0]) for pair in re.findall(r"-?[\d.]+ -?[\d.]+", d)]
        shares.append(abs(x[0] - x[-1]) / 36 if x else 0)
    return shares


def test_its_picture_is_that_of_the_notebooks(url, new_page):
    """live.ribbons draws with svg.ribbons: the same words, the same shares, the same numbers, the same next words."""
    page, item = opened(new_page(1366, 768), url), STORED["mary"]
    page.locator("#ask button", has_text="Mary").click()
    options = {"nexts": [" Mary"], "verdict": "right"}
    picture = svg.ribbons(item["words"], weights(item, 24, 1, 13), 13, item["next"], **options)
    theirs = dict(re.findall(r"“to” looks at “([^”]+)”: ([\d.]+)", picture))
    ours = page.locator("#ribbons-picture .word").evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert [label.split(",")[0].strip() for label in ours if label[0] != ","][:2] == ["When", "Mary"]
    shares = drawn_shares(page)
    for j, (word, label) in enumerate(zip(item["words"], ours, strict=True)):
        if j < 13 and [w.strip() for w in item["words"]].count(word.strip()) == 1:
            assert shares[j] == pytest.approx(float(theirs[word.strip()]), abs=0.006), label
            assert (
                label.endswith(f"gets {float(theirs[word.strip()]):.2f}") or abs(shares[j] - float(label[-4:])) < 0.01
            )
    for word, p in item["next"][:3]:
        assert f"{word.strip()} {p:.2f}" in page.inner_text("#next-words").replace("\n", " ")


def test_a_chip_a_word_a_head_and_the_slider_of_this_head(url, new_page):
    page = opened(new_page(1366, 768), url)
    page.locator("#chips button", has_text="A list that repeats").click()
    page.locator("#ask button", has_text="green").click()
    assert page.inner_text("#blank") == "blue" and "In French" in page.inner_text("#chips")
    page.locator("#ribbons-picture .word").nth(3).click()
    assert same(row(page), weights(STORED["red"], 18, 6, 3))
    assert "at words between the first and itself" in page.inner_text("#grid-says")
    page.locator("#ribbons-picture .word").nth(2).hover()
    assert page.inner_text("#grid-says").startswith("How much red looks at green")
    page.mouse.move(1, 1)
    box = page.locator("#heads").bounding_box()
    page.mouse.move(box["x"] + box["width"] * (16 + 16.5 * 19.5) / 602, box["y"] + box["height"] * 10 / 200)
    assert page.inner_text("#head-says").startswith("Layer 17, head 1: ")
    page.mouse.click(box["x"] + box["width"] * (16 + 16.5 * 19.5) / 602, box["y"] + box["height"] * 10 / 200)
    page.mouse.move(1, 1)
    assert same(row(page), weights(STORED["red"], 17, 1, 3)) and "l=17&h=1&q=3" in page.url
    others = page.evaluate("first.heats()")
    page.get_by_role("slider").press("Home")
    assert same(row(page), weights(STORED["red"], 17, 1, 3, d_k=1)) and "gather" in page.inner_text("#slider-says")
    changed = [i for i, (a, b) in enumerate(zip(others, page.evaluate("first.heats()"), strict=True)) if a != b]
    assert changed == [16 * 9]  # the grid shows the other heads as trained

    assert page.inner_text("#blank") == "blue"  # of this head alone no word is computed anew
    page.get_by_role("button", name="the whole model").click()
    assert same(row(page), STORED["red"]["stops"][0]["row"])


def test_the_slider_of_the_whole_model_moves_the_next_word(url, new_page):
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="Mary").click()
    page.get_by_role("button", name="the whole model").click()
    for key, stop in (("Home", 0), ("End", len(STOPS) - 1)):
        page.get_by_role("slider").press(key)
        stored = STORED["mary"]["stops"][stop]
        assert page.inner_text("#blank").strip("“”") == stored["next"][0][0].strip() != "Mary"
        assert same(row(page), stored["row"]) and page.inner_text("#slider-says").startswith("All heads divide")
        assert f"{stored['loss']:.2f}, as trained {STORED['mary']['loss']:.2f}" in page.inner_text("#goes-on")
    page.locator("#heads").press("ArrowRight")  # another head is not recorded: nothing changes, and the line says why
    assert same(row(page), stored["row"]) and page.locator("#line.refused").count() == 1
    page.get_by_role("button", name="this head").click()
    page.locator("#heads").press("ArrowRight")
    assert page.inner_text("#slider-says").startswith("This head divides")
    assert same(row(page), weights(STORED["mary"], 25, 1, 13, d_k=1024))
    page.get_by_role("button", name="brightest").click()
    assert page.inner_text("#blank") == "Mary"


def test_it_can_be_broken_and_mended(url, new_page):
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="Mary").click()
    right, item = (row(page), page.inner_text("#goes-on")), STORED["mary"]
    assert "as trained" not in right[1]
    for name, (short, lesson, line) in first_page.MISTAKES.items():
        stored, button = item["mistakes"][name], page.get_by_role("button", name=short, exact=True)
        assert button.get_attribute("title") == f"{line} Notebook {find_notebook(lesson).number}."
        button.click()
        assert (
            button.get_attribute("aria-pressed") == "true"
            and page.locator("#mistakes [aria-pressed=true]").count() == 1
        )
        assert same(row(page), stored["row"]) and page.inner_text("#blank").strip("“”") == stored["next"][0][0].strip()
        assert page.inner_text("#slider-says").startswith(f"{line} Notebook {find_notebook(lesson).number}.")
        assert (
            f"Its loss (surprise) on the sentence: {stored['loss']:.2f}, as trained {item['loss']:.2f}."
            in page.inner_text("#goes-on")
        )
        assert " ".join(stored["writes"].split()) in page.inner_text("#goes-on").replace(" ↵", "")
        assert "as trained" in page.inner_text("#grid-says")
    other = opened(new_page(1366, 768), page.url)  # a link brings a mistake, too
    assert other.inner_text("#ask p").endswith(f"This link breaks the model: {short}.")
    guess(other)
    other.locator("#mistakes [aria-pressed=true]").wait_for()
    assert (row(other), other.inner_text("#goes-on")) == (row(page), page.inner_text("#goes-on"))
    button.click()
    assert (row(page), page.inner_text("#goes-on")) == right


def test_a_mistake_stays_whatever_is_pressed_and_what_was_chosen_comes_back(url, new_page):
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="Mary").click()
    page.locator("#heads").press("ArrowRight")
    page.locator("#ribbons-picture .word").nth(9).click()
    page.get_by_role("slider").press("ArrowLeft")
    chosen = page.url, row(page), page.inner_text("#head-says")
    for other in ("no scale", "no mask", "the whole model"):
        page.get_by_role("button", name=other, exact=True).click()
        assert re.search("recorded for layer 24, head 1 and to alone", page.inner_text("#line")), other
        before = page.url, row(page), page.inner_text("#slider-says")
        for press in (
            lambda: page.locator("#ribbons-picture .word").nth(3).click(force=True),
            lambda: page.locator("#ribbons-picture .word").nth(3).press("Enter"),
            lambda: page.locator("#heads").click(position={"x": 60, "y": 60}),
            page.get_by_role("button", name="brightest").click,
        ):
            press()
            assert page.locator("#line.refused").count() == 1
            page.mouse.move(1, 1)
            assert (page.url, row(page), page.inner_text("#slider-says")) == before, other
        mistake = other != "the whole model"
        assert page.get_by_role("slider").is_disabled() is mistake and "as trained" in page.inner_text("#grid-says")
        assert (page.inner_text("#d_k-value") == "none") is (other == "no scale")
        if mistake:
            page.get_by_role("button", name=other, exact=True).click()
        else:
            page.get_by_role("button", name="this head").click()
        assert (page.url, row(page), page.inner_text("#head-says")) == chosen, other


def test_the_whole_model_at_64_is_as_trained_for_every_head_and_word(url, new_page):
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="Mary").click()
    page.get_by_role("button", name="the whole model").click()
    page.locator("#heads").press("ArrowRight")
    assert page.inner_text("#head-says").startswith("Layer 25, head 1") and page.locator("#line.refused").count() == 0
    page.get_by_role("button", name="the whole model").click()
    page.locator("#ribbons-picture .word").nth(9).click()
    assert page.inner_text("#head-says").startswith("Layer 25, head 1: John")


def test_a_lower_loss_without_a_mask_is_said_to_be_no_merit(url, new_page):
    page = opened(new_page(1366, 768), url)
    for name in ("mary", "add"):
        page.goto(f"{url}/#s={name}&l=1&h=1&w=no+causal+mask")
        page.locator(f"#chips [data-id={name}][aria-pressed=true]").wait_for()
        guess(page)
        lower = STORED[name]["mistakes"]["no causal mask"]["loss"] < STORED[name]["loss"]
        assert ("has seen the answers" in page.inner_text("#goes-on")) is lower is (name == "mary")


def test_a_clicked_word_keeps_its_ribbons_and_nothing_below_moves(url, new_page):
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="Mary").click()
    copy = page.locator("#copy").bounding_box()
    assert copy["y"] + copy["height"] <= 768
    word = page.locator("#ribbons-picture .word").nth(9)
    word.hover()
    assert page.locator("#ribbons-picture .dim").count() == 1
    word.click()
    assert page.locator("#ribbons-picture .dim").count() == 0  # though the mouse is still there
    for j in range(14):
        page.locator("#ribbons-picture .word").nth(j).click()
        assert page.locator("#copy").bounding_box() == copy
        assert page.evaluate("first.cut('#grid-says')") is False, j


def test_kinds_of_heads_can_be_lit(url, new_page):
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="Mary").click()
    for name, kind in first_page.groups().items():
        page.get_by_role("button", name=name, exact=True).click()
        assert page.locator("#heads .of").count() == len(kind["heads"])
        assert page.inner_text("#group-says").startswith(f"{len(kind['heads'])} heads ")
        assert (
            page.locator("#group-says a")
            .get_attribute("href")
            .startswith(f"read/{find_notebook('it_speaks').name}.html#")
        )
    page.get_by_role("button", name=name, exact=True).click()
    assert page.locator("#heads .of").count() == 0


def test_what_a_head_a_layer_and_the_divisor_are_is_said_where_they_first_appear(url, new_page):
    page = opened(new_page(1366, 768), url)
    assert re.search(r"270 heads look back: a head .* 30 layers, .* 9 heads each", page.inner_text("header p"))
    page.locator("#ask button", has_text="Mary").click()
    says = page.inner_text("#slider-says")
    assert "a head compares dk = 64 numbers" in says and "divided by √64 = 8" in says


OWN = "one two three four five six seven"


def load(page, text=OWN):
    page.locator("#typed").fill(text)
    page.get_by_role("button", name="Load the model, 110 MB").click()


def test_ones_own_sentence_is_read_and_everything_works_on_it(with_model, new_page):
    page = opened(new_page(1366, 768), with_model())
    assert page.input_value("#typed") == SENTENCES[0]["text"]
    load(page)
    page.locator("#ribbons-picture .later").first.wait_for()  # words turn dark as they are read
    page.locator("#blank.said", has_text="head").wait_for()
    # It starts at the brightest head: the 42nd, which looks at the second word.
    assert page.inner_text("#head-says").startswith("Layer 5, head 6: seven looks at two with 0.98")
    assert "layer 5, head 6 stands out most" in page.inner_text("#line")
    assert row(page)[1] == 0.98 and page.inner_text("#grid-says").startswith("How much seven looks at two")
    page.locator("#goes-on", has_text="“head on …”").wait_for()
    page.get_by_role("slider").press("Home")  # this head: Python gives its weights at d_k = 1
    page.locator("#head-says", has_text="two with 0.50").wait_for()
    assert page.inner_text("#blank") == "head" and row(page)[:2] == [0.5, 0.5]
    page.locator("#ribbons-picture .word").nth(4).click()
    page.locator("#head-says", has_text="five looks").wait_for()
    page.get_by_role("button", name="the whole model").click()
    page.locator("#blank", has_text="whole").wait_for()
    page.wait_for_function("first.there() === 11")  # the stops fill in
    page.get_by_role("slider").press("ArrowRight")
    assert page.inner_text("#next-words").count("d2") == 1
    page.locator("#goes-on", has_text="7.00, as trained 2.00").wait_for()
    page.get_by_role("button", name="no scale").click()
    page.locator("#blank", has_text="no scale").wait_for()
    page.locator("#ribbons-picture .word").nth(3).click()  # here a mistake is read for all words
    assert "q=3" in page.url and "w=no+scale" in page.url
    page.get_by_role("button", name="no mask").click()
    page.locator("#blank", has_text="no causal mask").wait_for()
    assert "q=6" in page.url and "w=no+causal+mask" in page.url and "t=one+two" in page.url
    page.locator("#next-words button").first.click()  # its next word is written behind the sentence
    page.locator("#ribbons-picture .word").nth(9).wait_for()
    assert page.input_value("#typed") == OWN + " no causal mask"


def test_a_link_brings_ones_own_sentence_back_once_the_model_is_loaded(with_model, url, new_page):
    link = "#t=one+two+three+four+five+six+seven&l=5&h=6&q=4&d=4"
    page = opened(new_page(1366, 768), with_model() + link)
    page.locator("#said", has_text="somebody's own").wait_for()
    assert (
        page.input_value("#typed") == OWN and page.locator("#ribbons-picture .name").all_text_contents() == OWN.split()
    )
    assert not page.locator("#ask").is_visible() and "when the model is loaded" in page.inner_text("#grid-says")
    page.get_by_role("button", name="Load the model").click()
    page.locator("#head-says", has_text="Layer 5, head 6: five looks at two with 0.80").wait_for()
    page.wait_for_function("h => location.hash === h", arg=link)
    other = opened(new_page(1366, 768), url + link)  # a site without a model says so, and shows its own
    other.locator("#said", has_text="no model to read it").wait_for()
    assert other.locator("#own").count() == 0 and other.locator("#ask").is_visible()


def test_loading_shows_how_far_it_is_and_can_be_cancelled(with_model, new_page):
    page = opened(new_page(1366, 768), with_model("never"))
    before = page.locator("#chips").bounding_box()
    load(page)
    page.locator("#said", has_text=re.compile(r"80 of 93 MB loaded\. About \d+ s to go\.")).wait_for()
    assert page.locator("#bar").get_attribute("value") or page.evaluate("first.bar() > 0.7")
    assert page.locator("#chips").bounding_box() == before  # nothing jumps
    page.locator("#ask button", has_text="Mary").click()
    page.get_by_role("button", name="no scale").click()
    assert page.inner_text("#blank") == "the"
    page.locator("#chips button", has_text="In French").click()  # alive meanwhile
    page.locator("#ask button", has_text="noir").click()
    assert page.inner_text("#blank") == "no" and page.input_value("#typed") == OWN  # what is waited for stays
    page.get_by_role("button", name="Cancel").click()
    assert page.inner_text("#said").startswith("Cancelled.") and page.locator("#own[data-state=idle]").count() == 1
    assert page.get_by_role("button", name="Load the model, 110 MB").is_visible()


def test_what_fails_is_said_and_can_be_tried_again(with_model, new_page):
    page = opened(new_page(1366, 768), with_model("fails"))
    load(page, "  ")
    assert page.inner_text("#said").startswith("Type a few words")
    load(page)
    page.locator("#said", has_text="The disk is full.").wait_for()
    assert page.get_by_role("button", name="Load the model, 110 MB").is_visible()
    page = opened(new_page(1366, 768), with_model("away"))
    load(page)
    page.locator("#said", has_text="could not be loaded. Fix: connect").wait_for()
    page.locator("#chips button", has_text="In French").click()
    page.locator("#said", has_text="Write your own").wait_for()
    page = opened(new_page(1366, 768), with_model())
    page.locator("#ask button", has_text="Mary").click()
    load(page, "word " * 40)
    page.locator("#said", has_text="at most 32 tokens").wait_for()
    assert page.inner_text("#blank") == "Mary"  # what was there is there again
    page.locator("#typed").fill("a few words")
    page.get_by_role("button", name="Read it").click()
    page.locator("#blank", has_text="head").wait_for()


def test_enter_loads_nothing_and_a_sentence_that_is_not_read_is_marked(with_model, new_page):
    page = opened(new_page(1366, 768), with_model())
    assert page.locator("#typed.other").count() == 0
    page.locator("#typed").fill(OWN)
    assert page.locator("#typed.other").count() == 1 and page.inner_text("#said").startswith("Not read yet")
    page.locator("#typed").press("Enter")
    assert page.locator("#own[data-state=idle]").count() == 1 and page.evaluate("document.activeElement.id") == "press"
    page.keyboard.press("Enter")
    page.locator("#blank", has_text="head").wait_for()
    assert page.locator("#typed.other").count() == 0
    page.locator("#typed").fill("a few words")
    page.locator("#typed").press("Enter")  # once the model is there, Enter reads
    page.locator("#head-says", has_text="words").wait_for()


def test_a_phone_is_warned_before_it_loads(with_model, new_page):
    page = opened(new_page(390, 844), with_model())
    before = page.locator("#chips").bounding_box()
    load(page, "word " * 24)
    assert page.locator("#chips").bounding_box() == before
    assert "0.7 GB" in page.inner_text("#said") and page.locator("#own[data-state=warned]").count() == 1
    page.locator("#ask button", has_text="Mary").click()  # the choice is open, and the page works
    page.get_by_role("button", name="Load it anyway").click()
    page.locator("#blank", has_text="head").wait_for()
    assert page.locator("#ribbons-picture.stays").count() == 1  # of 24 words, too, it is in view beside the grid
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_more_than_fourteen_words_wrap_into_rows(with_model, new_page):
    page = opened(new_page(1366, 768), with_model())
    words = " ".join(["elephant"] * 30)
    load(page, words)
    page.locator("#blank.said").wait_for()
    boxes = [word.bounding_box() for word in page.locator("#ribbons-picture .word").all()]
    tops = sorted({round(box["y"]) for box in boxes})
    assert len(boxes) == 30 and 2 <= len(tops) <= 3
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 1366 and box["y"] > 140 for box in boxes)
    page.locator("#heads").press("ArrowRight")  # a head that looks at all alike
    shares = page.locator("#ribbons-picture path[d^=M]").count()
    assert shares == 30  # each word gets a ribbon, whichever row it stands in


def test_a_link_brings_the_state_back_and_keeps_what_was_typed(url, new_page):
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="John").click()
    page.get_by_role("slider").press("ArrowRight")
    page.locator("#ribbons-picture .word").nth(9).click()
    other = opened(new_page(1366, 768), page.url)
    assert other.inner_text("#blank") == "" and row(other) == [0] * 14  # a link does not tell the answer
    other.locator("#ask button", has_text="Mary").click()
    for part in ("#head-says", "#slider-says", "#grid-says", "#d_k-value"):
        assert other.inner_text(part) == page.inner_text(part)
    assert row(other) == row(page) and "john" not in page.url.lower()
    other.reload()
    other.locator("#verdict", has_text="You said Mary.").wait_for()  # who has guessed is not asked again
    page.evaluate("navigator.clipboard.writeText = undefined")
    page.get_by_role("button", name="Copy link").click()
    page.locator("#copied", has_text="#s=mary&l=24&h=1&q=9&d=128").wait_for()
    damaged = opened(new_page(), f"{url}/#s=mary&l=99&h=x&q=-3&d=7&w=x")
    guess(damaged)
    assert damaged.inner_text("#head-says") == "Layer 30, head 1: When has only itself to look at."


@pytest.mark.parametrize(("button", "starts"), [("as SVG", b"<svg"), ("Save picture", b"\x89PNG")])
def test_the_picture_is_saved(url, new_page, button, starts):
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="Mary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    content = download.value.path().read_bytes()
    assert content.startswith(starts) and len(content) > 3000
    if starts == b"<svg":
        assert b'class="word query"' in content and re.search(rb"fill: ?rgb", content)
        assert re.search(rb"font-weight=\"650\"[^>]*>Mary</text>", content)  # the answer, where the blank was
    else:
        assert (int.from_bytes(content[16:20]), int.from_bytes(content[20:24])) == (1200, 630)


def test_without_a_network_the_first_sentence_works_and_others_say_so(url, new_page):
    page = opened(new_page(390, 844), url)
    page.context.set_offline(True)
    page.locator("#ask button", has_text="Mary").click()
    page.locator("#chips button", has_text="In French").click()
    page.locator("#said", has_text="could not be fetched").wait_for()
    assert page.inner_text("#blank") == "Mary"


def test_it_moves_only_where_motion_is_welcome(url, new_page):
    ends = {}
    for motion in ("reduce", "no-preference"):
        page = opened(new_page(1366, 768), url)
        page.emulate_media(reduced_motion=motion)
        click = "first.guess()"
        at_once = page.evaluate(f"({click}, first.path(1))")
        page.wait_for_timeout(1200)
        ends[motion] = page.locator("#ribbons-picture path").nth(1).get_attribute("d")
        assert (at_once == ends[motion]) is (motion == "reduce")
    assert ends["reduce"] == ends["no-preference"]


def test_without_storage_it_works(with_model, new_page):
    page = new_page(1366, 768)
    page.add_init_script(path=SCRIPTS)
    page.add_init_script("first.withhold()")
    failed = []
    page.on("pageerror", lambda error: failed.append(error))
    opened(page, with_model())
    page.locator("#ask button", has_text="Mary").click()
    load(page)
    page.locator("#blank", has_text="head").wait_for()
    assert failed == []


@pytest.mark.parametrize(("width", "scheme"), [(1366, "light"), (1366, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_nothing_and_a_phone_shows_all(with_model, chromium, width, scheme):
    url = with_model()
    context = chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = opened(context.new_page(), url)
    for state in ("asked", "told", "broken"):
        found = Axe().run(page).response["violations"]
        assert [(rule["id"], node["html"][:100]) for rule in found for node in rule["nodes"]] == [], state
        if state == "asked":
            page.locator("#ask button", has_text="Mary").click()
            page.get_by_role("button", name="copying").click()
        elif state == "told":
            page.get_by_role("button", name="no mask").click()
    prepared(page).reload()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [page.locator(f"#{id}").bounding_box() for id in ("ribbons-picture", "heads", "chips")]
    assert all(box["x"] >= -4 and box["x"] + box["width"] <= width + 4 for box in boxes)
    context.close()


def test_on_a_phone_slider_and_ribbons_are_in_view_together_and_heads_can_be_touched(url, new_page):
    page, errors = new_page(390, 844), []
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    opened(page, url)
    before = page.locator("#below").bounding_box()["y"]
    page.locator("#ask button", has_text="Mary").click()
    assert page.locator("#below").bounding_box()["y"] == before  # what was reserved is enough
    stage, slider = (page.locator(one).bounding_box() for one in ("#ribbons-picture", "#slider-says"))
    assert slider["y"] + slider["height"] - stage["y"] < 800
    assert page.locator("#heads rect").first.bounding_box()["height"] >= 20
    rows = [page.locator("#heads rect").nth(2 * i).bounding_box()["y"] for i in range(2)]
    assert rows[1] - rows[0] >= 24
    for name, says in (("next layer", "Layer 25, head 1"), ("head before", "Layer 25, head 9")):
        button = page.get_by_role("button", name=name)
        assert min(button.bounding_box()[side] for side in ("width", "height")) >= 44
        button.click()
        assert page.inner_text("#head-says").startswith(says)
    page.mouse.wheel(0, page.evaluate("first.top('#heads')") - 400)
    page.wait_for_function(
        "Math.round(first.top('#ribbons-picture') - scrollY) === 0"
    )  # the ribbons stay beside the heads
    page.locator("#save-svg").focus()
    for _ in range(12):  # what takes the focus is not under them
        page.keyboard.press("Shift+Tab")
        page.wait_for_function("first.covered() <= 0", timeout=5000)  # the page may still scroll
    heights = []
    for key in ["Home"] + ["ArrowRight"] * 10:
        page.get_by_role("slider").press(key)
        heights.append(page.locator("#break").bounding_box()["y"])
    assert len(set(heights)) == 1  # nothing jumps while it is moved
    assert [error for error in errors if "404" not in error] == []  # there is no icon beside this page


def test_a_phone_speaks_of_taps_and_explains_a_mistake_beside_its_button(url, chromium):
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = opened(context.new_page(), url)
    page.locator("#ask button", has_text="Mary").tap()
    assert page.inner_text("#group-says").startswith("Tap a word")
    below = page.evaluate("first.top('#heads')")
    for short, _, line in first_page.MISTAKES.values():
        page.get_by_role("button", name=short, exact=True).tap()
        assert page.inner_text("#break-says").startswith(line)
        assert page.evaluate("first.top('#heads')") == pytest.approx(below, abs=0.1), short
    slider, last = (page.locator(one).bounding_box() for one in ("#d_k", "#ticks span:last-child"))
    assert page.evaluate("first.end('#ticks span:last-child')") <= slider["x"] + slider["width"], last
    context.close()


def test_the_card_of_a_link_is_a_picture_of_its_size(url, new_page, tmp_path):
    page = opened(new_page(), url)
    meta = dict(
        page.locator("meta[property], meta[name]").evaluate_all(
            "all => all.map((m) => [m.getAttribute('property') ?? m.name, m.content])"
        )
    )
    assert len(meta["description"]) > 80 and meta["og:description"] == meta["description"]
    content = page.request.get(f"{url}/{meta['og:image'].rsplit('/', 1)[-1]}").body()
    assert (int.from_bytes(content[16:20]), int.from_bytes(content[20:24])) == (1200, 630)
    assert (meta["og:image:width"], meta["og:image:height"]) == ("1200", "630") and meta["og:image:alt"]


def test_ribbons_stay_apart_when_one_takes_almost_all(url, new_page):
    """At d_k = 1 none is drawn over another: side by side at the query, each within the sum of 36 pixels."""
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="Mary").click()
    for key in ("Home", "End"):
        page.get_by_role("slider").press(key)
        shares = drawn_shares(page)
        assert sum(shares) == pytest.approx(1, abs=0.03)
    gaps = page.evaluate("first.gaps()")
    even = [gap for gap, word in zip(gaps, STORED["mary"]["words"][1:], strict=True) if word.startswith(" ")]
    assert np.ptp(even) < 2.5 and len(even) == 12  # before the comma there is none


def test_nothing_is_asked_of_another_host_and_it_is_light(url, new_page):
    page, asked, sizes = new_page(), [], []
    page.context.on("request", lambda request: asked.append(request.url))
    page.context.on("response", lambda response: sizes.append(int(response.headers.get("content-length", 0))))
    opened(page, url)
    page.wait_for_load_state("networkidle")
    assert all(request.startswith((url, "data:")) for request in asked)
    assert 60_000 < sum(sizes) < 120_000, sizes
