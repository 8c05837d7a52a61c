"""Forests as schedules: every root's data in pieces, each on a tree of its own, step by step.

Pieces are dealt out to trees as their weights say, and what is left over to those whose busiest arc
has least to do.  In a step all of the same length a message goes as soon as its piece is there and
its arcs have room, those with the longest way still to go first, or in an
order by chance, whichever ends sooner.  The messages are replayed,
lowered and verified like every synthesized schedule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from p2smt.errors import InputError
from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge, edge_key
from p2smt.parallelism.placement import FloatArray, IntArray
from p2smt.problems.schedule import Arrival, EdgeRow, FinalSum, SumSchedule, SumSend, SumStep
from p2smt.result import SearchLimits
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.report import Report
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.certificate.forest import INWARD, OUTWARD, TreeNetwork
from p2smt.synthesis.forests.network import ForestGround
from p2smt.synthesis.forests.packing import ForestPacking, RootedTrees, Ways
from p2smt.synthesis.forests.throughput import Throughput
from p2smt.synthesis.setting import CHUNKS_OF, NAMES, ScheduleSize, SynthesisSetting, lower

MAX_MESSAGES = 200_000
_SHARP, _MOVES, _BUSY = 64, 1000, 0.98
_LONGEST, _SPREAD = 8, 20
"""Rounds of a step, at most; by how many messages a random order may put back the longest way."""


@dataclass(frozen=True, slots=True)
class PieceSchedule:
    """A schedule that was replayed and verified.

    ``pieces``: of each root's data.  In a round the ``slowest`` arc carries one.
    """

    setting: SynthesisSetting
    size: ScheduleSize
    pieces: int
    slowest: Fraction
    schedule: Schedule
    report: Report

    @property
    def time(self) -> Fraction:
        """Seconds (or rounds) of its steps, one after the other, for a unit of each root's data."""
        return Fraction(self.size.rounds, self.pieces) / self.slowest


def in_pieces(
    ground: ForestGround, found: Throughput, pieces: int, limits: SearchLimits
) -> PieceSchedule | None:
    """The forest as a schedule; None: the time came before there was one.

    Raises:
        InputError: it would have too many messages.
        EncodingBug: the schedule is wrong.
    """
    net, claim = ground.network, found.claim
    halves = sum(claim.collective in kinds for kinds in (OUTWARD, INWARD))
    many = len(ground.roots) * pieces * (net.ranks - 1) * halves
    if many > MAX_MESSAGES:
        given = f"{pieces} pieces of {net.ranks} ranks"
        rule = f"are {many} messages, and a schedule has at most {MAX_MESSAGES} here"
        raise InputError(given, rule, "ask for fewer pieces, or a smaller fabric")
    dealt = _dealt(replace(ground, symmetries=()), found, pieces, limits)
    if dealt is None:
        return None
    jobs = _Jobs(net)
    for chunk, tree in enumerate(dealt):
        inward = jobs.adding(chunk, tree.ways[False]) if False in tree.ways else []
        if True in tree.ways:
            jobs.copying(chunk, tree.root, tree.ways[True], inward)
    return _schedule(ground, claim.collective, jobs, [tree.root for tree in dealt], pieces)


# Which tree each piece takes.


def _dealt(
    ground: ForestGround, found: Throughput, pieces: int, limits: SearchLimits
) -> list[RootedTrees] | None:
    """The trees of each piece, root by root; of the packing without symmetries."""
    packing = ForestPacking(ground, found.claim.collective, found.claim.time)
    shares = packing.grow(limits)
    if shares is None:
        return None
    each = pieces * len(packing.roots) // packing.kinds
    kinds = np.array([tree.kind for tree in packing.trees])
    takes = np.zeros((len(kinds), len(packing.rooms)))
    for n, tree in enumerate(packing.trees):
        for k, load in tree.loads.items():
            takes[n, k] = float(load) / each
    counts = np.floor(np.array(shares.weights) * each + 1e-6).astype(int)
    for kind in range(packing.kinds):
        own = np.flatnonzero(kinds == kind)
        for _ in range(each - int(counts[own].sum())):
            counts[own[np.argmin(_unevenness(counts @ takes + takes[own]))]] += 1
    _even_out(counts, takes, kinds)
    return [packing.trees[n] for n in np.argsort(kinds, kind="stable") for _ in range(counts[n])]


