"""Settings of all tests: the same examples on every run, whatever ran before and however slowly.

``make explore`` (tests/exploring) draws anew; what it finds stands in tests/found.json, and is
tried here ever after.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from p2smt.cli import COLLECT_AFTER
from p2smt.cli.guide.defaults import TOPOLOGY
from p2smt.cluster.library.model import ADDED
from tests.cli.tools import EVERY_KIND, TINY, cli
from tests.exploring.found import FOUND, Case, read_cases, with_cases
from tests.tiers import ALL, FEW, MANY

BENCH = Path(__file__).parent / "bench"
CASES = pytest.StashKey[list[Case]]()

os.environ.pop(TOPOLOGY, None)  # the user's own: no test asks about that cluster
gc.set_threshold(COLLECT_AFTER)  # as the program does, whose commands run in here

# A shell starts its background jobs with SIGINT ignored, and all their children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# `nohup` does it with SIGHUP.  What is caught here, and not heeded, is at its default in a child.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

STEADY: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow],  # it measures time
}
settings.register_profile("few", max_examples=FEW, **STEADY)
settings.register_profile("all", max_examples=ALL, **STEADY)
settings.register_profile("many", max_examples=MANY, **STEADY)
settings.load_profile("few")  # before the tests are read; --hypothesis-profile comes after this


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What a test registers is unknown after it: else the next one's answer hangs on the order."""
    libraries, algorithms = dict(ADDED.libraries), dict(ADDED.algorithms)
    yield
    ADDED.libraries.clear()
    ADDED.libraries.update(libraries)
    ADDED.algorithms.clear()
    ADDED.algorithms.update(algorithms)


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--shuffle SEED``: files, and the tests in each, in an order of that number."""
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run in the random order SEED")
    parser.addoption("--found", type=Path, default=FOUND, help="cases that exploring found")


def pytest_configure(config: pytest.Config) -> None:
    """Examples do not depend on which modules were loaded before: their constants are not drawn."""
    without_constants()
    config.stash[CASES] = read_cases(config.getoption("--found"))


def without_constants() -> None:
    """Hypothesis has no setting for it, only a function inside.

    Raises:
        UsageError: it has that function no more, so that examples would vary.
    """
    if "_get_local_constants" not in vars(providers):
        raise pytest.UsageError(
            f"{providers.__name__} of Hypothesis has no _get_local_constants: see what gives a run "
            "the constants of loaded modules now, and leave them out there"
        )
    vars(providers)["_get_local_constants"] = Constants


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay to the end: the collector of garbage need not look at them again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A property is tried on what was ever found against it."""
    with with_cases(item, item.config.stash[CASES]):
        return (yield)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Benchmarks guard nothing but themselves."""
    for item in items:
        if item.path.is_relative_to(BENCH):
            item.add_marker(pytest.mark.exhaustive)
    if (seed := config.getoption("--shuffle")) is not None:
        items[:] = shuffled(items, seed)


def shuffled(items: list[pytest.Item], seed: int) -> list[pytest.Item]:
    """Files in random order, and in each its tests: what a file sets up is set up once."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    draw, order = Random(seed), list(files.values())
    draw.shuffle(order)
    for tests in order:
        draw.shuffle(tests)
    return [item for tests in order for item in tests]
