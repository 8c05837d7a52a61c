"""z3's models of schedules are stated as long as there is time, whatever is not stated yet."""

from __future__ import annotations

import time

import pytest

from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import AllReduceProblem, DisseminationProblem
from p2smt.result import OUT_OF_TIME, SearchLimits, Status
from p2smt.solvers.ask import Solver, Witness, ask
from p2smt.synthesis.schedule_replay import all_reduce_problem, dissemination_problem, spreads

RING = load_fabric("ring:4")
SPREADING = dissemination_problem(RING, spreads("allgather", 4, 1), 3, 3)
SUMMING = all_reduce_problem(RING, 2, 2, 3)


@pytest.mark.parametrize("problem", [SPREADING, SUMMING])
@pytest.mark.parametrize("looks", range(1, 12, 5))
def test_no_more_is_stated_once_the_time_came(
    problem: DisseminationProblem | AllReduceProblem, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that jumps after so many looks, none of them the solver's."""
    came = iter(range(10_000))
    start = time.monotonic()
    monkeypatch.setattr(
        "p2smt.result.time.monotonic", lambda: start + (99 if next(came) > looks else 0)
    )
    asked: list[object] = []
    monkeypatch.setattr("z3.Solver.check", lambda *_: asked.append(1))
    found = ask(problem, Witness(), Solver.Z3, SearchLimits(time_limit_s=9))
    assert (found.status, found.stats.reason, asked) == (Status.UNKNOWN, OUT_OF_TIME, [])