def _even_out(counts: IntArray, takes: FloatArray, kinds: IntArray) -> None:
    """Move pieces from tree to tree, as long as loads come nearer to each other."""
    for _ in range(_MOVES):
        loads = counts @ takes
        best, move = _unevenness(loads) * (1 - 1e-9), None
        for n in np.flatnonzero((counts > 0) & (takes[:, np.argmax(loads)] > 0)):
            own = np.flatnonzero(kinds == kinds[n])
            uneven = _unevenness(loads - takes[n] + takes[own])
            if uneven.min() < best:
                best, move = uneven.min(), (n, own[np.argmin(uneven)])
        if move is None:
            return
        counts[move[0]] -= 1
        counts[move[1]] += 1


def _unevenness(loads: FloatArray) -> Any:
    """Of loads, the last axis: the busiest counts for most."""
    return (loads**_SHARP).sum(axis=-1)


# Messages, each after those that bring what it sends.


@dataclass(slots=True)
class _Job:
    """A message of a chunk over arcs; ``after``: those that wait for it."""

    chunk: int
    source: int
    target: int
    arcs: tuple[int, ...]
    needs: tuple[int, ...]
    own: bool
    after: list[int] = field(default_factory=list)
    left: int = 0


class _Jobs:
    """All messages, those before others first."""

    def __init__(self, net: TreeNetwork) -> None:
        self.net, self.turned, self.all = net, net.reversed(), list[_Job]()

    def _add(
        self,
        chunk: int,
        source: int,
        target: int,
        arcs: Sequence[int],
        needs: Sequence[int],
        own: bool,
    ) -> int:
        limited = sorted(arc for arc in arcs if self.net.arcs[arc][2] is not None)
        number = len(self.all)
        self.all.append(_Job(chunk, source, target, tuple(limited), tuple(needs), own))
        for job in needs:
            self.all[job].after.append(number)
        return number

    def _outward(self, ways: Ways, inward: bool) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """(rank before, rank, arcs) of a tree, from its root outwards."""
        arcs = (self.turned if inward else self.net).arcs
        ends = {arcs[way[-1]][1]: (arcs[way[0]][0], way) for way in ways}
        after: dict[int, list[int]] = defaultdict(list)
        for rank, (before, _) in ends.items():
            after[before].append(rank)
        frontier = sorted(set(after) - set(ends))
        for at in frontier:
            for rank in sorted(after[at]):
                yield at, rank, ends[rank][1]
                frontier.append(rank)

    def adding(self, chunk: int, ways: Ways) -> list[int]:
        """Those that add a chunk up towards a root; the last ones, which it receives."""
        came: dict[int, list[int]] = defaultdict(list)
        root = 0
        for before, rank, arcs in reversed(list(self._outward(ways, True))):
            came[before].append(self._add(chunk, rank, before, arcs, came[rank], True))
            root = before
        return came[root]

    def copying(self, chunk: int, root: int, ways: Ways, came: Sequence[int]) -> None:
        """Those that copy a chunk from its root, which may first have to receive parts of it."""
        brought = {root: list(came)}
        for before, rank, arcs in self._outward(ways, False):
            needs = brought[before]
            own = before == root
            brought[rank] = [self._add(chunk, before, rank, arcs, needs, own)]

    def count_down(self) -> None:
        """How many messages still follow each one, on the longest way."""
        for job in reversed(self.all):
            job.left = 1 + max((self.all[n].left for n in job.after), default=0)

    def orders(self, rooms: Sequence[int]) -> Iterator[Sequence[float]]:
        """Places of the messages in a queue: the longest way first, of all or of those over the
        busiest arcs; pieces in a random order.
        """
        uses = Counter(arc for job in self.all for arc in job.arcs)
        busy = max(uses[arc] / rooms[arc] for arc in uses) * _BUSY
        yield [-job.left for job in self.all]
        tight = {arc for arc in uses if uses[arc] > busy * rooms[arc]}
        yield [-job.left - len(self.all) * (not tight.isdisjoint(job.arcs)) for job in self.all]
        turns = list(range(1 + max(job.chunk for job in self.all)))
        Random(len(turns)).shuffle(turns)
        yield [_SPREAD * turns[job.chunk] / len(turns) - job.left for job in self.all]

    def steps(self, rooms: Sequence[int], order: Sequence[float]) -> list[list[int]]:
        """The messages of each step; ``rooms``: how many each arc carries in one."""
        waits = [len(job.needs) for job in self.all]
        ready = [n for n, count in enumerate(waits) if not count]
        found: list[list[int]] = []
        while ready:
            ready.sort(key=order.__getitem__)
            room, sent, kept = list(rooms), list[int](), list[int]()
            for n in ready:
                arcs = self.all[n].arcs
                if all(room[arc] for arc in arcs):
                    sent.append(n)
                    for arc in arcs:
                        room[arc] -= 1
                else:
                    kept.append(n)
            ready = kept
            for n in sent:
                for other in self.all[n].after:
                    waits[other] -= 1
                    if not waits[other]:
                        ready.append(other)
            found.append(sent)
        return found


