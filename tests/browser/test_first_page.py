"""The sentence on top of the first page, in Chromium, without Python: what one guesses, clicks, moves and shares."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from front_end import prepared
from test_lite import served

from lite import first_page
from tests.test_smollm_sentences import HEADS, STORED, weights
from tools.record_sentences import SENTENCES, STOPS


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first page")
    entry = {"name": "00_start_here", "title": "start here", "text": "", "read": "r", "run": "u", "runs_here": True}
    first_page.write(folder, [entry], {"read": "r", "run": "u", "teach": "t"}, None)
    with served(folder) as address:
        yield address


def opened(page, address):
    page.emulate_media(reduced_motion="reduce")
    page.goto(address)
    page.locator("#chips button").first.wait_for()
    return page


def row(page):
    """Return the weights below the words; one below 0.05 has no number."""
    return [float(text or 0) for text in page.locator("#ribbons-picture .weight").all_text_contents()]


def same(shown, weights):
    return all(abs(a - b) <= 0.0051 if a else b < 0.0501 for a, b in zip(shown, [*weights], strict=False))


def test_at_first_there_is_a_blank_and_no_verdict(url, new_page):
    page = opened(new_page(1366, 768), url)
    assert page.locator("#ask button").all_inner_texts() == ["Mary", "John"]
    assert page.inner_text("#blank") == "" and not page.locator("#answer").is_visible()
    assert page.locator("#ribbons-picture path[d^=M]").count() == 0 and row(page) == [0] * 14
    assert not page.locator("#d_k").is_visible()
    page.locator("#ribbons-picture .word").nth(3).click()  # nothing is told before a guess
    assert row(page) == [0] * 14
    page.locator("#ask button", has_text="John").click()
    assert page.inner_text("#verdict") == "You said John. The model says Mary."
    assert page.inner_text("#blank") == "Mary" and page.inner_text("#next-words li").split() == ["Mary", "0.92"]
    assert same(row(page), weights(STORED["mary"], 25, 5, 13))
    everything = ("#chips", "#stage", "#line", "#head-says", "#d_k", "#slider-says", "#heads")
    assert all(box["y"] + box["height"] <= 768 for box in (page.locator(s).bounding_box() for s in everything))


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda s: s["id"])
def test_the_script_shows_the_weights_that_python_reads(url, new_page, sentence):
    page, item = new_page(1366, 768), STORED[sentence["id"]]
    opened(page, url)
    last = len(item["words"]) - 1
    for layer, head in HEADS:
        for query in {1, last // 2, last}:
            page.goto(f"{url}/#s={sentence['id']}&l={layer}&h={head}&q={query}&d=64")
            page.locator(f"#ribbons-picture .word:nth-of-type({query + 2}).query").wait_for()
            page.wait_for_function("h => location.hash.includes(h)", arg=f"l={layer}&h={head}&q={query}")
            assert same(row(page), weights(item, layer, head, query)), (layer, head, query)
    for link in page.locator("#line [data-head]").all():
        layer, head, query, key = map(int, link.get_attribute("data-head").split(","))
        assert link.inner_text() == f"{weights(item, layer, head, query)[key]:.2f}"
    page.locator("#line [data-head]").first.click()
    layer, head = page.locator("#line [data-head]").first.get_attribute("data-head").split(",")[:2]
    assert page.inner_text("#head-says").startswith(f"Layer {layer}, head {head}: ")


def test_a_chip_a_word_a_head_and_both_ways_of_the_slider(url, new_page):
    page = opened(new_page(1366, 768), url)
    page.locator("#chips button", has_text="A list that repeats").click()
    page.locator("#blank", has_text="blue").wait_for()  # nothing to guess: it is told at once
    assert "In French" in page.inner_text("#chips") and page.locator("#way").is_hidden()
    page.locator("#ribbons-picture .word").nth(3).click()
    assert same(row(page), weights(STORED["red"], 18, 6, 3))
    assert "at words that are neither first nor itself" in page.inner_text("#grid-says")
    page.locator("#ribbons-picture .word").nth(2).hover()
    assert page.inner_text("#grid-says").startswith("How much the second red looks at green")
    page.mouse.move(1, 1)
    box = page.locator("#heads").bounding_box()
    page.mouse.move(box["x"] + box["width"] * (16 + 16.5 * 19.5) / 602, box["y"] + box["height"] * 10 / 200)
    assert page.inner_text("#head-says").startswith("Layer 17, head 1: ")
    page.mouse.click(box["x"] + box["width"] * (16 + 16.5 * 19.5) / 602, box["y"] + box["height"] * 10 / 200)
    page.mouse.move(1, 1)
    assert same(row(page), weights(STORED["red"], 17, 1, 3)) and "l=17&h=1&q=3" in page.url
    page.get_by_role("slider").press("Home")
    assert same(row(page), weights(STORED["red"], 17, 1, 3, d_k=1)) and "gather" in page.inner_text("#slider-says")

    page.locator("#chips button", has_text="Who gets the drink?").click()
    page.locator("#ask button", has_text="Mary").click()
    page.get_by_role("button", name="the whole model").click()
    for key, stop in (("Home", 0), ("End", len(STOPS) - 1)):
        page.get_by_role("slider").press(key)
        words, stored = STORED["mary"]["stops"][stop]
        assert page.inner_text("#blank") == words[0][0].strip() != "Mary"
        assert same(row(page), stored) and page.inner_text("#slider-says").startswith("All heads divide")
    page.locator("#heads").press("ArrowRight")  # a head by keyboard: the slider is that head's again
    assert page.inner_text("#slider-says").startswith("This head divides")
    assert same(row(page), weights(STORED["mary"], 26, 5, 13, d_k=1024))
    page.get_by_role("button", name="Show the brightest").click()
    assert page.inner_text("#blank") == "Mary"


def test_a_link_brings_the_state_back_and_keeps_what_was_typed(url, new_page):
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="John").click()
    page.get_by_role("slider").press("ArrowRight")
    page.locator("#ribbons-picture .word").nth(9).click()
    other = opened(new_page(1366, 768), page.url)
    other.locator("#blank.said").wait_for()
    for part in ("#head-says", "#slider-says", "#grid-says", "#d_k-value"):
        assert other.inner_text(part) == page.inner_text(part)
    assert row(other) == row(page) and "john" not in page.url.lower()
    page.evaluate("navigator.clipboard.writeText = undefined")
    page.get_by_role("button", name="Copy link").click()
    page.locator("#copied", has_text="#s=mary&l=25&h=5&q=9&d=128").wait_for()
    damaged = opened(new_page(), f"{url}/#s=mary&l=99&h=x&q=-3&d=7")
    damaged.locator("#blank.said").wait_for()
    assert damaged.inner_text("#head-says") == "Layer 30, head 1: When has only itself to look at."


@pytest.mark.parametrize(("button", "starts"), [("Save picture", b"<svg"), ("Save as PNG", b"\x89PNG")])
def test_the_picture_is_saved(url, new_page, button, starts):
    page = opened(new_page(1366, 768), url)
    page.locator("#ask button", has_text="Mary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    content = download.value.path().read_bytes()
    assert content.startswith(starts) and len(content) > 3000
    if starts == b"<svg":
        assert b'class="word query"' in content and re.search(rb"fill: ?rgb", content)
    else:
        assert (int.from_bytes(content[16:20]), int.from_bytes(content[20:24])) == (1200, 630)


def test_without_a_network_the_first_sentence_works_and_others_say_so(url, new_page):
    page = opened(new_page(390, 844), url)
    page.context.set_offline(True)
    page.locator("#ask button", has_text="Mary").click()
    page.locator("#chips button", has_text="In French").click()
    page.locator("#slider-says", has_text="could not be fetched").wait_for()
    assert page.inner_text("#blank") == "Mary"


@pytest.mark.parametrize(("width", "scheme"), [(1366, "light"), (1366, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_nothing_and_a_phone_shows_all(url, chromium, width, scheme):
    context = chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = opened(context.new_page(), url)
    for state in ("asked", "told"):
        found = Axe().run(page).response["violations"]
        assert [(rule["id"], node["html"][:100]) for rule in found for node in rule["nodes"]] == [], state
        if state == "asked":
            page.locator("#ask button", has_text="Mary").click()
    prepared(page).reload()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [page.locator(f"#{id}").bounding_box() for id in ("stage", "heads", "chips")]
    assert all(box["x"] >= -4 and box["x"] + box["width"] <= width + 4 for box in boxes)
    context.close()


def test_nothing_is_asked_of_another_host_and_it_is_light(url, new_page):
    page, asked, sizes = new_page(), [], []
    page.context.on("request", lambda request: asked.append(request.url))
    page.context.on("response", lambda response: sizes.append(int(response.headers.get("content-length", 0))))
    opened(page, url)
    page.wait_for_load_state("networkidle")
    assert all(request.startswith((url, "data:")) for request in asked)
    assert 60_000 < sum(sizes) < 120_000, sizes
