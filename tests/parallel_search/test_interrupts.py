"""Searches that are interrupted, at any line of the package: what they say, and what goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from p2smt.parallel_search.best import digest_of
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.engine import SearchOutcome
from p2smt.parallel_search.parallel_options import InProcess
from p2smt.parallel_search.subproblem import SearchKind, Subproblem
from tests.parallel_search.chaos import Chaos, Notes
from tests.parallel_search.test_outcomes import assert_right, toys
from tests.parallel_search.toy import Toy


def interrupted_at(line: int, run: Callable[[], SearchOutcome]) -> SearchOutcome | None:
    """What a search gives that is interrupted at the n-th line of the package that it runs.

    None: the interrupt came when there was nothing to save yet, or all was said.
    """
    left = line

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left
        if f"p2smt{os.sep}parallel_search" not in frame.f_code.co_filename:
            return None
        left -= event == "line"
        if left < 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return run()
    except KeyboardInterrupt:
        return None
    finally:
        sys.settrace(before)


@given(toys, st.integers(1, 4), st.integers(0, 1500), st.integers(0, 99))
def test_an_interrupted_search_claims_no_more_than_it_knows(
    toy: Toy, top: int, line: int, seed: int
) -> None:
    """Whatever line it interrupts; and its record brings the rest."""
    notes = Notes()
    outcome = interrupted_at(
        line,
        lambda: search(toy, Chaos(toy, 2, seed), top=top, budget_s=1.0, journal=notes.again(None)),
    )
    if outcome is not None and outcome.status.settled:
        # a proof also where open cubes have bounds beyond the best
        assert_right(toy, top, replace(outcome, interrupted=False, open_subproblems=()))
    elif outcome is not None:
        assert (outcome.reason, outcome.interrupted) == ("it was interrupted", True)
        assert_admissible(toy, outcome)
    assert_right(toy, top, search(toy, InProcess(toy), top=top, journal=notes.again(None)))


def test_an_interrupt_at_any_line_loses_no_cube_and_counts_none_twice() -> None:
    """One line after another, of a search that splits a cube and closes some."""
    toy, line = Toy((1,), depth=0, asked=SearchKind.ENUMERATE, splits_at=1), 0
    interrupted = 0
    while True:
        outcome = interrupted_at(line, lambda: search(toy, Chaos(toy, 1, 0), budget_s=1.0))
        if outcome is not None:
            interrupted += outcome.interrupted
            assert_admissible(toy, outcome)
            if not outcome.interrupted:
                break
        line += 1
    assert interrupted > 100


def assert_admissible(toy: Toy, outcome: SearchOutcome) -> None:
    """Hold an outcome without proof against all members of the space."""
    members = sorted(toy.members_in(Subproblem()))
    assert set(outcome.best) <= set(members)
    if toy.asked is SearchKind.OPTIMISE and members:
        assert outcome.bound is not None
        assert outcome.bound <= members[0].value
    if toy.asked is SearchKind.ENUMERATE:
        still_open = {m for cube in outcome.open_subproblems for m in toy.members_in(cube)}
        listed = [m.witness for m in members if m not in still_open]
        assert (outcome.count, outcome.digest) == (len(listed), digest_of(listed))
