"""The public search for a redistribution: the fastest steps under a cap, checked and proved."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.cluster.allocation import check_stated
from p2smt.cluster.topology import Topology
from p2smt.errors import EncodingBug, InputError, TooLarge
from p2smt.plans.solution import ProofStatus
from p2smt.resharding.best_path import best_path
from p2smt.resharding.cuts import Cuts, PathResult
from p2smt.resharding.endpoints import Ends, Splits, ends_of, prime_factors
from p2smt.resharding.layered import best_layered
from p2smt.resharding.reachability import (
    LeastCaps,
    RedistributionAnswer,
    RedistributionQuestion,
    least_caps,
)
from p2smt.resharding.redistribution_plan import PlannedStep, RedistributionPlan
from p2smt.resharding.semantics import check_types
from p2smt.resharding.states import ArrayState, Frame, digits_of_part
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import ArrayStep, MemoryLimit, StepKind, within
from p2smt.resharding.time_left import LinkBound, level_splits, physical_bound_s
from p2smt.resharding.types import ArrayType
from p2smt.result import (
    OUT_OF_TIME,
    PROVED_WITHIN,
    ROUNDING,
    SearchLimits,
    SolveStats,
    Status,
    StopWatch,
)
from p2smt.units import format_bytes

OTHER_SENDERS = "other holders may send the blocks of a permute faster"
_MOST_KEPT = 256
_SETTLED: OrderedDict[RedistributionQuestion, RedistributionAnswer] = OrderedDict()
"""Answers that are proved, by question, the latest last: a training loop asks again and again."""
_TURN = threading.Lock()
"""Whose turn it is to read or change what is kept; nobody searches while having it."""


def solve_redistribution(
    source: ArrayType,
    target: ArrayType,
    topology: Topology,
    *,
    memory: int | None = None,
    keep_source: bool = False,
    max_steps: int | None = None,
    cuts: Cuts = Cuts.PRIMES,
    limits: SearchLimits | None = None,
) -> RedistributionPlan:
    """The fastest plan from one type of an array to another, with a proof.

    Args:
        source, target: types of one array on the same devices, all of the topology's.
        topology: the cluster, which prices every step.
        memory: bytes on a device that input, output and pack buffer of a step may take; None:
            every state is at most the larger of source and destination.
        keep_source: the source stays alive beside the steps after the first.
        max_steps: compare plans of at most so many steps only.
        cuts: where axes may be cut.
        limits: of the search; a plan that is not proved is ``Status.FEASIBLE``.

    Raises:
        InputError: types that do not fit each other or the topology; a cap below source or
            destination, or that no plan meets (it names the least that one meets); too few
            steps for any plan; or the time limit came before any plan was found, or types are too
            many to look at.
        EncodingBug: the steps found failed the independent check.
    """
    asked = RedistributionQuestion(
        source, target, topology, memory, keep_source, max_steps, cuts, limits or SearchLimits()
    )
    answer = find_redistribution(asked)
    if answer.plan is None:
        raise no_plan(answer)
    return answer.plan


def no_plan(answer: RedistributionAnswer) -> InputError:
    """Why there is no plan, in one line."""
    least, most = answer.least, _of_steps(answer)
    if answer.status is not Status.INFEASIBLE:
        if answer.orders_left_out and not answer.stats.reason:
            rule = f"no plan{most} in the orders of the primes that were searched"
            return InputError("memory", rule, "give more memory or sub-axes")
        remedy = "give more time" if answer.stats.reason == OUT_OF_TIME else ""
        return InputError("redistribution", f"no plan was found: {answer.stats.reason}", remedy)
    if least.too_few_steps:
        return InputError("steps", f"no plan{most} exists", "give more steps")
    remedy = "allow more steps or memory"
    if least.memory_bytes is not None:
        remedy = f"the least memory that one meets is {least.memory_bytes}B"
    given = f"memory {format_bytes(answer.memory.limit_bytes)}"
    return InputError(given, f"no plan{most} keeps to it", remedy)


def _of_steps(answer: RedistributionAnswer) -> str:
    most = answer.question.max_steps
    return "" if most is None else f" of at most {most} step{'s' * (most != 1)}"


def find_redistribution(
    question: RedistributionQuestion, *, until_interrupted: bool = False
) -> RedistributionAnswer:
    """The answer to a question, plan or none; proved ones are kept for the next call.

    ``until_interrupted``: on KeyboardInterrupt the best plan so far, if any, is the answer.

    Raises:
        InputError: the types do not fit each other, or the cap is below source or destination.
        EncodingBug: the steps found failed the independent check.
    """
    check_stated(question.topology)
    with _TURN:
        known = _SETTLED.get(question)
        if known is not None:
            _SETTLED.move_to_end(question)
            return known
    found = _find(question)
    if found.interrupted and not until_interrupted:
        raise KeyboardInterrupt
    if found.status.settled:
        with _TURN:
            _SETTLED[question] = found
            if len(_SETTLED) > _MOST_KEPT:
                _SETTLED.popitem(last=False)
    return found


def _find(question: RedistributionQuestion) -> RedistributionAnswer:
    watch = StopWatch.start(question.limits)
    ends = question.ends()
    memory = question.memory(ends[0])
    prices = [StepPrices(question.topology, one.frame) for one in ends]
    bound_s = min(physical_bound_s(question.topology, one) for one in ends)
    path = find_path(question, ends, prices, memory, watch)
    path = _of_all_senders(question, ends, prices, memory, watch, path)
    path = _bounded(question, ends, path)
    found = _of_all_orders(path, bound_s, question.orders_left_out())
    stats = replace(found.result.stats, wall_s=watch.elapsed_s())
    if found.result.seconds is None:
        return _without_plan(question, ends, prices, memory, watch, found.result, bound_s)
    chosen, priced = ends[found.result.ends], prices[found.result.ends]
    steps = tidied(chosen, priced, found.result.steps, memory)
    result = replace(found.result, steps=steps)
    plan = checked_plan(question, chosen, result, found.max_steps, bound_s, stats)
    left_out = question.orders_left_out()
    return RedistributionAnswer(
        question,
        memory,
        plan.status,
        plan,
        plan.bound_s,
        plan.physical_bound_s,
        stats,
        orders_left_out=left_out,
        interrupted=found.interrupted,
    )


def _without_plan(
    question: RedistributionQuestion,
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    watch: StopWatch,
    result: PathResult,
    physical_s: float,
) -> RedistributionAnswer:
    """No plan; of an infeasible question with the least caps that one meets."""
    least = LeastCaps()
    if result.status is Status.INFEASIBLE:
        least = least_caps(ends, prices, memory, question.max_steps, watch.left())
    stats, left_out = replace(result.stats, wall_s=watch.elapsed_s()), question.orders_left_out()
    return RedistributionAnswer(
        question, memory, result.status, None, result.bound_s, physical_s, stats, least, left_out
    )


def _of_all_orders(found: FoundPath, physical_s: float, left_out: int) -> FoundPath:
    """What was found, with what is proved of the orders of the primes that were left out, too."""
    result = found.result
    if not left_out or result.seconds == 0.0:
        return found
    status = Status.UNKNOWN if result.seconds is None else Status.FEASIBLE
    return replace(found, result=replace(result, status=status, bound_s=physical_s))


def _of_all_senders(
    question: RedistributionQuestion,
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    watch: StopWatch,
    found: FoundPath,
) -> FoundPath:
    """What was found, with what is proved whoever sends the blocks of permutes.

    Where for some permute priced a faster choice may exist, the search is made again at prices that
    no choice beats.
    """
    result, seconds = found.result, found.result.seconds
    if seconds is None or all(price.all_proved for price in prices):
        return found
    least = [StepPrices(question.topology, one.frame, least=True) for one in ends]
    limits = replace(watch.left(), time_limit_s=exact_share_s(watch))
    known = best_path(ends, least, memory, limits, max_steps=question.max_steps)
    if result.status is Status.OPTIMAL and known.bound_s >= seconds * (1 - PROVED_WITHIN):
        return found
    stats = replace(result.stats, reason=result.stats.reason or OTHER_SENDERS)
    bound_s = min(known.bound_s, result.bound_s)
    result = replace(result, status=Status.FEASIBLE, bound_s=bound_s, stats=stats)
    return replace(found, result=result)


def _bounded(question: RedistributionQuestion, ends: Sequence[Ends], found: FoundPath) -> FoundPath:
    """What was found, with the links' bound on every plan where the search proved less."""
    if found.result.status is Status.INFEASIBLE:
        return found
    bounds = [LinkBound(question.topology, one.frame, one.target) for one in ends]
    links_s = min(one.seconds(end.source) for one, end in zip(bounds, ends, strict=True))
    result = replace(found.result, bound_s=max(links_s, found.result.bound_s))
    return replace(found, result=result)


