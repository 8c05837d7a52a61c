"""Settings of all tests: Hypothesis has no deadline, and finds the same examples in CI."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.cli.tools import EVERY_KIND, TINY, cli
from tests.tiers import ALL, FEW, MANY

BENCH = Path(__file__).parent / "bench"

# A shell starts its background jobs with SIGINT ignored, and all their children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# `nohup` does it with SIGHUP.  What is caught here, and not heeded, is at its default in a child.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

STEADY = bool(os.environ.get("CI"))
settings.register_profile("few", deadline=None, max_examples=FEW, derandomize=STEADY)
settings.register_profile("all", deadline=None, max_examples=ALL, derandomize=STEADY)
settings.register_profile("many", deadline=None, max_examples=MANY, derandomize=STEADY)
settings.load_profile("few")  # before the tests are read; --hypothesis-profile comes after this


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A topology file of two nodes with four devices each."""
    path = tmp_path_factory.mktemp("cluster") / "tiny.yaml"
    path.write_text(TINY)
    return str(path)


@pytest.fixture(scope="session")
def plan(tiny: str) -> dict[str, Any]:
    """A plan on it with a request of every kind; copy it before changing it."""
    data = cli("solve", "-t", tiny, *EVERY_KIND, "--json").json()
    assert isinstance(data["plan"], dict)
    return data["plan"]


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Benchmarks guard nothing but themselves."""
    for item in items:
        if item.path.is_relative_to(BENCH):
            item.add_marker(pytest.mark.exhaustive)
