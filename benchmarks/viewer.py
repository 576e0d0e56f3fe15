"""Measure the viewer in a real browser: time to the first picture, steps drawn per second, memory over playing.

    python benchmarks/viewer.py data.zarr [--run runs/x ...] [--minutes 10] [--pictures docs/images]

Needs Debian's chromium and chromium-driver, and selenium. `--pictures` takes the pictures of docs/viewer.md instead of
measuring.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from browser import browser, problems, resize

WIDE, NARROW = (1280, 900), (390, 844)


@contextlib.contextmanager
def serving(store: str, runs: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The address, and the seconds from the command to it."""
    begun = time.perf_counter()
    options = [word for run in runs for word in ("--run", run)]
    command = [sys.executable, "-m", "s2rm_data", "view", store, "--no-browser", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+/", line)
        if not found:
            raise SystemExit(line + process.stderr.read())
        yield found[0], time.perf_counter() - begun
    finally:
        process.terminate()
        process.wait()


def choose(driver: Any, name: str, value: Any, event: str = "change") -> None:
    script = "const it = document.getElementById(arguments[0]); it.value = arguments[1];"
    driver.execute_script(script + "it.dispatchEvent(new Event(arguments[2]))", name, value, event)


def settle(driver: Any, seconds: float = 120) -> None:
    """Wait until nothing is being fetched or computed."""
    script = """return document.body.ariaBusy === 'false'
        && !document.getElementById('busy').textContent.includes('computing')"""
    until = time.monotonic() + seconds
    time.sleep(0.5)
    while not driver.execute_script(script):
        if time.monotonic() > until:
            raise SystemExit("the page does not settle: " + driver.find_element("id", "alert").text)
        time.sleep(0.1)
    time.sleep(0.3)


def play(driver: Any, wanted: bool = True) -> None:
    """Press the button unless it is so already: a page that was late has paused what was begun too early."""
    script = "const it = document.getElementById('play'); if (it.textContent === arguments[0]) it.click()"
    driver.execute_script(script, "Play" if wanted else "Pause")


def first_picture_ms(driver: Any, url: str) -> float:
    driver.get(url)
    settle(driver)
    return float(driver.execute_script("return performance.getEntriesByName('first picture')[0].startTime"))


def drawn_per_second(driver: Any, wanted: int, seconds: float = 6) -> list[float]:
    """As the page itself counts them, second by second."""
    choose(driver, "speed", wanted)
    rates = []
    for _ in range(int(seconds)):
        play(driver)
        time.sleep(1)
        words = driver.execute_script("return document.getElementById('rate').textContent")
        rates += [float(words.split()[0])] if words else []
    play(driver, False)
    return rates


def heap_mb(driver: Any) -> float:
    driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    return float(driver.execute_script("return performance.memory.usedJSHeapSize")) / 1e6


def measure(store: str, runs: Sequence[str], minutes: float) -> None:
    with serving(store, runs) as (url, ready), browser(*WIDE) as driver:
        resize(driver, *WIDE)
        print(f"command to address: {ready:.2f} s")
        times = [first_picture_ms(driver, url) for _ in range(5)]
        print("navigation to first picture, ms:", ", ".join(f"{t:.0f}" for t in times))
        worlds = driver.execute_script("return Array.from(document.getElementById('world').options, (o) => o.value)")
        for world in worlds:
            choose(driver, "world", world)
            settle(driver)
            for wanted in (30, 60):
                rates = drawn_per_second(driver, wanted)
                print(f"{world} at {wanted}: drawn per second:", ", ".join(f"{rate:.1f}" for rate in rates))
        for world in worlds:
            _memory(driver, world, minutes / len(worlds))
        print("console:", problems(driver) or "nothing")


def _memory(driver: Any, world: str, minutes: float) -> None:
    choose(driver, "world", world)
    settle(driver)
    choose(driver, "speed", 30)
    heaps = []
    for _ in range(10):
        play(driver)
        heaps.append(heap_mb(driver))
        time.sleep(6 * minutes)
    heaps.append(heap_mb(driver))
    play(driver, False)
    print(f"{world}: heap over {minutes:g} minutes, MB:", ", ".join(f"{heap:.2f}" for heap in heaps))


def take_pictures(store: str, runs: Sequence[str], folder: Path) -> None:
    for given, ending in (((), ""), (runs, "_run")):
        with serving(store, given) as (url, _), browser(*WIDE) as driver:
            for name, world, step in (("balls", "bballs", 30), ("battle", "sc2", 12)):
                resize(driver, *WIDE)
                driver.get(url)
                settle(driver)
                choose(driver, "world", world)
                settle(driver)
                if given:
                    driver.execute_script("document.querySelector('input[value=ahead]').click()")
                    settle(driver)
                    driver.execute_script("document.getElementById('enclaves').click()")
                    settle(driver)
                choose(driver, "step", step, "input")
                _save(driver, folder / f"viewer_{name}{ending}.png", WIDE, dark=False)
                _save(driver, folder / f"viewer_{name}{ending}_narrow.png", NARROW, dark=True)


def _save(driver: Any, path: Path, size: tuple[int, int], *, dark: bool) -> None:
    import io

    from PIL import Image

    resize(driver, *size, dark=dark)
    time.sleep(0.6)
    Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB").save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--run", action="append", default=[])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    if given.pictures:
        take_pictures(given.store, given.run, given.pictures)
    else:
        measure(given.store, given.run, given.minutes)


if __name__ == "__main__":
    main()
