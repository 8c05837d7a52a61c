"""Rounds of the steps, and what fits into them, as CP-SAT has it for every class of all-reduce."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ortools.sat.python import cp_model

from p2smt.encodings.schedule.points import P, first_chunks, full_capacities, loads
from p2smt.encodings.schedule.small_rates import check_rounds, small_rate
from p2smt.errors import TooLarge
from p2smt.problems.sums import AllReduceProblem

MAX_VARIABLES = 1_000_000


def check_size(problem: AllReduceProblem, shared: int, stated: int) -> None:
    """Refuse a model of too many variables, before it is built.

    ``shared``: points of a chunk that the symmetries join; ``stated``: variables of a chunk for
    which constraints are stated.

    Raises:
        TooLarge: more variables than MAX_VARIABLES, or four times as many points to be joined, or
            too many rounds.
    """
    check_rounds(problem.rounds)
    lead = len(first_chunks(problem))
    variables = max(lead * (shared + stated), shared * problem.chunks // 4)
    if variables > MAX_VARIABLES:
        raise TooLarge(
            f"{problem.chunks} chunks, {len(problem.edges)} edges, {problem.steps} steps",
            f"make {variables} variables, more than {MAX_VARIABLES}",
            "ask for fewer chunks or steps",
        )


def new_rounds(model: cp_model.CpModel, problem: AllReduceProblem) -> tuple[cp_model.IntVar, ...]:
    """The rounds of every step; those that a reversal of time takes to each other are one."""
    most, last = problem.rounds - problem.steps + 1, problem.steps - 1
    turned = any(one.reverses for one in problem.symmetries)
    own = [model.new_int_var(1, most, "") for _ in range(problem.steps)]
    return tuple(own[min(s, last - s) if turned else s] for s in range(problem.steps))


def state_rounds(
    model: cp_model.CpModel, problem: AllReduceProblem, rounds: Sequence[cp_model.IntVar]
) -> None:
    """The steps take all rounds together."""
    model.add(cp_model.LinearExpr.sum(list(rounds)) == problem.rounds)


def state_capacity(
    model: cp_model.CpModel,
    problem: AllReduceProblem,
    rounds: Sequence[cp_model.IntVar],
    sent: Mapping[tuple[int, int], Sequence[P]],
    variable: Callable[[P], cp_model.IntVar],
) -> None:
    """What loads a capacity in a step fits into its rounds; ``sent`` as in ``points.loads``.

    Where counting shows that it is full, it is stated: that follows, and saves the solver time.
    """
    full, longest = full_capacities(problem), problem.rounds - problem.steps + 1
    for k, step, counts in loads(problem, sent):
        rate = small_rate(problem.capacities[k], longest, counts.total())
        weights = [count * rate.denominator for count in counts.values()]
        load = cp_model.LinearExpr.weighted_sum([variable(one) for one in counts], weights)
        most = rate.numerator * rounds[step]
        model.add(load == most if k in full else load <= most)