# The schedule that messages make.


def _schedule(
    ground: ForestGround,
    collective: BoundedCollective,
    jobs: _Jobs,
    roots: Sequence[int],
    pieces: int,
) -> PieceSchedule:
    net, name = ground.network, NAMES[collective.value]
    jobs.count_down()
    ways = {(job.source, job.target, job.arcs) for job in jobs.all}
    if ground.root is not None:  # nothing goes back, and in a fabric every rank reaches every other
        ways |= {(target, source, arcs) for source, target, arcs in ways}
    used = {arc for _, _, arcs in ways for arc in arcs}
    rates = {arc: rate for arc in used if (rate := net.arcs[arc][2]) is not None}
    slowest = min(rates.values())
    tries = []
    even = all((rate / slowest).denominator == 1 for rate in rates.values())
    for rounds in range(1, 2 if even else _LONGEST + 1):
        rooms = [int(rates.get(arc, 0) / slowest * rounds) for arc in range(len(net.arcs))]
        for place in jobs.orders(rooms):
            steps = jobs.steps(rooms, place)
            tries.append((rounds * len(steps), rounds, steps))
    whole, rounds, steps = min(tries, key=lambda one: one[:2])
    order = {arc: k for k, arc in enumerate(sorted(used))}
    capacities = tuple(Capacity(_arc_name(net, arc), rates[arc] / slowest) for arc in sorted(used))
    rows = [FabricEdge(a, b, tuple(order[arc] for arc in arcs)) for a, b, arcs in ways]
    edges = tuple(sorted(rows, key=edge_key))
    unit = slowest if net.measured else None
    fabric = Fabric(net.name, net.ranks, capacities, edges, unit)
    setting = SynthesisSetting(fabric, name, ground.root or 0)
    size = ScheduleSize(len(steps), whole, len(roots) if CHUNKS_OF[name] == "in all" else pieces)
    numbers = {edge_key(edge): e for e, edge in enumerate(edges)}
    sums = _sums(ground, collective, jobs, roots, steps, rounds, numbers, order)
    schedule, report = lower(setting, size, sums)
    return PieceSchedule(setting, size, pieces, slowest, schedule, report)


def _arc_name(net: TreeNetwork, arc: int) -> str:
    tail, head, _ = net.arcs[arc]
    return f"{net.vertices[tail]} to {net.vertices[head]}"


def _row(job: _Job, order: dict[int, int]) -> EdgeRow:
    return job.source, job.target, tuple(order[arc] for arc in job.arcs)


def _sums(
    ground: ForestGround,
    collective: BoundedCollective,
    jobs: _Jobs,
    roots: Sequence[int],
    steps: Sequence[Sequence[int]],
    rounds: int,
    numbers: dict[EdgeRow, int],
    order: dict[int, int],
) -> SumSchedule:
    """Every message as the sum of what came before it, and what ranks end with."""
    arrivals: dict[int, Arrival] = {}
    came: dict[tuple[int, int], list[int]] = defaultdict(list)
    made: list[SumStep] = []
    for number, step in enumerate(steps):
        sends = []
        for n in step:
            job = jobs.all[n]
            edge = numbers[_row(job, order)]
            arrivals[n] = Arrival(number, edge)
            came[job.chunk, job.target].append(n)
            parts = (*((None,) if job.own else ()), *(arrivals[need] for need in job.needs))
            sends.append(SumSend(job.chunk, edge, parts))
        made.append(SumStep(rounds, tuple(sorted(sends, key=lambda s: (s.chunk, s.edge, s.slot)))))
    results = []
    for chunk, root in enumerate(roots):
        for rank in range(ground.network.ranks):
            if collective not in INWARD and rank == root:
                continue
            if collective not in OUTWARD and rank != root:
                continue
            last = came[chunk, rank]
            if rank != root:  # of an all-reduce the parts came before the sum did
                last = last[-1:]
            own = (None,) if rank == root else ()
            results.append(FinalSum(chunk, rank, (*own, *(arrivals[n] for n in last))))
    return SumSchedule(tuple(made), tuple(results))
