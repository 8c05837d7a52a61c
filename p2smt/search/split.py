"""Whether a payload gains from going through several programs at once, and through which.

A linear program says which mixture of programs loads the links least, and what levels are worth; a
program that is cheapest at these prices is new, or none is better.  The prices, made fractions, are
all that a proof needs (:mod:`p2smt.plans.check.check_split`).  Parts are tried for the programs of
the mixture, those that are cheapest at the prices or fastest alone, and the answer's own: two or
three at once, in twelfths, each step as early as it can begin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from p2smt.collectives.demand import demand_of, plain_kind
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import Pipelined, StepTime, program_s
from p2smt.errors import EncodingBug
from p2smt.parallelism.placement import FloatArray, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.check.check_plan import Note, PlanReport, check_plan
from p2smt.plans.check.check_split import LeastSplit, end_s, overlaps, split_faults
from p2smt.plans.file_model import AnyPlan, PlanModel, SplitModel
from p2smt.plans.problem import plan_problem
from p2smt.plans.sides import part_bytes, parts_as_plan
from p2smt.plans.solution import (
    PayloadSplit,
    RequestAnswer,
    Solution,
    SplitPart,
    program_answer,
)
from p2smt.problems.packing import PackedColumn, PackingProblem
from p2smt.programs.check import checked_once
from p2smt.programs.program import Program
from p2smt.result import SAME, SearchLimits, Status, StopWatch
from p2smt.search.program_synthesis import Task, list_programs, program_task
from p2smt.search.programs_pipelined import LISTED_DEPTH, MAX_LISTED_PROGRAMS
from p2smt.solvers.ask import ask_packing, solver_of

WORTH = 1e-3
"""The least part of the time that a split must save to be told."""
_DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 100, 1000, 10**6)
_CLOSE = 1e-4  # of a bound that is lost to small denominators
_ROUNDS = 200
_FASTEST, _CHEAPEST = 3, 12  # programs that are tried in parts
_FINENESS = {2: 12, 3: 12}  # by number of parts, the denominator of their shares
_REFINED = 8  # choices of programs whose shares are changed

Starts = tuple[tuple[float, ...], ...]


def find_splits(found: Solution, limits: SearchLimits) -> tuple[PayloadSplit, ...]:
    """The fastest split found for each request of an answer that has programs, with its proof."""
    best, watch = found.best, StopWatch.start(limits)
    if best is None or best.matrix is None:
        return ()
    splits = []
    for number, answer in enumerate(best.requests):
        if answer.program is not None and plain_kind(answer.request.kind).has_programs:
            axes = found.problem.axis_indices(answer.request)
            scene = Scene.of(found.problem.topology, Placement(best.matrix), axes)
            task = program_task(found.problem, answer.request, scene.hierarchy, solver_of("cpsat"))
            splits.append(_Search(scene, task, answer, watch).split(number))
    return tuple(splits)


def _programs(task: Task, limits: SearchLimits) -> tuple[Program, ...] | None:
    """Every program of a request, checked; None where they are too many, or time is too short."""
    if task.hierarchy.depth > LISTED_DEPTH or not task.problem().small_model:
        return None
    limits = replace(limits, max_answers=MAX_LISTED_PROGRAMS)
    result, _ = list_programs(task, limits)
    return result.value if result.status is Status.COMPLETE else None


class _Search:
    """A request's programs on a scene."""

    def __init__(self, scene: Scene, task: Task, answer: RequestAnswer, watch: StopWatch) -> None:
        self.scene, self.answer, self.watch = scene, answer, watch
        self.every = _programs(task, watch.left())
        self.programs = self.every or ()
        self.kind = plain_kind(answer.request.kind)
        self._timed: dict[tuple[Program, int], tuple[StepTime, ...]] = {}

    def split(self, number: int) -> PayloadSplit:
        """The fastest split found, and what none is below."""
        if not self.programs:
            return PayloadSplit(number, self.answer.seconds, ())
        least, payload = LeastSplit(self.scene, self.kind, self.programs), self._payload
        table = _Loads(least)
        prices, mixed = self._mixture(least, table)
        seconds, parts = self._best_parts([*mixed, *self._fastest(table.tight(prices))])
        least_s = least.seconds(prices, payload)
        nearest = float(least.one(prices) / least.per_byte(prices))
        if seconds < least_s * (1 - SAME):
            raise EncodingBug(f"a split takes {seconds} s, less than {least_s} s", self.kind, parts)
        return PayloadSplit(
            number, seconds, parts, prices, least_s, least_s > least.empty_s, nearest
        )

    @property
    def _payload(self) -> int:
        return self.answer.request.payload_bytes

    # Prices.

    def _mixture(
        self, least: LeastSplit, table: _Loads
    ) -> tuple[tuple[Fraction, ...], list[Program]]:
        """Prices that prove the most, and the programs of a mixture that loads links least."""
        columns: list[tuple[int, tuple[float, ...]]] = []
        prices: Sequence[float] = [1 / table.levels] * table.levels
        weights, load = tuple[float, ...](), math.inf
        for _ in range(_ROUNDS):
            cost, column = table.cheapest(prices)
            if weights and (cost >= load * (1 - SAME) or column in columns):
                break
            columns.append(column)
            packed = tuple(PackedColumn(0, dict(enumerate(loads))) for _, loads in columns)
            found = ask_packing(PackingProblem(1, table.levels, packed), self.watch.left()).value
            if found is None:
                break
            prices, weights, load = found.prices, found.weights, found.load
        used = [p for (p, _), weight in zip(columns, weights, strict=False) if weight > SAME]
        return _as_fractions(prices, least), [self.programs[p] for p in used]

    # Parts.

    def _fastest(self, tight: Sequence[int]) -> list[Program]:
        """The answer's program; the fastest for a third, of all and of those cheapest at prices."""
        third = max(1, self._payload // 3)
        times = np.array([program_s(self._steps(one, third), 1) for one in self.programs])
        order = np.argsort(times, kind="stable")[:_FASTEST].tolist()
        order += sorted(tight, key=lambda p: (times[p], p))[:_CHEAPEST]
        own = [self.answer.program] if self.answer.program else []
        return [*own, *(self.programs[p] for p in order)]

    def _steps(self, program: Program, payload: int) -> tuple[StepTime, ...]:
        if (program, payload) not in self._timed:
            rows = checked_once(demand_of(self.kind), self.scene.hierarchy, program)
            times = self.scene.program_times(program, rows.trace.payload_rows, payload)
            self._timed[program, payload] = times
        return self._timed[program, payload]

    def _best_parts(self, programs: Sequence[Program]) -> tuple[float, tuple[SplitPart, ...]]:
        """The fastest parts, and their time; none where the answer's own program is as fast.

        Programs are chosen by even parts; then the parts of the best few change.
        """
        names = tuple(dict.fromkeys(programs))
        groups = [g for count in _FINENESS for g in combinations_with_replacement(names, count)]
        even = sorted((self._took(group, _even(len(group))), n) for n, group in enumerate(groups))
        chosen = [groups[n] for _, n in even[:_REFINED]]
        tried = [(group, shares) for group in chosen for shares in _shares(len(group))]
        times = [self._took(*one) for one in tried]
        least = min(times)
        if least > self.answer.seconds * (1 - WORTH):
            return self.answer.seconds, ()
        best = next(n for n, took in enumerate(times) if took <= least * (1 + SAME))
        return times[best], self._parts(*tried[best])

    def _took(self, programs: Sequence[Program], shares: Sequence[Fraction]) -> float:
        """When the last of such parts ends; never, where one has no byte or the time is up."""
        sizes = part_bytes(self._payload, shares)
        if min(sizes) < 1 or self.watch.expired():
            return math.inf
        steps = [self._steps(p, size) for p, size in zip(programs, sizes, strict=True)]
        return end_s(steps, as_early_as_can_be(steps))

    def _parts(
        self, programs: Sequence[Program], shares: Sequence[Fraction]
    ) -> tuple[SplitPart, ...]:
        """Parts with their times, checked: nothing is believed of a search for them."""
        request = self.answer.request
        sizes = part_bytes(request.payload_bytes, shares)
        steps = [self._steps(p, size) for p, size in zip(programs, sizes, strict=True)]
        starts = as_early_as_can_be(steps)
        if faults := list(overlaps(steps, starts)):
            raise EncodingBug(faults[0], str(request), list(map(str, programs)))
        found = []
        for program, share, size, own, at in zip(
            programs, shares, sizes, steps, starts, strict=True
        ):
            checked = checked_once(demand_of(self.kind), self.scene.hierarchy, program)
            timed = Pipelined(1, program_s(own, 1), own)
            part = replace(request, payload_bytes=size)
            answer = program_answer(part, self.scene, program, checked, timed)
            found.append(SplitPart(share, answer, at))
        return tuple(found)


class _Loads:
    """What programs load, over the slowest way of any step, step by step and way by way."""

    def __init__(self, least: LeastSplit) -> None:
        slowest = float(max(rate for rates in least.rates for way in rates for rate in way)) or 1.0
        self.rates = [np.array(rates, dtype=float) / slowest for rates in least.rates]
        self.levels = self.rates[0].shape[1]
        longest = max(map(len, least.steps))
        self.keys = np.zeros((len(least.steps), longest), dtype=np.int64)
        self.parts: FloatArray = np.zeros((len(least.steps), longest))
        for p, steps in enumerate(least.steps):
            for s, (part, key) in enumerate(steps):
                self.keys[p, s], self.parts[p, s] = key, float(part)

    def cheapest(self, prices: Sequence[float]) -> tuple[float, tuple[int, tuple[float, ...]]]:
        """The least cost of a program at these prices; its number, and what it loads so."""
        each, ways = self._costs(prices)
        p = int(each.argmin())
        loads = (self.parts[p][:, None] * np.array(ways)[self.keys[p]]).sum(axis=0)
        return float(each[p]), (p, tuple(loads.tolist()))

    def tight(self, prices: Sequence[Fraction]) -> list[int]:
        """The programs that cost the least at these prices, all but for rounding."""
        each, _ = self._costs([float(price) for price in prices])
        return np.flatnonzero(each <= each.min() * (1 + _CLOSE)).tolist()

    def _costs(self, prices: Sequence[float]) -> tuple[FloatArray, list[FloatArray]]:
        """What each program costs, and the cheapest way of each instruction."""
        at = np.array(prices)
        ways = [rates[int((rates @ at).argmin())] for rates in self.rates]
        costs = np.array([float(way @ at) for way in ways])
        return (self.parts * costs[self.keys]).sum(axis=1), ways


def _as_fractions(prices: Sequence[float], least: LeastSplit) -> tuple[Fraction, ...]:
    """Prices with the smallest denominator that prove nearly as much as the finest."""
    tried = [_rounded(prices, denominator) for denominator in _DENOMINATORS]
    enough = least.per_byte(tried[-1]) * Fraction(1 - _CLOSE)
    return next(one for one in tried if least.per_byte(one) >= enough)


def _rounded(prices: Sequence[float], denominator: int) -> tuple[Fraction, ...]:
    """Multiples of 1/denominator, 1 in all: those that lose most get what is left."""
    exact = np.array(prices, dtype=float) / sum(prices) * denominator
    whole = np.floor(exact).astype(int)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: denominator - int(whole.sum())]] += 1
    return tuple(Fraction(int(n), denominator) for n in whole)


