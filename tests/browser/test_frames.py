"""A page without a kernel: every stop of a view's slider shows in Chromium what the kernel would show there."""

import random
import re

import numpy as np
import pytest
from front_end import prepared
from views import KEYS, QUERIES, TEXT, TOKENS, attend, both_maps, one_row, stops, two_sentences, ways

import attnlib as al
import attnlib.examples
from attncourse import smollm
from attnlib import live
from attnlib.live import frames
from attnlib.live import view as parts_of_a_view
from tools.page import SCRIPT, STYLE, tokens

VIEWS = {
    "flow": lambda: live.flow(al.attention_trace(*al.examples.ASYMMETRIC.project())),
    "plane": live.plane,
    "one_row": lambda: one_row(stage=2),
    "saturation": live.saturation,
    "scores": live.scores,
    "masks": live.masks,
    "head_arrows": lambda: live.head_arrows(two_sentences(), ("a", "<b>")),
    "split_heads": lambda: live.split_heads(["<s>", "a & b", "cat"], d_k=2),
    "maps": lambda: both_maps(row=4),
    "sentence": lambda: live.sentence(attend, 'a <b> & "c" d\'s'),
    "compare": lambda: live.compare(
        lambda text, times: (list(text), {"<": al.softmax(times * np.eye(len(text)))}, "<b>n</b>", "a & b"),
        convoy="*AB",
    ),
    "writing": lambda: live.writing(
        lambda tokens: (np.arange(3.0), {"<head> 1": np.full(len(tokens), 1 / len(tokens))}), ["&", "<b>", "."]
    ),
    "ribbons": lambda: live.ribbons(stops()),
    "rotations": live.rotations,
    "tiles": lambda: live.tiles(*TOKENS),
    "keys_map": lambda: live.keys_map(KEYS, QUERIES, tokens=TEXT, row=7),
    "price": lambda: live.price(ways()),
    "speaking": lambda: live.speaking(stops()),
    "bars": lambda: live.weights_view(
        lambda d: {"row": [1 / d, 1 - 1 / d]}, d_k=(1, 64), still=(1, 8), keys=["<", "&"]
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_stop_is_the_kernels(new_page, tmp_path, name):
    view = VIEWS[name]()
    page, problems = opened(new_page(), tmp_path, view)
    every = frames.stops_of(view.sliders[view.main])
    kept = frames.unpack_stops(frames.pack_stops(view))["knobs"][0]
    pictures = [view.draw(**{view.main: value})[0] for label, value in every if label in kept["labels"]]
    slider = page.get_by_role("radiogroup" if "choice" in kept else "slider", name=kept["name"], exact=True)
    assert "choice" in kept or int(slider.input_value()) == kept["at"]
    stops = list(range(len(pictures)))
    random.seed(0)
    assert page.evaluate("ask.wrongSteps", [pictures, [*stops, *random.choices(stops, k=200)]]) == []
    assert slider.count() == 1 and problems == []
    if "choice" in kept:
        return
    slider.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == page.locator("output").first.inner_text() != ""
    assert int(slider.input_value()) == 1 and problems == []


def test_all_controls_move_a_picture_and_a_click_on_a_cell_chooses_it(new_page, tmp_path):
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, 2, 4, 3))
    view = live.flow(al.attention_trace(q, k, v))
    page, problems = opened(new_page(), tmp_path, view)
    sliders = {name: page.get_by_role("slider", name=name, exact=True) for name in ("query", "key", "feature", "head")}
    sliders["head"].press("End")
    target = page.locator('.attnlib-target[data-row="query"][data-column="key"]').last
    box = target.bounding_box()
    page.mouse.click(box["x"] + 2.5 / 4 * box["width"], box["y"] + 3.5 / 4 * box["height"])
    assert [sliders[name].input_value() for name in sliders] == ["3", "2", "0", "1"]
    assert page.get_by_text("resets").count() == 0  # here all combine
    page.evaluate(
        "drawn => document.body.insertAdjacentHTML('beforeend', drawn)",
        f'<div id="kernel">{view.draw(query=3, key=2, head=1)[0]}</div>',
    )
    shown = page.locator(".attnlib-live").inner_html()
    assert shown == page.locator("#kernel").inner_html() and problems == []


def test_a_word_of_the_ribbons_is_chosen_while_the_slider_stands_where_it_stood(new_page, tmp_path):
    view = live.ribbons(smollm.stops("blank"))
    page, problems = opened(new_page(), tmp_path, view)
    page.get_by_role("button", name="Mary").click()
    slider, word = (page.get_by_role("slider", name=name) for name in ("d_k", "query"))

    def shows(**values):
        paths = re.compile(r'<path[^>]* d="([^"]*)"')
        here, kernels = page.locator(".attnlib-live").inner_html(), view.draw(guess=1, **values)[0]
        return paths.findall(here) == paths.findall(kernels)

    slider.press("Home")
    assert shows(d_k=1)
    page.evaluate("ask.settled()")  # what the answer unfolds has come to rest, and nothing moves below the mouse
    box = page.locator('.attnlib-across .attnlib-target[data-row="query"][data-first="9"]').bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert (slider.get_attribute("aria-valuetext"), word.get_attribute("aria-valuetext")) == ("64", "9 “John”")
    assert shows(query=9) and "How much “John” looks at" in page.locator(".attnlib-live").inner_text()
    slider.press("ArrowLeft")
    assert (slider.get_attribute("aria-valuetext"), word.get_attribute("aria-valuetext")) == ("48", "13 “to”")
    assert page.get_by_text("On this page, query resets the controls above it, and they reset query.").is_visible()
    assert shows(d_k=48) and problems == []


