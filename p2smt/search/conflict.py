"""Which restrictions exclude each other, where a problem has no answer.

Rules are left out one by one, in their order, from all of them: what remains follows from the
rules alone, and is the same for every solver, seed and run.  The core that a solver names, by
assumptions, only says which rules can go without asking.  The other solver confirms what remains.
Where rules alone have matrices, all restrictions are left out in the same way, with a whole search
for each, by the solver that was asked.  What cannot be settled in time is not claimed.

The length of programs excludes nothing: whatever leaves a request a program leaves it the single
collective.  Some step must join the innermost level's devices, with the form of that collective,
and some step must cross each level that a group crosses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.collectives.names import Form
from p2smt.errors import EncodingBug
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.parallelism.request import Problem
from p2smt.plans.restrictions import restriction_text
from p2smt.problems.placement import PlacementProblem
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.placements import best_matrix, placements
from p2smt.solvers.ask import Conflict, Solver, ask, solver_of

_Rule = AxisRule | FixedEntry
_Restriction = _Rule | Form | tuple[str, int]


@dataclass(frozen=True, slots=True)
class PlacementList:
    """The matrices of a problem that were found, and whether these are all.

    conflict: rules that exclude each other, where there is no matrix; empty: not settled.
    notes: what else is to be known of the search, in words.
    """

    problem: PlacementProblem
    status: Status
    matrices: tuple[Matrix, ...]
    conflict: tuple[_Rule, ...] = ()
    notes: tuple[str, ...] = ()


def list_placements(
    problem: PlacementProblem, limits: SearchLimits, solver: Solver = Solver.CPSAT
) -> PlacementList:
    """Every matrix; where there is none, why, within the same time limit.

    Raises:
        InputError, EncodingBug: as :func:`p2smt.search.placements.placements`.
    """
    watch = StopWatch.start(limits)
    found = placements(problem, watch.left(), solver)
    if found.status is not Status.COMPLETE or found.value:
        return PlacementList(problem, found.status, found.value or ())
    excluding = rule_conflict(problem, watch.left(), solver)
    return PlacementList(problem, found.status, (), excluding)


def rule_conflict(
    problem: PlacementProblem,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
) -> tuple[_Rule, ...]:
    """Rules that no matrix obeys together, though it may all but one of them, in their order.

    Of several such sets it is the one that leaving rules out, the first one first, ends at.
    Matrices that the problem excludes count as any other.  Empty if there are no such rules, or
    if that was not settled in time.

    Raises:
        InputError: no such solver.
        EncodingBug: one solver's core has an answer by the other.
    """
    watch, solver = StopWatch.start(limits or SearchLimits()), solver_of(solver)
    rules = tuple(dict.fromkeys(problem.rules))
    question = PlacementProblem(problem.levels, problem.axes, rules, folded=problem.folded)
    found = ask(question, Conflict(), solver, watch.left())
    if found.value is None:
        return ()
    kept = _left(question, {rules[n] for n in found.value}, solver, watch)
    other = Solver.Z3 if solver is Solver.CPSAT else Solver.CPSAT
    confirmed = _excluded(replace(question, rules=kept), other, watch) if kept else None
    if confirmed is False:
        raise EncodingBug("rules are said to exclude each other", question, kept)
    return kept if confirmed else ()


def _left(
    question: PlacementProblem, core: set[_Rule], solver: Solver, watch: StopWatch
) -> tuple[_Rule, ...]:
    """What remains of the rules when each is left out, in their order, that need not be there.

    ``core``: rules that exclude each other.  Empty if it was not settled in time.
    """
    kept = question.rules
    for rule in question.rules:
        rest = tuple(other for other in kept if other != rule)
        without = rule not in core or _excluded(replace(question, rules=rest), solver, watch)
        if without is None:
            return ()
        if without:
            kept, core = rest, core if rule not in core else set(rest)
    return kept


def _excluded(question: PlacementProblem, solver: Solver, watch: StopWatch) -> bool | None:
    """Whether no matrix obeys the rules of a question; None if it was not settled in time."""
    found = best_matrix(question, solver, watch)
    if found.value is not None:
        return False
    return True if found.status is Status.INFEASIBLE else None


def conflict(problem: Problem, limits: SearchLimits, solver: Solver) -> tuple[str, ...]:
    """The restrictions of an infeasible problem that leave no matrix an answer, in words.

    Without any one of them a matrix has one (rules alone: a matrix obeys the others).  Empty if
    they were not found in time.
    """
    watch = StopWatch.start(limits)
    sizes = problem.topology.sizes, problem.axis_sizes
    question = PlacementProblem(*sizes, problem.rules)
    found = rule_conflict(question, watch.left(), solver)
    if not found and not problem.forbidden_forms and not problem.step_limits:
        return ()
    kept = found or _least(problem, watch, solver)
    return tuple(_text(problem, one) for one in kept)


def _least(problem: Problem, watch: StopWatch, solver: Solver) -> tuple[_Restriction, ...]:
    """Restrictions that leave no answer, but one without any of them; empty if not settled."""
    from p2smt.search.joint import JointSearch  # which lists of placements do without

    forms = sorted(problem.forbidden_forms, key=lambda form: form.value)
    every: list[_Restriction] = [*dict.fromkeys((*problem.rules, *forms, *problem.step_limits))]
    kept = every
    for one in every:
        rest = [other for other in kept if other is not one]
        search = JointSearch(_under(problem, rest), watch.left(), solver)
        status = search.run(top=1).status
        if status is Status.UNKNOWN or watch.expired():
            return ()
        kept = rest if status is Status.INFEASIBLE else kept
    return tuple(kept)


def _under(problem: Problem, restrictions: list[_Restriction]) -> Problem:
    """The problem with these restrictions only."""
    return replace(
        problem,
        rules=tuple(one for one in restrictions if isinstance(one, AxisRule | FixedEntry)),
        forbidden_forms=frozenset(one for one in restrictions if isinstance(one, Form)),
        step_limits=tuple(one for one in restrictions if isinstance(one, tuple)),
    )


def _text(problem: Problem, restriction: _Restriction) -> str:
    if isinstance(restriction, Form):
        return restriction_text({"kind": "forbidden-form", "form": restriction.value})
    if isinstance(restriction, tuple):
        level, count = restriction
        return restriction_text({"kind": "step-limit", "level": level, "at_most": count})
    return rule_text(restriction, problem.axis_names, problem.topology.names)


def rule_text(rule: _Rule, axes: Sequence[str], levels: Sequence[str]) -> str:
    """A rule as ``--require`` and ``--fix`` take it; with what was forbidden, if it was."""
    at = {"axis": axes[rule.axis], "level": levels[rule.level]}
    if isinstance(rule, FixedEntry):
        return restriction_text({"kind": "fixed-entry", **at, "entry": rule.value})
    required, opposite = (
        restriction_text({"kind": "axis-rule", **at, "within": within})
        for within in (rule.inside, not rule.inside)
    )
    return f"{required} ({opposite} forbidden)" if rule.by_opposite else required
