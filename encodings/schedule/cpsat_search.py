"""The search for any schedule with CP-SAT, one for all models: constraints, solver, answer.

Constraints are stated one kind after the other, as long as there is time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from ortools.sat.python import cp_model

from p2smt.encodings.run_cpsat import run
from p2smt.encodings.schedule.points import AnyPoint, first_chunks, full_capacities, loads
from p2smt.errors import TooLarge
from p2smt.problems.schedule import AllReduceProblem
from p2smt.result import OUT_OF_TIME, Result, SolveStats, Status, StopWatch

SolverVerdict = tuple[cp_model.CpSolver, cp_model.CpSolverStatus]
P = TypeVar("P")
V = TypeVar("V")
S = TypeVar("S")
_SOLVER = "cpsat"


def searched(
    watch: StopWatch,
    model: cp_model.CpModel,
    problem: P,
    found: V,
    every: Iterable[Callable[[cp_model.CpModel, P, V], None]],
    decode: Callable[[P, V, cp_model.CpSolver], S],
    first: Callable[[], SolverVerdict | None] = lambda: None,
) -> Result[S]:
    """What a solver finds: FEASIBLE; INFEASIBLE: proved that there is nothing; UNKNOWN.

    ``every``: the kinds of constraints.  ``first``: a short search, before that of the model, that
    proves nothing if it finds nothing; None: there is none.
    """
    if not _stated(watch, model, problem, found, every):
        late = SolveStats(_SOLVER, watch.elapsed_s(), 0, reason=OUT_OF_TIME)
        return Result(Status.UNKNOWN, stats=late)
    solver, verdict = first() or (None, cp_model.UNKNOWN)
    if solver is None or not _solved(verdict):
        solver, verdict = run(model, watch.left(), linear=False)
    counters = (("variables", len(model.proto.variables)),)
    stats = SolveStats(_SOLVER, watch.elapsed_s(), 1, counters)
    if _solved(verdict):
        return Result(Status.FEASIBLE, decode(problem, found, solver), stats=stats)
    proved = verdict == cp_model.INFEASIBLE
    return Result(Status.INFEASIBLE if proved else Status.UNKNOWN, stats=stats)


def _solved(verdict: cp_model.CpSolverStatus) -> bool:
    return verdict in (cp_model.OPTIMAL, cp_model.FEASIBLE)


def _stated(
    watch: StopWatch,
    model: cp_model.CpModel,
    problem: P,
    found: V,
    every: Iterable[Callable[[cp_model.CpModel, P, V], None]],
) -> bool:
    """State each kind; False: the time was over first, and the model is not complete."""
    for state in every:
        if watch.expired():
            return False
        state(model, problem, found)
    return not watch.expired()


# Rounds of the steps, and what fits into them, as CP-SAT has it for every class of all-reduce.


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
    sent: Mapping[tuple[int, int], Sequence[AnyPoint]],
    variable: Callable[[AnyPoint], cp_model.IntVar],
    charged: Iterable[Sequence[int]] | None = None,
) -> None:
    """What loads a capacity in a step fits into its rounds; the others as in ``points.loads``.

    Where counting shows that it is full, it is stated: that follows, and saves the solver time.
    """
    full, longest = full_capacities(problem), problem.rounds - problem.steps + 1
    for k, step, counts in loads(problem, sent, charged):
        sent_of = [variable(one) for one in counts]
        rate = small_rate(problem.capacities[k], longest, most_sent(sent_of, counts.values()))
        weights = [count * rate.denominator for count in counts.values()]
        load = cp_model.LinearExpr.weighted_sum(sent_of, weights)
        most = rate.numerator * rounds[step]
        model.add(load == most if k in full else load <= most)


def most_sent(variables: Iterable[cp_model.IntVar], counts: Iterable[int]) -> int:
    """So many messages at most, where each variable counts so many times."""
    pairs = zip(variables, counts, strict=True)
    return sum(max(x.proto.domain) * count for x, count in pairs)


# Bandwidths by fractions small enough for a solver's 64 bits, which let the same messages pass.
# Messages are whole, and a step has a whole number of rounds.  So of a bandwidth b only the whole
# parts of b r count, for the rounds r that a step can have; the largest fraction up to b that has
# no greater denominator than r can be has the same ones.  Nor does it matter by how much a capacity
# lets more pass than there is.


MAX_ROUNDS = 2**31


def check_rounds(rounds: int) -> None:
    """Refuse rounds that would overflow.

    Raises:
        TooLarge: they are more than MAX_ROUNDS.
    """
    if rounds > MAX_ROUNDS:
        given = f"{rounds} rounds" if rounds < 10**20 else "so many rounds"
        raise TooLarge(given, f"are more than {MAX_ROUNDS}", "ask for fewer rounds and chunks")


def small_rate(rate: Fraction, rounds: int, messages: int) -> Fraction:
    """What stands for a bandwidth in steps of at most ``rounds`` rounds and so many messages."""
    return below(min(rate, Fraction(messages)), rounds)


def below(value: Fraction, denominator: int) -> Fraction:
    """The largest fraction up to a positive value that has no greater denominator.

    The convergents of its continued fraction, as far as they go, and the last one between two:
    of these two neighbours the lesser.
    """
    if value.denominator <= denominator:
        return value
    before, last, rest = (0, 1), (1, 0), value
    while True:
        whole = rest.numerator // rest.denominator
        if before[1] + whole * last[1] > denominator:
            break
        before, last = last, (before[0] + whole * last[0], before[1] + whole * last[1])
        rest = 1 / (rest - whole)
    times = (denominator - before[1]) // last[1]
    between = Fraction(before[0] + times * last[0], before[1] + times * last[1])
    return min(between, Fraction(*last))
