"""A headless Chromium that looks at pages; where there is none, tests skip with the reason."""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WAIT_S = 30.0
"""Beyond this a page that should change has not."""


class Browser:
    """A page in the browser, with the few things that tests do to it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, width: int = 1280, height: int = 900) -> None:
        """A file, on a screen of that size; what was logged before is forgotten."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(path.as_uri())
        self.log()
        self.driver.get(path.as_uri())

    def js(self, code: str, *values: Any) -> Any:
        """What a script gives."""
        return self.driver.execute_script(code, *values)

    def log(self) -> list[str]:
        """What the console and the network said since it was asked last."""
        return [one["message"] for one in self.driver.get_log("browser")]

    def until(self, true: Callable[[], Any]) -> None:
        """Wait until something is so."""
        end = time.monotonic() + WAIT_S
        while not true():
            assert time.monotonic() < end, "the page did not change"
            time.sleep(0.02)

    def pictures(self) -> list[str]:
        """What is drawn on each canvas."""
        return list(
            self.js("return [...document.querySelectorAll('canvas')].map(c=>c.toDataURL())")
        )

    def fits(self) -> bool:
        """Whether nothing stands out to the right."""
        return bool(self.js("return document.documentElement.scrollWidth <= innerWidth"))

    def pdf(self) -> bytes:
        """The page on paper."""
        said: Mapping[str, Any] = self.driver.execute_cdp_cmd(
            "Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True}
        )
        return base64.b64decode(said["data"])


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser, or a skipped test."""
    selenium = pytest.importorskip("selenium", reason="selenium is not installed")
    del selenium
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("Chromium and its driver are not installed (apt: chromium, chromium-driver)")
    options = Options()
    options.binary_location = binary
    for one in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(one)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(made)
    finally:
        made.quit()