# From the steps that a search found to a plan: every rule, meaning, memory and times again.


def checked_plan(
    question: RedistributionQuestion,
    ends: Ends,
    found: PathResult,
    max_steps: int | None,
    physical_bound_s: float,
    stats: SolveStats,
) -> RedistributionPlan:
    """The plan of these steps.

    Raises:
        EncodingBug: a step breaks its rule, they do not lead from source to destination, elements
            end elsewhere or count twice, or the cap is not kept.
    """
    memory = question.memory(ends)
    _check_path(ends, found.steps)
    if not within(ends.frame, ends.source, found.steps, memory):
        raise _bug("the steps exceed the cap", ends, found.steps)
    prices = StepPrices(question.topology, ends.frame)
    steps = tuple(planned(prices, step) for step in found.steps)
    moves = [(one.step, one.sources) for one in steps]
    for wrong in check_types(question.source, question.target, ends.frame, ends.source, moves):
        raise _bug(wrong.message, ends, found.steps)
    seconds = sum(step.time.seconds for step in steps)
    proved = found.status is Status.OPTIMAL and found.bound_s >= seconds * (1 - PROVED_WITHIN)
    return RedistributionPlan(
        question.topology,
        question.source,
        question.target,
        ends.frame,
        ends.source,
        steps,
        memory,
        Status.OPTIMAL if proved else Status.FEASIBLE,
        min(found.bound_s, seconds),
        min(physical_bound_s, seconds),
        max_steps,
        question.cuts is Cuts.LEVELS,
        question.limits,
        stats,
    )


