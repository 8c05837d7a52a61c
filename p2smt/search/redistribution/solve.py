"""The public search for a redistribution: the fastest steps under a cap, checked and proved."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from p2smt.arrays.array_type import ArrayType
from p2smt.arrays.ends import Ends
from p2smt.arrays.memory import MemoryLimit
from p2smt.cluster.nodes.blocking import check_stated
from p2smt.cluster.topology import Topology
from p2smt.cost.redistribution.bounds import LinkBound, physical_bound_s
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.errors import InputError
from p2smt.plans.check.numbers import PROVED_WITHIN
from p2smt.plans.redistribution.plan import RedistributionPlan
from p2smt.result import OUT_OF_TIME, SearchLimits, Status, StopWatch
from p2smt.search.redistribution.checked import checked_plan
from p2smt.search.redistribution.cuts import Cuts
from p2smt.search.redistribution.exact.best import best_path
from p2smt.search.redistribution.least import LeastCaps, least_caps
from p2smt.search.redistribution.path import PathResult
from p2smt.search.redistribution.portfolio import FoundPath, exact_share_s, find_path
from p2smt.search.redistribution.question import RedistributionAnswer, RedistributionQuestion
from p2smt.search.redistribution.tidy import tidied
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
