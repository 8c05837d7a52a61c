"""A process of ``make explore``: pytest, which takes turns instead of going through its tests once.

A turn is a run of one property on new examples, however many its settings say, for a few seconds or
until a thousand.  A case that fails is written as soon as it is seen, and again as it gets smaller.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import UnsatisfiedAssumption
from hypothesis.internal.conjecture import providers

from tests.exploring.found import Case, case_of, property_of, write_cases
from tests.exploring.text import UnwritableError
from tests.exploring.turns import Tried, Turns

TURN_S, TURN_EXAMPLES = 4.0, 1000
_WITH_CONSTANTS = providers._get_local_constants  # conftest.py leaves them out, to be steady


class TurnOverError(BaseException):
    """The time of a turn is over: no failure, and Hypothesis does not take it for one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """What ``__main__`` tells its processes."""
    parser.addoption("--explore-state", type=Path, required=True)
    parser.addoption("--explore-until", type=float, required=True, help="time.time() of the end")
    parser.addoption("--explore-most", type=int)
    parser.addoption("--explore-steadily", action="store_true")


@dataclass
class Recorded:
    """An inner test that counts its examples and keeps the last that failed, as text."""

    test: str
    inner: Callable[..., object]
    drawn: frozenset[str]
    home: ModuleType | None
    until_s: float
    save: Callable[[Case], None]
    tried: Tried = field(default_factory=Tried)
    failing: bool = False

    def function(self) -> Callable[..., object]:
        """What Hypothesis calls: no other callable will do."""

        @functools.wraps(self.inner)
        def inner(*args: Any, **kwargs: Any) -> object:
            return self.call(*args, **kwargs)

        return inner

    def call(self, *args: Any, **kwargs: Any) -> object:
        """The inner test, watched."""
        if not self.failing and time.time() > self.until_s:
            raise TurnOverError
        arguments = {name: value for name, value in kwargs.items() if name in self.drawn}
        before = self._case(arguments, "") if self.failing else None
        try:
            result = self.inner(*args, **kwargs)
        except UnsatisfiedAssumption:
            raise
        except (Exception, pytest.fail.Exception) as error:
            said = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
            self._keep(arguments, before, said)
            raise
        self.tried.examples += 1
        if self.tried.examples == 1:
            self._case(arguments, "")
        return result

    def _keep(self, arguments: Mapping[str, object], before: Case | None, said: str) -> None:
        """The case as it was before the test, except for what the test drew itself."""
        self.failing = True
        after = self._case(arguments, said)
        if before is not None and (after is None or "Draws" not in after.names):
            after = Case(before.test, said, before.names, before.values)
        if after is not None:
            self.save(after)

    def _case(self, arguments: Mapping[str, object], said: str) -> Case | None:
        try:
            return case_of(self.test, said, arguments, self.home)
        except UnwritableError as why:
            self.tried.unwritable = str(why)
            return None


@dataclass(frozen=True)
class Turn:
    """One property's turn in this process."""

    item: pytest.Item
    state: Path
    end_s: float

    def run(self, following: pytest.Item | None, most: int, *, steadily: bool = False) -> Tried:
        """Tries it; a failing case is in the folder ``cases``, what pytest says in ``failures``."""
        function: Any = property_of(self.item)
        handle, before = function.hypothesis, function._hypothesis_internal_use_settings
        recorded = Recorded(
            self.item.nodeid,
            handle.inner_test,
            frozenset(handle._given_kwargs),
            getattr(self.item, "module", None),
            min(self.end_s, time.time() + TURN_S),
            self._save,
        )
        handle.inner_test = recorded.function()
        function._hypothesis_internal_use_settings = settings(
            before, **_anew(most), derandomize=steadily
        )
        began_s = time.time()
        try:
            reports = runtestprotocol(self.item, log=False, nextitem=following)
        finally:
            handle.inner_test = recorded.inner
            function._hypothesis_internal_use_settings = before
        recorded.tried.seconds = time.time() - began_s
        recorded.tried.rests = self._rests(reports)
        return recorded.tried

    def _save(self, case: Case) -> None:
        write_cases([case], self.state / "cases" / f"{self._name}.json")

    @property
    def _name(self) -> str:
        return re.sub(r"\W+", "-", self.item.nodeid)[-150:]

    def _rests(self, reports: list[pytest.TestReport]) -> str:
        """Why the property is not tried again in this round; nothing: it is."""
        for report in reports:
            if report.failed and TurnOverError.__name__ not in str(report.longrepr):
                text = "\n".join([report.longreprtext, *(f"{a}\n{b}" for a, b in report.sections)])
                (self.state / "failures" / f"{self._name}.txt").write_text(text)
                return "failed"
            if report.skipped:
                return "skipped"
        told = str(getattr(self.item, "hypothesis_statistics", ""))
        return "tried in full" if "nothing left to do" in told else ""


def _anew(most: int) -> dict[str, Any]:
    """Settings of a turn: new examples alone; those that are known the tests try."""
    return {
        "max_examples": most,
        "database": None,
        "deadline": None,
        "print_blob": True,
        "report_multiple_bugs": False,
        "phases": (Phase.generate, Phase.shrink),
        "suppress_health_check": [
            *(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
            *(HealthCheck.large_base_example, HealthCheck.differing_executors),
        ],
    }


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Turn after turn, until the time is over or all properties rest."""
    vars(providers)["_get_local_constants"] = _WITH_CONSTANTS
    option = session.config.getoption
    state, end_s, most = (
        option("--explore-state"),
        option("--explore-until"),
        option("--explore-most"),
    )
    items = {item.nodeid: item for item in session.items if property_of(item)}
    turns = Turns(state, most)
    process = os.getpid()
    name = turns.take(items, process)
    while name is not None and time.time() < end_s:
        turns.start(name, process)
        following = turns.take(items, process)
        turn = Turn(items[name], state, end_s)
        after = items[following] if following else None
        steadily = bool(option("--explore-steadily"))
        new = turn.run(after, most or TURN_EXAMPLES, steadily=steadily)
        turns.give_back(name, new)
        name = following or turns.take(items, process)
    turns.left_by(process, "")
    return True
