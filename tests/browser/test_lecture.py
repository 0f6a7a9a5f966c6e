"""A deck a plan: it can be read from the last row, needs no network, moves, asks before it answers, and prints."""

import re

import pytest
from front_end import ends_of, prepared, serious, slider_of
from test_slides import watched

from tools import lecture
from tools.licence import LICENCE_LINK
from tools.series import find_notebook

MOST = {"45": 24, "90": 47, "half-day": 80}  # slides at most


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a function from the name of a plan to its file."""
    folder = tmp_path_factory.mktemp("lectures")

    def build(name):
        file = folder / f"{name}.html"
        if not file.exists():
            file.write_text(lecture.deck(name), encoding="utf-8")
        return file.as_uri()

    return build


def opened(page, address):
    problems = watched(page)
    page.goto(address)
    page.wait_for_selector(".reveal.ready")
    return problems


@pytest.mark.parametrize("size", [(1024, 768), (1920, 1080)], ids=lambda size: f"{size[0]}")
@pytest.mark.parametrize("name", MOST)
def test_every_slide_fits_and_can_be_read(new_page, built, name, size):
    page = prepared(new_page(*size))
    problems = opened(page, built(name))
    found = page.evaluate("ask.lecture()")
    assert problems == [] and found["faults"] == []
    assert page.evaluate("ask.borrowed()") == []
    assert found["smallest"]["size"] >= 19.99, found["smallest"]
    assert found["drawn"] >= 17.6  # in a picture, whose letters are measured below
    assert MOST[name] / 2 < found["count"] <= MOST[name]
    assert page.locator(f'a[href="{LICENCE_LINK}"]').count() == 1
    assert page.locator("section .picture").count() > found["count"] / 2


@pytest.mark.parametrize("size", [(1024, 768), (1920, 1080)], ids=lambda size: f"{size[0]}")
def test_a_vote_is_not_smaller_than_its_table(new_page, built, size):
    page = prepared(new_page(*size))
    opened(page, built("half-day"))
    sizes = page.evaluate("ask.votes()")
    assert len(sizes) > 8 and [one for one in sizes if min(one[:2]) < one[2] - 0.5 or min(one) < 24] == []


@pytest.mark.parametrize("name", MOST)
def test_no_slide_tells_what_it_asks(new_page, built, name):
    page = prepared(new_page())
    opened(page, built(name))
    told = page.evaluate("ask.told()")
    given = r"slide \d+: (\(1\.5, 2\.5\)|0\.61)"  # how one gets there, and what changes it, is what these slides ask
    assert [one for one in told if not re.fullmatch(given, one)] == []


@pytest.mark.parametrize("name", MOST)
def test_letters_in_pictures_can_be_read_from_the_last_row(new_page, built, name):
    page = prepared(new_page(1024, 768))
    opened(page, built(name))
    assert page.evaluate("ask.letters()")[0] > 12.9


@pytest.mark.parametrize("name", MOST)
def test_the_views_are_alive(new_page, built, name):
    page = prepared(new_page())
    opened(page, built(name))
    stills = page.locator("section [data-attnlib]")
    assert stills.count() == page.locator("section .attnlib-live").count() >= 3
    for i in range(stills.count()):
        at = stills.nth(i).evaluate("still => Reveal.getSlides().indexOf(still.closest('section'))")
        page.evaluate(f"Reveal.slide({at}, 0, 9)")
        seen = []
        for _ in ends_of(stills.nth(i)):
            seen.append(stills.nth(i).locator(".attnlib-live").inner_html())
            assert page.evaluate("ask.crammed(Reveal.getCurrentSlide())") == []
        assert seen[0] != seen[1]
        stills.nth(i).evaluate("ask.toItsStart")  # where bars may be level
        assert page.evaluate("ask.crammed(Reveal.getCurrentSlide())") == []


@pytest.mark.parametrize("size", [(1024, 768), (1366, 768), (1920, 1080)], ids=lambda size: f"{size[0]}")
def test_the_number_of_a_slide_stands_at_its_right_edge(new_page, built, size):
    page = prepared(new_page(*size))
    opened(page, built("45") + "#/2")
    number, foot = (page.locator(at).bounding_box() for at in (".slide-number", ".present footer p"))
    right = size[0] - number["x"] - number["width"]
    assert 40 < right < 100 and number["x"] > size[0] / 2
    assert abs(number["y"] + number["height"] - foot["y"] - foot["height"]) < 8  # one line


def test_the_answer_comes_with_two_clicks(new_page, built):
    page = new_page()
    opened(page, built("45"))
    slide = page.locator("section:has(.vote)", has_text="The scores of she are 5, 0, 3, 2.")
    page.evaluate("at => Reveal.slide(at)", slide.evaluate("slide => Reveal.getSlides().indexOf(slide)"))
    weight, score = slide.get_by_text("0.84", exact=True), slide.locator("td", has_text=re.compile("^5$"))
    says, right = (slide.locator(name) for name in (".says", "li.custom.visible"))
    assert score.is_visible()  # what is asked stands there
    assert not weight.is_visible() and not says.is_visible() and right.count() == 0
    page.keyboard.press("ArrowRight")
    weight.wait_for()
    assert not says.is_visible() and right.count() == 0
    page.keyboard.press("ArrowRight")
    says.wait_for()
    assert right.inner_text().startswith("c")


def test_words_are_large_where_there_is_room_a_break_ends_at_a_time_and_a_key_is_told(new_page, built):
    page = new_page()
    opened(page, built("half-day"))
    size = "said => +getComputedStyle(said).fontSize.slice(0, -2)"
    titles = ("What you saw", "a test notice")
    found = [page.locator("section", has=page.locator("footer", has_text=title)) for title in titles]
    empty, full = (section.locator(".says, .question") for section in found)
    assert empty.first.evaluate(size) > 35 > full.first.evaluate(size)
    rest = page.locator("section:has(.back)").first
    assert rest.locator(".back").text_content() == ""
    page.evaluate("at => Reveal.slide(at)", rest.evaluate("slide => Reveal.getSlides().indexOf(slide)"))
    assert re.fullmatch(r"Back at \d\d:\d\d", rest.locator(".back").inner_text())
    told = page.locator("section").nth(1).locator(".notes .key")
    assert told.all_text_contents() == ["→ the answer, for nobody", "PageDown out of the view"]


def at_view(page, built, number, fragment=""):
    """Open the view below the title of a notebook, by default without its fragments, and return its slider."""
    opened(page, built("45"))
    foot, view = page.locator("footer", has_text=f"{number} · "), page.locator(".attnlib-live")
    slide = page.locator("section", has=foot).filter(has=view).first
    page.evaluate(f"at => Reveal.slide(at{fragment})", slide.evaluate("slide => Reveal.getSlides().indexOf(slide)"))
    if fragment:
        slider_of(slide)
    return slide.locator("input").first


def test_the_first_view_asks_before_it_answers_and_still_fits(new_page, built):
    page = prepared(new_page(1024, 768))
    slider = at_view(page, built, find_notebook("start_here").number, ", 0, -1")
    assert slider.input_value() == "5" and "You said Mary." in page.locator(".present .attnlib-live").inner_text()
    slider.press("End")
    said = page.locator(".present .attnlib-said p").bounding_box()
    assert said["y"] + said["height"] < 750


@pytest.mark.parametrize("size", [(1366, 768), (1024, 768)], ids=lambda size: f"{size[0]}")
@pytest.mark.parametrize("name", MOST)
def test_a_slide_still_fits_when_its_question_is_answered(new_page, built, name, size):
    page = prepared(new_page(*size))
    opened(page, built(name))
    asks = "all => all.map((one) => Reveal.getSlides().indexOf(one.closest('section')))"
    slides = page.locator(".attnlib-fills > span").evaluate_all(asks)
    assert slides
    for at in slides:
        page.evaluate(f"Reveal.slide({at}, 0, -1)")
        view = page.locator(".present [data-attnlib]")
        view.get_by_role("button").last.click()
        drawn = view.locator("svg:visible").bounding_box()
        assert abs(drawn["x"] - page.locator(".present h2").bounding_box()["x"]) < 9  # one left edge
        for way in view.locator("[type=radio]").all():
            way.check()
            for _ in ends_of(view):
                said = view.locator(".attnlib-said p").bounding_box()
                assert said["y"] + said["height"] < size[1]
                assert view.locator(".attnlib-goes-on").count() == 0  # nothing of it is cut
                assert page.evaluate("ask.crammed(Reveal.getCurrentSlide())") == []


@pytest.mark.parametrize("how", ["click", "drag"])
def test_a_slider_in_use_keeps_its_keys_until_the_slide_turns(new_page, built, how):
    page = new_page()
    slider = at_view(page, built, find_notebook("scaling").number)
    here = page.evaluate("Reveal.getIndices().h")
    page.keyboard.press("PageDown")
    box = slider.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    if how == "drag":
        page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    page.mouse.up()
    seen = []
    for key in ("Home", "End", "ArrowLeft"):
        page.keyboard.press(key)
        seen.append(int(slider.input_value()))
    last = int(slider.get_attribute("max"))
    assert seen == [0, last, last - 1] and page.evaluate("Reveal.getIndices().h") == here
    page.keyboard.press("PageDown")
    assert page.evaluate("Reveal.getIndices().h") == here + 1 and int(slider.input_value()) == last - 1
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("Reveal.getIndices().h") == here
    slider.focus()
    for key in ("g", "3", "Enter"):  # the number of another slide
        page.keyboard.press(key)
    assert page.evaluate("Reveal.getIndices().h") == 2 and int(slider.input_value()) == last - 1


def test_home_and_end_move_a_slider_before_a_click_and_never_turn_slides(new_page, built):
    page = new_page()
    slider = at_view(page, built, find_notebook("scaling").number, ", 0, 9")
    page.evaluate("document.activeElement.blur()")
    here = page.evaluate("Reveal.getIndices().h")
    for key, end in (("End", "max"), ("Home", "min")):
        page.keyboard.press(key)
        assert slider.input_value() == slider.get_attribute(end) and page.evaluate("Reveal.getIndices().h") == here
    page.evaluate("document.activeElement.blur(), Reveal.slide(7)")
    for key in ("End", "Home"):
        page.keyboard.press(key)
        assert page.evaluate("Reveal.getIndices().h") == 7


def test_the_address_fills_the_cover_and_lists_slides(new_page, built):
    page = new_page()
    opened(page, built("45"))
    heads = page.locator("section footer").all_inner_texts()
    assert page.locator("#about").inner_text() == ""
    opened(
        page, built("45") + "?name=Ada Example&course=ML %26 more&date=3 May&at=example.org/course&slides=1-3,6,5,21-"
    )
    assert page.locator("#about").inner_text() == "Ada Example · ML & more · 3 May"
    assert page.locator("section .home ~ p").last.text_content().endswith("Notebooks: example.org/course")
    assert page.locator("section footer").all_inner_texts() == [*heads[:3], heads[5], heads[4], *heads[20:]]
    opened(page, built("45") + "?slides=none")
    assert page.locator("section footer").all_inner_texts() == heads


def test_the_site_has_the_decks_and_a_form_for_each(new_page, tmp_path):
    lecture.write_all(tmp_path / "teach")
    page = new_page()
    problems = watched(page)
    page.goto((tmp_path / "teach" / "index.html").as_uri())
    assert serious(page) == [] and page.locator("form").count() == len(MOST)
    form = page.locator("form").first
    form.get_by_label("Name").fill("Ada Example")
    form.get_by_label("Slides").fill("none")
    assert not form.evaluate("form => form.checkValidity()")
    form.get_by_label("Slides").fill("1-3,21")
    form.get_by_role("button").click()
    page.wait_for_selector(".reveal.ready")
    assert page.evaluate("Reveal.getTotalSlides()") == 4 and page.locator("#about").inner_text() == "Ada Example"
    assert page.locator("section a", has_text="your own sentence").get_attribute("href") == "../"
    assert problems == []


def test_the_window_or_the_address_chooses_the_ratio(new_page, built):
    page = new_page(1024, 768)
    opened(page, built("45"))
    assert page.evaluate("Reveal.getConfig().width") == 1024
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.wait_for_function("Reveal.getConfig().width === 1366")
    opened(page, built("45") + "?ratio=4:3")
    assert page.evaluate("Reveal.getConfig().width") == 1024


def test_exercises_can_be_left_out(new_page, built):
    page = new_page()
    opened(page, built("half-day"))
    everything, exercises = page.evaluate("Reveal.getTotalSlides()"), page.locator("[data-kind=exercise]").count()
    assert exercises > 5
    opened(page, built("half-day") + "?exercises=no")
    assert page.evaluate("Reveal.getTotalSlides()") == everything - exercises


def test_the_speaker_has_notes_and_minutes(new_page, built):
    page = new_page()
    opened(page, built("45") + "#/3")
    with page.expect_popup() as opening:
        page.keyboard.press("s")
    notes = opening.value.locator(".speaker-controls-notes")
    notes.get_by_text("Minutes 4 to 10 of 40").wait_for()
    told = notes.inner_text()
    assert "So far: Attention adds to a word's vector" in told and "this slide to 0:05:10" in told
    assert "Next. Which sum leads bank to (1.5, 2.5) beside money?" in told
    frames = [opening.value.locator(f"#{name}-slide iframe").bounding_box() for name in ("current", "upcoming")]
    assert all(abs(box["width"] / box["height"] - 4 / 3) < 0.05 for box in frames)  # as the room sees them
    opening.value.set_viewport_size({"width": 1366, "height": 700})
    below = opening.value.locator("#upcoming-slide").bounding_box()
    assert below["y"] + below["height"] <= 700 and abs(below["width"] / below["height"] - 4 / 3) < 0.05


def test_the_notes_open_though_a_slider_has_the_keys(new_page, built):
    page = new_page()
    at_view(page, built, find_notebook("scaling").number, ", 0, 9").focus()
    with page.expect_popup(timeout=5000):
        page.keyboard.press("s")


def test_the_window_of_the_speaker_keeps_its_keys(new_page, built):
    page = new_page()
    opened(page, built("45") + "#/0")
    with page.expect_popup() as opening:
        page.keyboard.press("s")
    speaker, here = opening.value, "JSON.stringify([Reveal.getIndices(), Reveal.getProgress()])"
    for name in ("current", "upcoming"):
        speaker.frame_locator(f"#{name}-slide iframe").locator(".reveal").wait_for(state="attached")
    for key in (*["ArrowRight"] * 4, "PageUp", "PageUp", "ArrowRight", "PageDown", " "):
        before = page.evaluate(here)
        speaker.keyboard.press(key)
        page.wait_for_function(f"{here} !== {before!r}")
        speaker.wait_for_timeout(1000)  # the preview goes on to the answer, which moves a slider
        assert speaker.evaluate("document.activeElement.tagName") == "BODY", key


@pytest.mark.parametrize("name", MOST)
def test_notes_fit_the_window_of_the_speaker(new_page, built, name):
    page = new_page()
    opened(page, built(name))
    with page.expect_popup() as opening:
        page.keyboard.press("s")
    speaker = opening.value
    assert speaker.evaluate("[innerWidth, innerHeight]") == [1100, 700]
    for i in range(page.evaluate("Reveal.getTotalSlides()")):
        page.evaluate(f"Reveal.slide({i})")
        told = page.locator("aside.notes").nth(i).evaluate("notes => notes.innerHTML")
        while speaker.locator(".value").inner_html() != told:
            speaker.wait_for_timeout(20)
        box = speaker.locator("#speaker-controls")
        assert box.evaluate("box => box.scrollHeight - box.clientHeight") <= 1, i + 1


def test_what_the_speaker_moves_is_moved_on_the_projector(new_page, built):
    page = new_page()
    opened(page, built("45") + "#/1")
    slide = page.locator("section.present")
    with page.expect_popup() as opening:
        page.keyboard.press("s")
    frame = opening.value.locator("#current-slide iframe")
    window = frame.content_frame.locator("section.present")

    def click(target):  # Playwright clicks beside it: the frame is scaled
        at = target.evaluate("one => one.getBoundingClientRect().toJSON()")
        box, across = frame.bounding_box(), target.evaluate("innerWidth")
        middle = (
            box[side] + (at[side] + at[long] / 2) * box["width"] / across
            for side, long in (("x", "width"), ("y", "height"))
        )
        opening.value.mouse.click(*middle)

    page.evaluate("Reveal.slide(2)")
    window.get_by_text("SmolLM2, layer 24").wait_for()
    page.evaluate("Reveal.slide(1, 0, -1)")
    assert slide.locator("input").count() == 0
    click(window.get_by_role("button", name="Mary"))
    slide.get_by_text("You said Mary. The model says Mary.").wait_for()
    window.get_by_role("slider").first.press("Home")
    slide.get_by_text("You said Mary. Too sharp").wait_for()
    assert slide.get_by_role("slider").first.input_value() == "0"
    click(window.get_by_label("this head"))
    slide.get_by_label("this head").and_(page.locator(":checked")).wait_for()
    slide.get_by_label("the whole model").click()  # and the other way round
    window.get_by_label("the whole model").and_(window.locator(":checked")).wait_for()
    page.keyboard.press("End")
    window.get_by_text("Too pale").first.wait_for(state="attached")
    assert window.get_by_role("slider").first.input_value() == slide.get_by_role("slider").first.input_value() != "0"


@pytest.mark.parametrize("answer", [None, "", "Mary", "John"], ids=["none", "a key", "Mary", "John"])
def test_what_the_room_said_is_said_again_at_the_end(new_page, built, answer):
    page = new_page()
    opened(page, built("45"))
    page.evaluate("Reveal.slide(1, 0, -1)")
    slide = page.locator("section.present")
    if answer:
        slide.get_by_role("button", name=answer).click()
    if answer == "":  # a key shows what the model says, and nothing of a guess; the next one goes on
        page.keyboard.press("ArrowRight")
        slide.locator("svg:visible text:visible", has_text="The model says Mary.").wait_for()
        assert "You said" not in slide.evaluate("slide => slide.innerText")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("Reveal.getIndices().h") == 2
    page.evaluate("Reveal.slide(Reveal.getTotalSlides() - 2)")
    slide = page.locator("section.present")
    said = f"You said {answer}. " if answer else ""
    for verdict in ("The model says Mary.", "Too sharp"):
        slide.locator("svg:visible text:visible", has_text=verdict).wait_for()
        seen = slide.evaluate("slide => slide.innerText")
        assert f"{said}{verdict}" in seen and seen.count("You said") == bool(answer)
        slide.get_by_role("slider").first.press("Home")


@pytest.mark.parametrize("name", MOST)
@pytest.mark.parametrize("ratio, box", [("16:9", "0 0 1025.*? 576"), ("4:3", "0 0 768.*? 576")], ids=["wide", "old"])
def test_it_prints_a_page_a_slide(new_page, built, name, ratio, box):
    page = prepared(new_page())
    opened(page, built(name))
    slides = page.evaluate("Reveal.getTotalSlides()")
    page.goto(f"{built(name)}?print-pdf&ratio={ratio}")
    page.wait_for_function(f"ask.pages() === {slides}")
    assert page.evaluate("ask.cutInPrint()") == 0
    hidden = page.locator(".pdf-page .fragment").evaluate_all(
        "all => all.filter(one => !one.classList.contains('visible'))"
    )
    assert hidden == []
    pdf = page.pdf(prefer_css_page_size=True, print_background=True)
    assert len(re.findall(rb"/Type /Page\b", pdf)) == slides
    assert re.search(box.encode(), pdf)


@pytest.mark.parametrize("how", ["", "?print-pdf"], ids=["first slide", "all slides"])
def test_axe_finds_nothing_serious(new_page, built, how):
    page = new_page()
    opened(page, built("45") + how)
    assert serious(page) == []
