"""The numbers that an answer rests on, and the problem with one of them changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from p2smt.cluster.library.model import family_of
from p2smt.cluster.topology import Algorithm, Link, Piece, Topology
from p2smt.collectives.demand import plain_kind
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.bounds import step_footprint, step_model
from p2smt.cost.library.ways import hop_s
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import FloatArray, IntArray
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.explanation import SEARCHED, ChangedNumber
from p2smt.problems.placement import Indices
from p2smt.programs.program import Grouping, Program
from p2smt.result import Status, StopWatch
from p2smt.search.program_synthesis import Task
from p2smt.search.programs_pipelined import Catalogs
from p2smt.search.warm_start import RowCounts, known_programs
from p2smt.solvers.ask import Solver


def numbers_of(problem: Problem) -> Iterator[ChangedNumber]:
    """Bandwidths, latencies, the cost of calls where there is one, and payloads; both ways."""
    for grows in (False, True):
        for j, level in enumerate(problem.topology.levels):
            if level.size > 1:
                yield ChangedNumber("bandwidth", level.name, j, grows)
                yield ChangedNumber("latency", level.name, j, grows)
        if problem.topology.library:
            yield ChangedNumber("call", None, 0, grows)
        for r, request in enumerate(problem.requests):
            yield ChangedNumber("payload", str(request), r, grows)


def outward(number: ChangedNumber) -> bool:
    """Whether x grows: times do, but a bandwidth that grows makes them shrink."""
    return number.grows != (number.what == "bandwidth")


def changed(problem: Problem, number: ChangedNumber, times: float) -> Problem:
    """The problem with the number multiplied; a payload is rounded to whole bytes."""
    if number.what == "payload":
        requests = list(problem.requests)
        old = requests[number.index]
        requests[number.index] = replace(old, payload_bytes=changed_bytes(old.payload_bytes, times))
        return replace(problem, requests=tuple(requests))
    return replace(problem, topology=changed_topology(problem.topology, number, times))


def changed_bytes(payload_bytes: int, times: float) -> int:
    """A payload multiplied, in whole bytes."""
    return max(1, round(payload_bytes * times))


def changed_topology(topology: Topology, number: ChangedNumber, times: float) -> Topology:
    """The cluster with a bandwidth, a latency or the cost of calls multiplied."""
    match number.what:
        case "bandwidth":
            return topology.with_bandwidth_factor(number.index, times)
        case "latency":
            return with_latency_factor(topology, number.index, times)
        case "call":
            return topology.with_call_factor(times)
        case _:
            return topology


def with_latency_factor(topology: Topology, j: int, times: float) -> Topology:
    """The cluster with every latency and hop of one level multiplied, a library's too."""
    link, levels = topology.levels[j].link, list(topology.levels)
    slower = replace(
        link,
        pieces=_slower(link.pieces, times),
        measured=tuple((name, _slower(pieces, times)) for name, pieces in link.measured),
        hops=tuple((name, hop * times) for name, hop in (*link.hops, *_hops(topology, j, link))),
    )
    levels[j] = replace(levels[j], link=slower)
    return replace(topology, levels=tuple(levels))


def _slower(pieces: tuple[Piece, ...], times: float) -> tuple[Piece, ...]:
    return tuple(replace(piece, latency_s=piece.latency_s * times) for piece in pieces)


def _hops(topology: Topology, j: int, link: Link) -> Iterator[tuple[str, float]]:
    """A library's hops on a link, where the link has none of its own, under names of the link's."""
    if not topology.library:
        return
    library = topology.known_library
    run = {run.algorithm for _, runs in library.runs for run in runs}
    families = {family_of(one) for one in (*Algorithm, None, *run)}
    protocols = {name for (_, _, name), _ in library.hops} | set(dict(library.protocols))
    for family in sorted(families):
        for protocol in sorted(protocols):
            if link.hop_of(protocol, family) is None:
                yield f"{family}-{protocol}", hop_s(topology, j, protocol, family)


# What steps cost as one number grows, by the numeric model: at some factors, for any costs.


STEPS = 12
"""So many factors are tried from 1 to the largest, each as many times the one before."""


@dataclass(frozen=True, slots=True)
class SampledCosts:
    """Costs of steps of a problem, whatever chooses among algorithms."""

    problem: Problem
    _clusters: dict[tuple[ChangedNumber, float], Topology] = field(default_factory=dict)

    def points(self) -> FloatArray:
        """The factors that are tried, from 1 on."""
        return np.asarray(SEARCHED ** (np.arange(STEPS + 1) / STEPS))

    def step_s(self, number: ChangedNumber, table: ProgramTable, xs: FloatArray) -> FloatArray:
        """Times of the steps of a table where the number is multiplied by x (a bandwidth: divided).

        Shape (keys, points).
        """
        rows = [[self._second(number, table, key, float(x)) for x in xs] for key in table.keys]
        return np.array(rows).reshape(len(rows), len(xs))

    def _second(self, number: ChangedNumber, table: ProgramTable, key: StepKey, x: float) -> float:
        topology, request = self.problem.topology, self.problem.requests[table.number]
        payload_bytes = request.payload_bytes
        if number.what == "payload" and number.index == table.number:
            payload_bytes = changed_bytes(payload_bytes, x)
        times = 1 / x if number.what == "bandwidth" else x
        grouping = None if key.operation is RequestKind.SEND else key.grouping
        footprint = step_footprint(topology, table.scene.digits, grouping)
        model = step_model(self._cluster(number, times), footprint, key.operation)
        return model.time(payload_bytes * float(key.share)).seconds

    def _cluster(self, number: ChangedNumber, times: float) -> Topology:
        if (number, times) not in self._clusters:
            found = changed_topology(self.problem.topology, number, times)
            self._clusters[number, times] = found
        return self._clusters[number, times]