def planned(prices: StepPrices, step: ArrayStep) -> PlannedStep:
    """A step with its time, and a permute with its messages."""
    if step.kind is not StepKind.PERMUTE:
        return PlannedStep(step, prices.step(step))
    source, _ = prices.messages(step.before, step.after)
    return PlannedStep(step, prices.step(step), tuple(int(device) for device in source))


def _check_path(ends: Ends, steps: tuple[ArrayStep, ...]) -> None:
    """Raise EncodingBug unless the steps follow each other by their rules, from end to end."""
    states = [ends.source, *(step.after for step in steps)]
    begun = all(step.before == state for step, state in zip(steps, states, strict=False))
    if not begun or states[-1] != ends.target:
        raise _bug("the steps do not lead from source to destination", ends, steps)
    for step in steps:
        try:
            step.check(ends.frame)
        except InputError as error:
            raise _bug(str(error), ends, steps) from None


def _bug(reason: str, ends: Ends, steps: tuple[ArrayStep, ...]) -> EncodingBug:
    frame = ends.frame
    problem = {"sizes": frame.sizes, "shape": frame.shape, "from": ends.source, "to": ends.target}
    return EncodingBug(reason, problem, [step.text(frame) for step in steps])


# A good plan quickly where types are many: on digits that are several of a level's together.
# Fewer digits leave fewer types, which the exact search visits all.  Every plan on coarse digits is
# one on the fine ones, so that it bounds the best from above.


MOST_DIGITS = 4
COARSE_S = 5.0
"""Wall seconds that a first plan may take."""