def _even(count: int) -> tuple[Fraction, ...]:
    return (Fraction(1, count),) * count


def _shares(count: int) -> Iterator[tuple[Fraction, ...]]:
    """Even parts first, then all others of that fineness."""
    denominator = _FINENESS[count]
    yield _even(count)
    for whole in _compositions(denominator, count):
        yield tuple(Fraction(n, denominator) for n in whole)


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Positive numbers that add up, in every order."""
    if parts == 1:
        yield (total,)
        return
    for first in range(1, total - parts + 2):
        for rest in _compositions(total - first, parts - 1):
            yield first, *rest


def as_early_as_can_be(steps: Sequence[Sequence[StepTime]]) -> Starts:
    """When the steps of parts begin: always the one that can be first, of several the longest left.

    A step waits for that before it, and for the links of the levels that it loads.
    """
    free = [0.0] * len(steps[0][0].level_s_per_byte)
    ready, starts = [0.0] * len(steps), [list[float]() for _ in steps]
    left = [sum(step.seconds for step in own) for own in steps]
    while any(len(at) < len(own) for at, own in zip(starts, steps, strict=True)):
        waiting = []
        for part, own in enumerate(steps):
            if (done := len(starts[part])) < len(own):
                wires = own[done].level_wire_s
                links = (at for at, wire_s in zip(free, wires, strict=True) if wire_s)
                waiting.append((max(ready[part], *links, 0.0), -left[part], part))
        at, _, part = min(waiting)
        step = steps[part][len(starts[part])]
        starts[part].append(at)
        ready[part], left[part] = at + step.seconds, left[part] - step.seconds
        for level, wire_s in enumerate(step.level_wire_s):
            if wire_s:
                free[level] = at + wire_s
    return tuple(map(tuple, starts))


# Against a file.


def with_splits(plan: AnyPlan, source: str, report: PlanReport) -> PlanReport:
    """The report of a plan, with what its splits misstate."""
    if not isinstance(plan, PlanModel) or plan.splits is None or not report.valid:
        return report
    notes = [
        Note(
            "bound" if "price" in text or "bound" in text else "cost", f"split: {text}", one.request
        )
        for one in plan.splits
        for text in _faults(plan, one, source)
    ]
    return replace(report, notes=(*report.notes, *notes), besides=(*report.besides, "splits"))


def _faults(plan: PlanModel, model: SplitModel, source: str) -> Iterator[str]:
    problem, where = plan_problem(plan, source)
    if model.request >= len(problem.requests) or not isinstance(where, Placement):
        yield f"of request {model.request + 1}, which the plan has on no matrix"
        return
    request, own = problem.requests[model.request], plan.requests[model.request]
    if own.program is None or not isinstance(request.kind, RequestKind):
        yield "of a request without a program"
        return
    if model.parts:
        report = check_plan(parts_as_plan(plan, model), source)
        if not report.valid:
            broken = [violation.message for _, violation in report.violations]
            yield (broken or [note.message for note in report.notes])[0]
            return
    scene = Scene.of(problem.topology, where, problem.axis_indices(request))
    every = _known(problem, request, scene) if model.least_s is not None else None
    least = LeastSplit(scene, plain_kind(request.kind), every) if every else None
    yield from split_faults(model, request, own.seconds or 0.0, scene, least)


def _known(problem: Problem, request: Request, scene: Scene) -> tuple[Program, ...] | None:
    task = program_task(problem, request, scene.hierarchy, solver_of("cpsat"))
    return _programs(task, SearchLimits())
