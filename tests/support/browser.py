"""A real browser, driven from tests: Debian's Chromium without a window."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no browser: install chromium and chromium-driver to test the viewer's page"
)
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars",
    "--enable-precise-memory-info", "--force-device-scale-factor=1",
)  # fmt: skip


@contextlib.contextmanager
def browser(width: int = 1280, height: int = 900) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    profile = tempfile.mkdtemp(prefix="s2rm-browser-")
    options = Options()
    options.binary_location = str(CHROMIUM)
    for option in (*OPTIONS, f"--window-size={width},{height}", f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "OFF"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()
        shutil.rmtree(profile, ignore_errors=True)


def resize(driver: Any, width: int, height: int, *, dark: bool = False) -> None:
    """The page's own size, whatever the window around it takes; as a phone has it for small widths."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": theme})


def problems(driver: Any) -> list[str]:
    """What the page has complained about on its console, but for how tests read pixels back."""
    told = [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    return [message for message in told if "willReadFrequently" not in message]


def picture(driver: Any, path: Path) -> Path:
    assert driver.save_screenshot(str(path))
    return path
