"""Headless Chromium by its driver's HTTP interface (W3C WebDriver), and what pages ask it for."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

LIMIT_S = 600
REQUEST = "Network.requestWillBeSent"


class Browser:
    """A session of the driver."""

    def __init__(self, root: str) -> None:
        self._root = root

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """What the driver answers."""
        data = json.dumps(body).encode()
        head = {"Content-Type": "application/json"}
        with urlopen(Request(f"{self._root}{path}", data, head), timeout=LIMIT_S) as answer:
            return json.load(answer)["value"]

    def open(self, url: str) -> None:
        """Load a page."""
        self.post("/url", {"url": url})

    def run(self, script: str) -> Any:
        """What an asynchronous script hands to ``done``."""
        wrapped = f"const done = arguments[arguments.length - 1]; {script}"
        return self.post("/execute/async", {"script": wrapped, "args": []})

    def requested(self) -> list[str]:
        """Every URL that pages asked for since the last call, workers' and frames' included."""
        entries = self.post("/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == REQUEST]


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Chromium with a profile in a folder; where it or its driver lacks, the test is skipped."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or chromium is None:
        pytest.skip("chromium or chromedriver is not installed")
    process = subprocess.Popen(
        [driver, "--port=0"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        ports = (re.search(r"successfully on port (\d+)", line) for line in process.stdout)
        root = f"http://127.0.0.1:{next(found[1] for found in ports if found)}/session"
        session = Browser(root).post(
            "", {"capabilities": {"alwaysMatch": _wanted(chromium, folder)}}
        )
        own = f"{root}/{session['sessionId']}"
        try:
            yield Browser(own)
        finally:  # or the browser outlives its driver, whose output it holds open
            urlopen(Request(own, method="DELETE"), timeout=LIMIT_S).close()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LIMIT_S)


def _wanted(chromium: str, folder: Path) -> dict[str, Any]:
    flags = ["--headless", "--no-sandbox", f"--user-data-dir={folder}", "--window-size=1280,1000"]
    return {
        "goog:chromeOptions": {"binary": chromium, "args": flags},
        "goog:loggingPrefs": {"performance": "ALL"},
        "timeouts": {"script": LIMIT_S * 1000},
    }
