"""The viewer's page in a real browser: what it shows, its keys, models, small screens, and names that mean harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import needs_browser, problems, resize
from hostile_stores import change_group

from s2rm_data.generators.bballs.evaluation.ball_rollouts import PROMPT_STEPS
from s2rm_data.inspection.viewer.answers import Answers
from s2rm_data.inspection.viewer.page import START, write_page
from s2rm_data.store import Store

pytestmark = needs_browser
SECONDS = 60  # that a machine in a hurry elsewhere may take


class Page:
    """What a user does and sees."""

    def __init__(self, driver: Any, url: str) -> None:
        self.driver = driver
        problems(driver)  # of the page before
        resize(driver, 1280, 900)
        driver.get(url)
        self.wait("return document.getElementById('facts').childElementCount > 0")

    def run(self, script: str, *given: Any) -> Any:
        return self.driver.execute_script(script, *given)

    def wait(self, script: str) -> Any:
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, SECONDS, 0.05).until(lambda _: self.run(script))

    def choose(self, name: str, value: Any, event: str = "change") -> None:
        script = "const it = document.getElementById(arguments[0]); it.value = arguments[1];"
        self.run(script + "it.dispatchEvent(new Event(arguments[2], {bubbles: true}))", name, value, event)

    def text(self, name: str) -> str:
        return str(self.run("return document.getElementById(arguments[0]).textContent", name))

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.by import By

        self.driver.find_element(By.ID, "arena").send_keys(*keys)

    def show_battle(self) -> None:
        self.choose("world", "sc2")
        self.wait("return document.querySelectorAll('#details figure').length === 8")

    @property
    def step(self) -> int:
        return int(self.run("return document.getElementById('step').value"))

    def pixels(self, selector: str) -> list[int]:
        """A hash of each canvas that the selector finds."""
        script = """return Array.from(document.querySelectorAll(arguments[0]), (canvas) => {
            const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            return data.reduce((sum, byte) => (sum * 31 + byte) % 1000003, 7);
        })"""
        return list(self.run(script, selector))


@pytest.fixture
def page(driver: Any, url: str) -> Any:
    made = Page(driver, url)
    yield made
    assert problems(driver) == []


def test_a_sequence_is_drawn_with_its_crops_and_energies(page: Page) -> None:
    assert page.text("count") == "of 24" and "balls3" in page.text("facts")
    assert page.run("return performance.getEntriesByName('first picture').length") == 1
    first = page.pixels("#arena")
    assert len(page.pixels("#panels .small canvas")) == 10
    page.choose("step", 6, "input")
    assert page.pixels("#arena") != first
    assert page.text("where") == "frame 6 of 11"


def test_the_arena_shows_exactly_the_pixels_of_the_frame(page: Page, store: Store) -> None:
    """With all other layers off, the middle of each cell of the canvas is on where the frame is."""
    page.choose("step", 4, "input")
    for box in (1, 2, 3):
        page.run("document.querySelectorAll('#layers input')[arguments[0]].click()", box)
    seen = page.run("""const canvas = document.getElementById('arena'), cell = canvas.width / 48;
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, found = [];
        const middle = (index) => Math.floor((index + 0.5) * cell);
        for (let row = 0; row < 48; row++) for (let column = 0; column < 48; column++)
            found.push(data[4 * (middle(row) * canvas.width + middle(column))] > 128);
        return found""")
    assert seen == store["bballs/train"]["frames"][0][4].astype(bool).ravel().tolist()


def test_keys_step_jump_play_and_change_the_sequence(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert page.step == 1
    page.press(Keys.END)
    assert page.step == 11
    page.press(Keys.HOME)
    assert page.step == 0
    page.press("+", "+")
    assert page.run("return document.getElementById('speed').value") == "30"
    page.press(" ")
    assert page.text("play") == "Pause"
    page.wait("return document.getElementById('rate').textContent.includes('drawn per second')")
    page.press(" ")
    assert page.text("play") == "Play"
    page.press(Keys.PAGE_DOWN)
    page.wait("return document.getElementById('number').value === '1'")
    page.press(Keys.PAGE_UP, Keys.PAGE_UP)
    page.wait("return document.getElementById('number').value === '23'")


def test_it_stops_at_the_end_unless_it_repeats(page: Page) -> None:
    page.run("document.getElementById('loop').click()")
    page.choose("speed", 60)
    page.run("document.getElementById('play').click()")
    page.wait("return document.getElementById('play').textContent === 'Play'")
    assert page.step == 11


def test_a_click_on_an_agent_shows_what_it_sees(page: Page, store: Store) -> None:
    page.show_battle()
    assert len(page.pixels("#details .bar canvas")) == 5  # the other three channels are explained by names
    before = page.pixels("#details figure > canvas")
    group = store["sc2/1s2z/train"]
    assert page.run("return document.getElementById('group').value") == group.path
    page.choose("selected", 1)
    page.wait("return document.querySelector('#details h2').textContent.includes('agent 1')")
    assert page.pixels("#details figure > canvas") != before
    x, y = (float(value) for value in group["unit_position"][0][0, 0])
    page.run(
        """const canvas = document.getElementById('arena'), box = canvas.getBoundingClientRect();
        const [left, low, right, high] = arguments[2];
        canvas.dispatchEvent(new MouseEvent('click', {bubbles: true,
            clientX: box.left + box.width * (arguments[0] - left) / (right - left),
            clientY: box.top + box.height * (high - arguments[1]) / (high - low)}))""",
        *(x, y, list(_window(group))),
    )
    page.wait("return document.querySelector('#details h2').textContent.includes('agent 0')")
    assert "health" in page.text("readings")
    assert all(word in page.text("layers") for word in ("sight of the selected one", "dashed: its reach"))
    assert page.run("return document.querySelector('#layers .bar').textContent").startswith("terrain height")


def _window(group: Any) -> tuple[float, ...]:
    from s2rm_data.generators.sc2.inspection.battle_scene import battle_scene

    arena = battle_scene(group, 0, 100).arena
    assert arena is not None
    return arena.extent


@pytest.mark.parametrize("world", ["bballs", "sc2"])
def test_predictions_stand_beside_the_truth(page: Page, world: str) -> None:
    if world == "sc2":
        page.show_battle()
    page.run("document.querySelector('input[value=ahead]').click()")
    page.wait("return document.querySelectorAll('#prediction figure').length > 0")
    page.choose("step", 5, "input")
    ahead = page.pixels("#prediction figure > canvas")
    page.choose("dropped", 9, "input")
    page.wait("return document.getElementById('dropped-share').textContent === '90 %'")
    page.run("document.getElementById('here').click()")
    page.wait("return document.querySelector('#prediction h2')?.textContent.includes('rolled out from')")
    page.choose("step", 8, "input")
    assert page.pixels("#prediction figure > canvas") != ahead
    plain = page.pixels("#arena")
    page.run("document.getElementById('enclaves').click()")
    page.wait("return !document.getElementById('part-label').hidden")
    everything = page.pixels("#arena")
    page.choose("part", 0)
    assert plain != everything != page.pixels("#arena") != plain


def test_the_address_says_what_is_shown(page: Page) -> None:
    page.choose("group", "bballs/val")
    page.wait("return document.getElementById('count').textContent === 'of 6'")
    page.choose("number", 4)
    page.wait("return document.body.ariaBusy === 'false'")
    page.run("document.querySelector('input[value=rollout]').click()")
    page.choose("dropped", 5, "input")
    page.choose("step", 7, "input")
    page.wait("return location.hash.includes('step=7') && location.hash.includes('dropped=0.5')")
    shown, pixels = page.run("return location.hash"), page.pixels("#arena")
    page.driver.refresh()
    page.wait("return document.querySelector('#prediction h2')?.textContent.includes('rolled out from')")
    page.wait(f"return location.hash === {json.dumps(shown)}")
    assert page.pixels("#arena") == pixels and page.step == 7
    page.run("location.hash = 'group=sc2/1s2z/train&number=2&selected=3'")
    page.wait("return document.getElementById('selected').value === '3'")
    assert page.run("return document.getElementById('number').value") == "2"
    page.run("location.hash = 'group=bballs/gone'")
    page.wait("return document.getElementById('alert').textContent.includes('asks for bballs/gone')")


def test_a_number_that_is_not_there_is_told(page: Page) -> None:
    page.choose("number", 99_999)
    page.wait("return document.getElementById('alert').textContent.includes('has sequences 0 to')")
    page.choose("number", 3)
    page.wait("return document.getElementById('alert').hidden")


def test_a_run_that_was_given_predicts_at_once_and_rolls_out_after_as_many_steps_as_the_evaluation(page: Page) -> None:
    page.wait("return document.querySelectorAll('#prediction figure').length > 0")
    assert page.run("return document.querySelector('input[name=mode]:checked').value") == "ahead"
    assert page.run("return document.getElementById('start').defaultValue") == str(PROMPT_STEPS) == str(START)


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_all_without_scrolling_sideways(page: Page, dark: bool) -> None:
    resize(page.driver, 390, 844, dark=dark)
    page.show_battle()
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    ground = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") is not dark


def test_everything_that_can_be_used_has_a_name(page: Page) -> None:
    page.show_battle()
    nameless = page.run("""const things = document.querySelectorAll('button, input, select, canvas');
    return Array.from(things).filter((it) => {
        if (it.closest('[hidden], [aria-hidden=true]')) return false;
        const labels = Array.from(it.labels ?? [], (label) => label.textContent);
        const words = [it.getAttribute('aria-label'), it.textContent, ...labels];
        return !words.some((word) => word && word.trim());
    }).map((it) => it.outerHTML)""")
    assert nameless == []
    page.choose("step", 3, "input")
    label = page.run("return document.getElementById('arena').getAttribute('aria-label')")
    assert "sc2/1s2z/train episode 0, step 3 of" in label and "units" in label


def test_what_goes_wrong_is_told_and_the_page_stays(page: Page) -> None:
    page.run("document.getElementById('group').append(new Option('gone', 'bballs/gone'))")
    page.choose("group", "bballs/gone")
    page.wait("return !document.getElementById('alert').hidden")
    assert "has no group" in page.text("alert")
    page.choose("group", "bballs/val")
    page.wait("return document.getElementById('count').textContent === 'of 6'")
    assert page.run("return document.getElementById('alert').hidden")
    assert [text for text in problems(page.driver) if "400" not in text] == []


def test_hostile_names_appear_as_text(driver: Any, renamed: Callable[[str], Path], serving: Any) -> None:
    harm = "<img src=x onerror=\"document.title='harm'\"><script>document.title='harm'</script>"
    root = renamed("<b>data<b>.zarr")

    def spoil(document: dict[str, Any]) -> None:
        for key in ("policies", "outcomes", "unit_types", "action_categories", "orders"):
            document["attributes"][key] = [harm] * 20

    change_group(root, "sc2/1s2z/train", spoil)
    page = Page(driver, serving(Answers(Store(root))))
    page.show_battle()
    assert page.text("store") == "<b>data<b>.zarr"
    assert harm in page.text("facts") and harm in page.text("details") and harm in page.text("readings")
    assert page.run("return document.querySelectorAll('img, b, main script, header script').length") == 0
    assert "harm" not in driver.title and problems(driver) == []


def test_one_file_shows_the_same_without_a_server(
    driver: Any, answers_with_runs: Answers, tmp_path: Path, page: Page
) -> None:
    served = page.pixels("#arena")
    path = tmp_path / "page.html"
    write_page(answers_with_runs, path, ["bballs/train", "sc2/1s2z/train"], [0, 2])
    alone = Page(driver, path.as_uri())
    assert alone.pixels("#arena") == served
    alone.run("document.getElementById('next').click()")
    alone.wait("return document.getElementById('number').value === '2'")
    alone.run("document.querySelector('input[value=rollout]').click()")
    alone.wait("return document.querySelectorAll('#prediction figure').length > 0")
    alone.run("document.getElementById('enclaves').click()")
    alone.wait("return !document.getElementById('part-label').hidden")
    alone.show_battle()
    alone.wait("return document.querySelector('#prediction h2')?.textContent.includes('rolled out from')")
    alone.choose("number", 1)
    alone.wait("return document.getElementById('alert').textContent.includes('does not hold that')")


def test_one_file_is_the_same_every_time_and_asks_nobody(answers_with_runs: Answers, tmp_path: Path) -> None:
    texts = []
    for name in ("a.html", "b.html"):
        write_page(answers_with_runs, tmp_path / name, ["bballs/val"], [0])
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]
    assert "http://" not in texts[0] and "https://" not in texts[0]
    held = texts[0].partition('id="embedded">')[2].partition("</script>")[0]
    routes = [route for route, _, _ in json.loads(held)]
    assert routes.count("episode") == 1 and routes.count("prediction") == 4 and routes.count("enclaves") == 1
