"""Tables put together from those over merged levels: forbidden forms, limits, disagreement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Form, RequestKind
from p2smt.encodings.program import reachable
from p2smt.encodings.program import reachable as reachable_merged
from p2smt.encodings.program.reachable import (
    Arc,
    ReachableTable,
    build_table,
    exact_table,
    merged_table,
)
from p2smt.errors import EncodingBug, OutOfTimeError, TooLarge
from p2smt.problems.placement import InstructionSet, ProgramProblem
from p2smt.programs.program import MODEL_DEPTH, Hierarchy
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.program_synthesis import Task
from tests.encodings.test_program_reachable import paths

KINDS = (RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER, RequestKind.ALL_GATHER)
SIX = (2,) * 6


def watch() -> StopWatch:
    return StopWatch.start(SearchLimits())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [Form.MASTER, Form.PARALLEL, Form.INSIDE_GROUP])
def test_forms_that_are_forbidden(kind: RequestKind, form: Form) -> None:
    """As on all levels at once; a form is one of the whole hierarchy."""
    task = Task(kind, Hierarchy.plain(SIX), 2, frozenset({form})).problem()
    assert len(task.factors) > MODEL_DEPTH
    assert paths(build_table(task), 2) == paths(exact_table(task), 2)


@pytest.mark.parametrize("kind", KINDS)
def test_real_sizes_of_many_levels(kind: RequestKind) -> None:
    task = Task(kind, Hierarchy.plain((3, 2, 2, 2, 2, 2)), 2).problem()
    assert paths(build_table(task), 2) == paths(exact_table(task), 2)


def test_a_time_limit() -> None:
    task = Task(RequestKind.ALL_REDUCE, Hierarchy.plain((2,) * 8), 5).problem()
    for known in (reachable._raw_table, reachable._table, reachable._merged_table):
        known.cache_clear()
    with pytest.raises(OutOfTimeError):
        build_table(task, StopWatch.start(SearchLimits(0.01)))


def test_too_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(RequestKind.ALL_REDUCE, Hierarchy.plain(SIX), 3).problem()
    monkeypatch.setattr(reachable_merged, "MAX_NODES", 5)
    with pytest.raises(TooLarge, match="more than 5 nodes"):
        merged_table(task, 3, build_table, watch())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda arc: replace(arc, rows=arc.rows + 1), "on a payload"),
        (lambda arc: replace(arc, target=0), "on the goal"),
    ],
)
def test_tables_that_do_not_agree(change: object, text: str) -> None:
    """One of them says another payload of its first steps, or that they reach the goal."""
    assert callable(change)
    changed: list[int] = []

    def table_of(problem: ProgramProblem) -> ReachableTable:
        found = build_table(problem)
        if not changed:
            changed.append(1)
            first: tuple[Arc, ...] = tuple(map(change, found.arcs[found.start]))
            return replace(found, arcs={**found.arcs, found.start: first})
        return found

    problem = ProgramProblem(demand_of(RequestKind.ALL_REDUCE), SIX, 3, InstructionSet.of(len(SIX)))
    with pytest.raises(EncodingBug, match=text):
        merged_table(problem, 3, table_of, watch())