def coarse_path(
    question: RedistributionQuestion,
    ends: Sequence[Ends],
    memory: MemoryLimit,
    limits: SearchLimits,
) -> PathResult | None:
    """A plan in the frame of one of ``ends``; None: there is none on coarse digits, or no time."""
    topology, source = question.topology, question.source
    try:
        coarse = ends_of(source, question.target, coarse_splits(topology, source))
    except InputError:  # the types have cuts of their own, between which these do not fit
        return None
    left = limits.time_limit_s
    share = replace(limits, time_limit_s=COARSE_S if left is None else min(COARSE_S, left / 2))
    prices = [StepPrices(topology, one.frame) for one in coarse]
    found = best_path(coarse, prices, memory, share, max_steps=question.max_steps)
    if found.seconds is None:
        return None
    return _refined(found, coarse[found.ends].frame, ends)


def coarse_splits(topology: Topology, kind: ArrayType) -> Splits:
    """At most ``MOST_DIGITS`` factors, if levels are no more: those of one level are multiplied."""
    found = [
        [prime_factors(factor) for factor in axis] for axis in level_splits(topology, kind.mesh)
    ]
    while sum(len(factor) for axis in found for factor in axis) > MOST_DIGITS:
        pairs = [
            (factor[at] * factor[at + 1], factor, at)
            for axis in found
            for factor in axis
            for at in range(len(factor) - 1)
        ]
        if not pairs:
            break
        product, factor, at = min(pairs, key=lambda pair: pair[0])
        factor[at : at + 2] = [product]
    return tuple(tuple(part for factor in axis for part in factor) or (1,) for axis in found)


def _refined(found: PathResult, coarse: Frame, ends: Sequence[Ends]) -> PathResult | None:
    """The same steps on the finer digits of the first of ``ends`` that cuts where they do."""
    for number, one in enumerate(ends):
        try:
            finer = _Refinement.of(coarse, one.frame)
        except InputError:
            continue
        return replace(found, ends=number, steps=tuple(map(finer.step, found.steps)))
    return None


@dataclass(frozen=True, slots=True)
class _Refinement:
    """Of each coarse digit the fine ones that it is made of."""

    parts: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(coarse: Frame, fine: Frame) -> _Refinement:
        """Raises InputError unless every coarse digit is made of fine ones."""
        parts = (digits_of_part(digit, fine.digits, fine.mesh) for digit in coarse.digits)
        return _Refinement(tuple(parts))

    def step(self, step: ArrayStep) -> ArrayStep:
        return type(step)(self.state(step.before), self.state(step.after))

    def state(self, state: ArrayState) -> ArrayState:
        dims = tuple(self._digits(dim) for dim in state.dims)
        return ArrayState(dims, tuple(sorted(self._digits(state.partial))), state.order)

    def _digits(self, digits: Sequence[int]) -> tuple[int, ...]:
        return tuple(fine for digit in digits for fine in self.parts[digit])


# Which search answers: the exact one where there are few types, the layered one beyond.
# The exact search proves its answer for plans of any length.  Where its share of the time ends
# without a proof, or it says at once that types are too many, layers of constraints prove one for
# plans of at most so many steps; a plan on coarse digits is there first, whatever the time limit.


EXACT_S = 8.0
"""Wall seconds after which the layers take over, where no number of steps was asked for."""
EXACT_SHARE = 0.5
"""Of a time limit, what the exact search may take before the layers do."""
FEW_DIGITS = 7
MANY_LAYERS, FEW_LAYERS = 5, 4
"""Steps of the layers up to ``FEW_DIGITS`` digits, and beyond."""
MOST_LAYERS = 8
"""Where no plan of so few steps keeps to the cap, layers are added up to here."""


@dataclass(frozen=True, slots=True)
class FoundPath:
    """A result, and the most steps of the plans that it speaks of (None: of any length).

    ``interrupted``: by the user; it is the best until then.
    """

    result: PathResult
    max_steps: int | None
    interrupted: bool = False