# The programs of a request on a scene as arrays of step numbers; steps that are alike are one.


TABLED_DEPTH = 3
"""Over more levels the programs are too many; then those known beforehand are looked at."""


@dataclass(frozen=True, slots=True)
class StepKey:
    """An operation on groups with a share of the payload: what a step costs depends on it."""

    operation: Operation
    grouping: Grouping
    share: Fraction


@dataclass(frozen=True, slots=True)
class ProgramTable:
    """Programs of the request of that number on a scene: a row of ``steps`` each.

    Entries are numbers of ``keys``; one more than these stands for no step.  ``programs`` is empty
    where there is one fixed step, or none.  ``whole``: these are all programs that there are.
    """

    number: int
    scene: Scene
    keys: tuple[StepKey, ...]
    steps: IntArray
    programs: tuple[Program, ...]
    whole: bool

    def times(self, step_s: FloatArray) -> FloatArray:
        """Of each program, at each point: shape (programs, points), of steps (keys, points)."""
        padded = np.vstack([step_s, np.zeros((1, step_s.shape[1]))])
        total = np.zeros((len(self.steps), step_s.shape[1]))
        for column in self.steps.T:
            total += padded[column]
        return total


def program_table(
    problem: Problem,
    number: int,
    scene: Scene,
    listings: Catalogs | None,
    watch: StopWatch,
    also: Sequence[Program] = (),
) -> ProgramTable:
    """The programs of a request on a scene, or its fixed step.

    ``listings`` None: those known beforehand, and ``also`` these.
    """
    request = problem.requests[number]
    if scene.hierarchy.size == 1:
        return ProgramTable(number, scene, (), np.zeros((1, 0), dtype=np.int64), (), True)
    if not (request.kind.has_programs or _several(problem, request, scene)):
        return _fixed(number, request, scene)
    task = _task(problem, request, scene)
    listed, whole = _listed(task, listings, watch)
    listed = tuple(dict.fromkeys((*listed, *(_indices(task, program) for program in also))))
    items = task.problem().instructions.items
    rows = RowCounts(task.problem().demand, scene.hierarchy.factors, items)
    numbers: dict[StepKey, int] = {}
    kept, steps = [], []
    for indices in listed:
        counts = rows.payloads(indices)
        if counts is None:
            continue
        shares = [Fraction(n, scene.hierarchy.size) for n in counts]
        keys = [StepKey(*items[i], share) for i, share in zip(indices, shares, strict=True)]
        steps.append([numbers.setdefault(key, len(numbers)) for key in keys])
        kept.append(task.program(task.problem(), indices))
    return ProgramTable(
        number, scene, tuple(numbers), _padded(steps, len(numbers)), tuple(kept), whole
    )


def _several(problem: Problem, request: Request, scene: Scene) -> bool:
    """Whether an all-to-all may be several."""
    return request.kind.has_exchanges and scene.hierarchy.depth > 1 and problem.max_length > 1


def _fixed(number: int, request: Request, scene: Scene) -> ProgramTable:
    whole = Grouping(0, scene.hierarchy.depth)
    operation: Operation = (
        RequestKind.SEND
        if request.kind is RequestKind.SEND
        else DIRECT.get(plain_kind(request.kind), RequestKind.ALL_TO_ALL)
    )
    key = StepKey(operation, whole, Fraction(1))
    return ProgramTable(number, scene, (key,), np.zeros((1, 1), dtype=np.int64), (), True)


def _task(problem: Problem, request: Request, scene: Scene) -> Task:
    forms, limits = problem.forbidden_forms, problem.step_limits
    kind = plain_kind(request.kind)
    return Task(kind, scene.hierarchy, problem.max_length, forms, limits, Solver.CPSAT)


def _indices(task: Task, program: Program) -> Indices:
    items = task.problem().instructions.items
    steps = ((one.collective, task.hierarchy.grouping(one)) for one in program.instructions)
    return tuple(items.index(step) for step in steps)


def _listed(
    task: Task, listings: Catalogs | None, watch: StopWatch
) -> tuple[Sequence[Indices], bool]:
    """All programs, if they are wanted and not too many; else those known beforehand."""
    if listings is not None and task.hierarchy.depth <= TABLED_DEPTH and task.problem().small_model:
        status, found = listings.of(task, watch.left())
        if status is Status.COMPLETE:
            return found, True
    return known_programs(task.problem()), False


def _padded(steps: Sequence[Sequence[int]], none: int) -> IntArray:
    length = max(map(len, steps), default=0)
    rows = [[*row, *([none] * (length - len(row)))] for row in steps]
    return np.array(rows, dtype=np.int64).reshape(len(steps), length)