def test_a_choice_is_a_row_of_options_by_mouse_and_by_key(new_page, tmp_path):
    view = live.masks(n=4)
    page, problems = opened(new_page(), tmp_path, view)
    options, picture = page.get_by_role("radiogroup", name="mask"), page.locator(".attnlib-live")
    pictures = [view.draw(mask=kind)[0] for kind in ("causal", "padding")]
    options.get_by_text("causal").click()
    assert picture.inner_html() == page.evaluate("ask.written", pictures[0])
    page.keyboard.press("ArrowRight")
    assert options.get_by_role("radio", name="padding").is_checked()
    assert picture.inner_html() == page.evaluate("ask.written", pictures[1]) and problems == []


def test_a_page_fills_a_picture_by_buttons_and_tells_the_arithmetic_of_a_number(new_page, tmp_path):
    page, problems = opened(new_page(), tmp_path, one_row(stage=2))
    picture, told = page.locator("div.attnlib-across"), page.locator(".attnlib-told")
    mixture = picture.locator("g:has(> title)", has_text="0.885 = 0.6461")
    assert mixture.is_hidden() and picture.get_by_text("?", exact=True).filter(visible=True).count()
    button = page.get_by_role("button", name="added")
    button.focus()
    page.keyboard.press("Enter")
    assert mixture.is_visible() and button.get_attribute("aria-pressed") == "true"
    assert not [one for one in picture.get_by_text("?", exact=True).all() if one.is_visible()]
    mixture.click()
    assert told.inner_text() == "who: 0.885 = 0.6461·2 + 0.036·0 + 0.2036·(-2) + 0.1143·0"
    page.get_by_role("slider", name="divide by √d_k").focus()
    page.keyboard.press("End")
    assert told.inner_text().startswith("who: 0.147 = 0.333") and problems == []
    page.get_by_role("button", name="scores").click()
    assert mixture.is_hidden() and picture.get_by_text("?", exact=True).filter(visible=True).count()


def test_an_attribute_that_is_missing_at_a_stop_is_nothing_to_glide_to(new_page, tmp_path):
    """The ground of the word that looks has no opacity of its own: it went to `opacity: null`."""
    page, problems = opened(new_page(), tmp_path, live.ribbons(stops()))
    page.evaluate("ask.keepAnimations()")
    picture = page.locator(".attnlib-across svg").bounding_box()
    for share in (0.1, 0.3, 0.5):
        page.mouse.click(picture["x"] + share * picture["width"], picture["y"] + 0.72 * picture["height"])
    animated = page.evaluate("ask.animations")
    assert len(animated) > 10 and not [one for one in animated if "null" in one] and problems == []


def test_a_page_without_scripts_keeps_the_still(chromium, tmp_path):
    context = chromium.new_context(java_script_enabled=False)
    page, _ = opened(context.new_page(), tmp_path, live.masks(), script=False)
    assert page.locator("text=the still").count() == 1 and page.locator("input").count() == 0
    context.close()


def test_a_page_asks_before_it_answers(chromium, tmp_path):
    context = chromium.new_context(reduced_motion="reduce")
    given = stops()
    page, problems = opened(context.new_page(), tmp_path, live.ribbons({**given, "asks": ("Who?", ["Mary", "John"])}))
    told = page.locator(".attnlib-live")
    assert page.get_by_role("slider").count() == 0 and "says" not in told.inner_text()
    shown = [path for path in page.locator(".attnlib-across path").all() if path.is_visible()]
    assert shown == [] and not re.search(r"\d", told.inner_text())
    page.get_by_role("button", name="John").click()
    slider = page.get_by_role("slider", name="d_k")
    assert "You said John. The model says" in told.inner_text() and "You said Mary" not in told.inner_text()
    assert page.locator(".attnlib-across path").first.is_visible() and page.get_by_role("button").count() == 0
    slider.press("Home")
    assert "You said John. Too sharp" in told.inner_text() and page.evaluate("ask.gliding()") == 0 and problems == []
    context.close()


def opened(page, folder, view, script=True):
    """Return (page, list of errors and requests) of a page from a file, with one view without its kernel."""
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else problems.append(r.url))
    still = f'<div data-attnlib="{frames.pack_stops(view)}">the still</div>'
    file = folder / "page.html"
    file.write_text(f'<meta charset="utf-8"><style>{tokens()}{STYLE}</style>{still}<script>{SCRIPT}</script>', "utf-8")
    (prepared(page) if script else page).goto(file.as_uri())
    if script:
        page.evaluate("window.attnlib")
    return page, problems


def test_a_view_hides_its_still_in_a_front_end_whose_names_nobody_knows(new_page):
    """As VS Code and Colab are: three outputs one after the other. Without its kernel the view gives them back."""
    live_one = f"""<div class="attnlib-view"><div class="attnlib-picture"><div class="attnlib-live" data-chosen="{{}}">
        </div></div><p class="attnlib-readout"></p><style onload="{parts_of_a_view.SCRIPT}"></style></div>"""
    outputs = "".join(
        f"<div><div>{inside}</div></div>" for inside in ("<p id=still>a still</p>", parts_of_a_view.NOTE, live_one)
    )
    page = prepared(new_page())
    page.goto("about:blank")
    page.set_content(f"<div>{parts_of_a_view.NOTE}<p id=other>another cell</p></div><div>{outputs}</div>")
    still, note = page.locator("#still"), page.locator(".attnlib-note")
    still.wait_for(state="hidden")
    assert page.locator("#other").is_visible() and note.first.is_visible() and not note.last.is_visible()
    page.locator(".attnlib-view").evaluate("ask.disconnect")
    still.wait_for()
    assert note.last.is_visible()