def find_path(
    question: RedistributionQuestion,
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    watch: StopWatch,
) -> FoundPath:
    """The fastest steps over all ends, and for plans of which length that is proved.

    Raises:
        KeyboardInterrupt: before any plan was found.
    """
    if all(one.source == one.target for one in ends):
        return FoundPath(_nothing_to_do(), question.max_steps)
    nested = ends[0].frame.nested
    limits = watch.left()
    if not nested:  # the layers follow
        limits = replace(limits, time_limit_s=exact_share_s(watch))
    known = best_path(ends, prices, memory, limits, max_steps=question.max_steps)
    if known.status.settled or nested:
        return FoundPath(known, question.max_steps)
    if known.seconds is None:
        coarse = coarse_path(question, ends, memory, watch.left())
        known = known if coarse is None else _not_proved(coarse, known)
    return _layered(question, ends, prices, memory, watch, known)


def _layered(
    question: RedistributionQuestion,
    ends: Sequence[Ends],
    prices: Sequence[StepPrices],
    memory: MemoryLimit,
    watch: StopWatch,
    known: PathResult,
) -> FoundPath:
    """The best of what is known and of plans of at most so many steps.

    Where there are too many kinds of groups for layers, what is known stands as it is.
    """
    few = len(ends[0].frame.digits) <= FEW_DIGITS
    first = question.max_steps or (MANY_LAYERS if few else FEW_LAYERS)
    for layers in range(first, (question.max_steps or MOST_LAYERS) + 1):
        left = watch.left()
        try:
            layered = best_layered(ends, prices, memory, left, layers, at_most_s=known.seconds)
        except TooLarge as error:
            reason = f"{error.given} {error.rule}"
            stats = replace(known.stats, reason=reason)
            return FoundPath(replace(known, stats=stats), question.max_steps)
        except KeyboardInterrupt:
            if known.seconds is None:
                raise
            best = replace(known, status=Status.FEASIBLE)
            return FoundPath(best, question.max_steps, interrupted=True)
        found = _better(known, layered)
        if found.seconds is not None or layered.status is not Status.INFEASIBLE:
            break
        known = replace(known, stats=found.stats)
    if found.status is Status.INFEASIBLE and question.max_steps is None:
        reason = f"there is none of at most {layers} steps, and longer ones were not looked for"
        stats = replace(found.stats, reason=reason)
        found = replace(found, status=Status.UNKNOWN, stats=stats)
    if len(found.steps) > layers:
        return FoundPath(known, None)  # of plans as long as this one the layers prove nothing
    return FoundPath(found, layers)


def exact_share_s(watch: StopWatch) -> float:
    """Wall seconds that the exact search may take of what is left."""
    left = watch.remaining_s()
    return EXACT_S if left is None else min(EXACT_S, EXACT_SHARE * left)


def _better(known: PathResult, layered: PathResult) -> PathResult:
    """The better of a plan that is known and of what the layers found below it."""
    proved = layered.status in (Status.OPTIMAL, Status.INFEASIBLE)
    stats = _summed(
        known.stats, layered.stats, "" if proved else layered.stats.reason or OUT_OF_TIME
    )
    if layered.seconds is not None and (known.seconds is None or layered.seconds < known.seconds):
        return replace(layered, bound_s=min(layered.bound_s, layered.seconds), stats=stats)
    if known.seconds is None:
        return replace(layered, stats=stats)
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    bound_s = known.seconds if proved else min(layered.bound_s, known.seconds)
    stats = stats if proved else replace(stats, solver=known.stats.solver)
    return replace(known, status=status, bound_s=bound_s, stats=stats)


def _not_proved(coarse: PathResult, exact: PathResult) -> PathResult:
    """A plan on coarse digits, the best of those perhaps, with what is known of all others."""
    stats = _summed(exact.stats, coarse.stats, exact.stats.reason)
    return replace(coarse, status=Status.FEASIBLE, bound_s=exact.bound_s, stats=stats)


def _summed(before: SolveStats, last: SolveStats, reason: str) -> SolveStats:
    """What two searches took together, by the name of the last one."""
    counters = Counter(dict(before.counters))
    counters.update(dict(last.counters))
    return SolveStats(
        last.solver,
        before.wall_s + last.wall_s,
        before.calls + last.calls,
        tuple(counters.items()),
        before.effort + last.effort,
        reason,
    )


