"""``p2smt.verify_journal``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from p2smt.api.journal_shares import matrix_share, strategy_share
from p2smt.api.planning import launcher_lacks
from p2smt.errors import InputError, TooLarge, did_you_mean
from p2smt.parallel_search.journal.journal_text import read_journal
from p2smt.parallel_search.journal.journal_verification import (
    DEFAULT_SAMPLE,
    JournalReport,
    verify_records,
)
from p2smt.parallel_search.journal.record import JournalHeader
from p2smt.parallel_search.journal.tree import HALVES, RebuiltSpace, boolean_share
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.spaces.placement_space import placement_space
from p2smt.search.spaces.solve_space import solve_space
from p2smt.solvers.ask import Solver
from p2smt.synthesis.schedule_space import check_size, schedule_space
from p2smt.training.search.subproblems import plan_space
from p2smt.units import plain

if TYPE_CHECKING:
    from p2smt.api.files import StrPath


# The spaces that a journal's header may name, made again from its description.


_TICKS_S = 1e-40, 1e6
Maker = Callable[[Mapping[str, Any]], RebuiltSpace]
"""From a header's description to the space."""


def _placements(data: Mapping[str, Any]) -> RebuiltSpace:
    space = placement_space(data)
    problem, other = space.problem, _other(space.solver)
    share = matrix_share(space.names, problem.levels, problem.axes, problem.rules)
    others = replace(space, solver=other), other.value
    return RebuiltSpace(space, share, "matrices", not problem.excluded, *others)


def _solve(data: Mapping[str, Any]) -> RebuiltSpace:
    _check_ticks(data)
    space = solve_space(data)
    problem, other = space.problem, _other(space.solver)
    sizes = problem.topology.sizes, problem.axis_sizes
    share = matrix_share(problem.axis_names, *sizes, problem.rules)
    return RebuiltSpace(space, share, "matrices", False, replace(space, solver=other), other.value)


def _plan(data: Mapping[str, Any]) -> RebuiltSpace:
    _check_ticks(data)
    space = plan_space(data, launcher_lacks)
    what = "a pair of matrices" if space.question.model.experts else "a matrix"
    return RebuiltSpace(space, strategy_share(space.question), f"axis sizes with {what}")


def _synthesize(data: Mapping[str, Any]) -> RebuiltSpace:
    space = schedule_space(data)
    other = replace(space, solver=_other(space.solver))
    share = boolean_share(space.names)
    try:
        check_size(other)
    except TooLarge:
        return RebuiltSpace(space, share, HALVES, False, None, space.solver.value)
    return RebuiltSpace(space, share, HALVES, False, other, other.solver.value)


def _check_ticks(data: Mapping[str, Any]) -> None:
    """Raise InputError unless ticks take a time in which others can be counted, and a ceiling, if
    there is one, is ticks."""
    tick_s, ceiling = data.get("tick_s"), data.get("ceiling")
    if not isinstance(tick_s, float) or not _TICKS_S[0] <= tick_s <= _TICKS_S[1]:
        least, most = _TICKS_S
        rule = f"must be a positive number of seconds, from {plain(least, 6)} to {plain(most, 6)}"
        raise InputError("tick_s", rule)
    if ceiling is not None and not isinstance(ceiling, int):
        raise InputError("ceiling", "must be a whole number of ticks, or null")


def _other(solver: Solver) -> Solver:
    return Solver.Z3 if solver is Solver.CPSAT else Solver.CPSAT


MAKERS: Mapping[str, Maker] = MappingProxyType(
    {"placements": _placements, "solve": _solve, "plan": _plan, "synthesize": _synthesize}
)
"""By the name that a header has."""


def rebuilt_space(
    header: JournalHeader, source: str, makers: Mapping[str, Maker] = MAKERS
) -> RebuiltSpace:
    """The space of a journal; ``source`` names that in messages.

    Raises:
        InputError: there is no space of that name, or the description is none of it.
    """
    if header.space not in makers:
        rule = f"is of a space {header.space[:40]!r}, and there are {', '.join(makers)}"
        raise InputError(source, rule, did_you_mean(header.space, makers) or "give another file")
    given = f"{source}: line 1"
    try:
        return makers[header.space](header.description)
    except InputError as error:
        raise InputError(f"{given}: {error.given}", error.rule, error.remedy) from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        reason = f"is none of {header.space} ({type(error).__name__}: {str(error)[:120]})"
        raise InputError(f"{given}: the description of a space", reason) from None


def verify_journal(
    path: StrPath,
    *,
    sample: int | None = DEFAULT_SAMPLE,
    time_limit_s: float | None = None,
    told: Callable[[int, int], None] | None = None,
    makers: Mapping[str, Maker] = MAKERS,
) -> JournalReport:
    """Verify the journal of a search: its cover, bounds, members, and verdicts solved again.

    Args:
        path: a file that ``--journal`` wrote, whether the search is over or not.
        sample: how many verdicts of solvers to solve again; None: all.
        time_limit_s: wall seconds for that.
        told: is told how many of how many are solved again.
        makers: how spaces are made again, by their names.

    Raises:
        InputError: the file is no journal, or of no space that is known here.
    """
    name = os.fspath(path)
    source, text = f"journal {name[:200]!r}", read_journal(name)
    if text.header is None:
        raise InputError(source, "has no whole line, so nothing is on record", "search first")
    remade = rebuilt_space(text.header, source, makers)
    watch = StopWatch.start(SearchLimits(time_limit_s))
    return verify_records(text, source, remade, sample=sample, watch=watch, told=told)