def _nothing_to_do() -> PathResult:
    return PathResult(Status.OPTIMAL, 0, (), 0.0, 0.0, SolveStats("none"))


# Of plans that take equally long, the one that reads best: lists of digits in ascending order.
# An all-to-all may leave its digits in any order at the same price.  In ascending order adjacent
# digits are one axis, and blocks that follow each other in memory need no pack buffer.


def tidied(
    ends: Ends, prices: StepPrices, steps: tuple[ArrayStep, ...], memory: MemoryLimit
) -> tuple[ArrayStep, ...]:
    """The same kinds of steps by way of tidier states, where that costs nothing."""
    for number in range(1, len(steps)):
        state = steps[number].before
        other = replace(state, dims=tuple(tuple(sorted(dim)) for dim in state.dims))
        if other != state:
            changed = _by_way_of(steps, number, other)
            if _as_good(ends, prices, changed[number - 1 : number + 1], steps, number) and within(
                ends.frame, ends.source, changed, memory
            ):
                steps = changed
    return steps


def _by_way_of(
    steps: tuple[ArrayStep, ...], number: int, state: ArrayState
) -> tuple[ArrayStep, ...]:
    """The steps with another state before the one of that number."""
    into, out_of = steps[number - 1], steps[number]
    changed = (type(into)(into.before, state), type(out_of)(state, out_of.after))
    return (*steps[: number - 1], *changed, *steps[number + 1 :])


def _as_good(
    ends: Ends,
    prices: StepPrices,
    changed: tuple[ArrayStep, ...],
    steps: tuple[ArrayStep, ...],
    number: int,
) -> bool:
    """Whether the two steps obey their rules and take no longer than those they replace."""
    try:
        for step in changed:
            step.check(ends.frame)
    except InputError:
        return False
    now = sum(prices.step(step).seconds for step in changed)
    before = sum(prices.step(step).seconds for step in steps[number - 1 : number + 1])
    return now <= before * (1 + ROUNDING)


# Whether the plan of a redistribution in a file is the fastest: its question is solved again.


@dataclass(frozen=True, slots=True)
class RedistributionProof:
    """What solving again says: no plan takes less than ``bound_s``; ``better`` takes less than it.

    ``max_steps``: of plans of at most so many steps; None: of any length.
    """

    status: ProofStatus
    objective_s: float
    bound_s: float
    better: RedistributionPlan | None
    max_steps: int | None


def prove_redistribution(
    plan: RedistributionPlan, limits: SearchLimits | None = None
) -> RedistributionProof:
    """Solve the question of a valid plan again, under its own limits or others.

    Raises:
        EncodingBug: the search says that there is no plan, or that none is as fast as this one.
    """
    answer = find_redistribution(question_of(plan, limits))
    own_s, found = plan.objective_s, answer.plan
    most = plan.max_steps if found is None else found.max_steps
    within = most is None or len(plan.steps) <= most
    if within and (
        answer.status is Status.INFEASIBLE or answer.bound_s > own_s * (1 + PROVED_WITHIN)
    ):
        steps = [step.text(plan.frame) for step in plan.array_steps]
        raise EncodingBug("the search excludes a valid plan", steps, answer.bound_s)
    if found is not None and found.objective_s < own_s * (1 - PROVED_WITHIN):
        return RedistributionProof(ProofStatus.REFUTED, own_s, answer.bound_s, found, most)
    status = ProofStatus.PROVED if answer.status is Status.OPTIMAL else ProofStatus.OPEN
    return RedistributionProof(status, own_s, min(answer.bound_s, own_s), None, most)


def question_of(
    plan: RedistributionPlan, limits: SearchLimits | None = None
) -> RedistributionQuestion:
    """The question that a plan answers."""
    memory = plan.memory
    return RedistributionQuestion(
        plan.source,
        plan.target,
        plan.topology,
        memory.limit_bytes if memory.of_steps else None,
        memory.keep_source,
        plan.max_steps,
        Cuts.LEVELS if plan.levels_only else Cuts.PRIMES,
        limits or plan.limits,
    )
