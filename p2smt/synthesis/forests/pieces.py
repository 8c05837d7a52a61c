"""Forests as schedules: every root's data in pieces, each on a tree of its own, step by step.

Pieces are dealt out to trees as their weights say, and what is left over to those whose busiest arc
has least to do.  In a step all of the same length a message goes as soon as its piece is there and
its arcs have room, those with the longest way still to go first, or in an
order by chance, whichever ends sooner.  The messages are replayed,
lowered and verified like every synthesized schedule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import zip_longest
from random import Random
from typing import Any

import numpy as np

from p2smt.errors import InputError
from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge, edge_key
from p2smt.parallelism.placement import FloatArray, IntArray
from p2smt.problems.packing import PackingShares
from p2smt.problems.schedule import Arrival, EdgeRow, FinalSum, SumSchedule, SumSend, SumStep
from p2smt.result import SearchLimits, StopWatch
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.report import Report
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.certificate.forest import (
    INWARD,
    OUTWARD,
    ForestClaim,
    TreeNetwork,
    arc_images,
)
from p2smt.synthesis.forests.network import ForestGround, ground_of_fabric
from p2smt.synthesis.forests.packing import ForestPacking, RootedTrees, Ways
from p2smt.synthesis.forests.throughput import Throughput, throughput
from p2smt.synthesis.seeds import Seed
from p2smt.synthesis.setting import (
    CHUNKS_OF,
    NAMES,
    ScheduleSize,
    SynthesisSetting,
    lower,
    shown_collective,
)
from p2smt.units import counted

MAX_MESSAGES = 200_000
_SHARP, _MOVES, _BUSY = 64, 1000, 0.98
_OFFERED_PIECES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_OFFERED_ROUNDS, _OFFERED_MESSAGES = (1, 2, 4), 20_000
_IMAGES = 8
"""For each root so many trees that symmetries make of one."""
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
    kind, ranks = found.claim.collective, ground.network.ranks
    if (many := _count(kind, len(ground.roots), ranks, pieces)) > MAX_MESSAGES:
        given = f"{pieces} pieces of {ranks} ranks"
        rule = f"are {many} messages, and a schedule has at most {MAX_MESSAGES} here"
        raise InputError(given, rule, "ask for fewer pieces, or a smaller fabric")
    grown = _grown(ground, found, limits)
    return None if grown is None else _schedule(_messages(ground, grown, pieces))


def forest_seeds(setting: SynthesisSetting, limits: SearchLimits) -> Iterator[ForestSeed]:
    """A forest as schedules over a fabric's edges: of few pieces and many, of short steps and long.

    None where trees do not carry the collective, no network has the fabric's edges, there are too
    many ranks, or no time is left.
    """
    watch, collective = (
        StopWatch.start(limits),
        BoundedCollective(shown_collective(setting.collective)),
    )
    root = setting.root if setting.rooted else None
    roots = 1 if setting.rooted else setting.fabric.ranks
    least = _count(collective, roots, setting.fabric.ranks, 1)
    if not 0 < least <= _OFFERED_MESSAGES:
        return
    try:
        ground = ground_of_fabric(setting.fabric, root, ())
    except InputError:
        return
    found = throughput(ground, collective, watch.left())
    grown = None if found is None else _grown(ground, found, watch.left())
    edges = {edge_key(edge): number for number, edge in enumerate(setting.fabric.edges)}
    for pieces in _OFFERED_PIECES:
        if grown is None or pieces * least > _OFFERED_MESSAGES:
            return
        sent = _messages(ground, grown, pieces)
        for rounds in _OFFERED_ROUNDS:
            if watch.expired():
                return
            yield ForestSeed.of(setting, sent, rounds, edges)


def _count(collective: BoundedCollective, roots: int, ranks: int, pieces: int) -> int:
    """The messages of so many pieces of each root's data."""
    return roots * pieces * (ranks - 1) * sum(collective in kinds for kinds in (OUTWARD, INWARD))


# Which tree each piece takes.


_Grown = tuple[ForestPacking, PackingShares]


def _grown(ground: ForestGround, found: Throughput, limits: SearchLimits) -> _Grown | None:
    """The packing without symmetries, images of its trees first; None: the time came before it."""
    plain = replace(ground, symmetries=())
    packing = ForestPacking(plain, found.claim.collective, found.claim.time, found.height)
    numbers = {root: number for number, (root, _) in enumerate(packing.roots)}
    for root, ways in _images(ground, found.claim):
        packing.keep(numbers[root], root, 1, ways)
    shares = packing.grow(limits)
    return None if shares is None else (packing, shares)


def _images(ground: ForestGround, claim: ForestClaim) -> Iterator[tuple[int, dict[bool, Ways]]]:
    """Roots and ways of the trees, and of a few for each root that symmetries make of one."""
    net = ground.network
    maps = [(moves, arc_images(net, moves) or {}) for moves in ground.symmetries]
    pairs = zip_longest(claim.copying, claim.adding)
    for pair in pairs:
        ways = {out: one.ways for out, one in zip((True, False), pair, strict=True) if one}
        root = next(one.root for one in pair if one)
        many, frontier = Counter((root,)), [(root, ways)]
        known = {_key(ways)}
        for at, own in frontier:
            yield at, own
            for moves, arcs in maps:
                image = moves.get(at, at)
                turned = {
                    out: tuple(tuple(arcs.get(arc, arc) for arc in way) for way in every)
                    for out, every in own.items()
                }
                if many[image] < _IMAGES and _key(turned) not in known:
                    known.add(_key(turned))
                    many[image] += 1
                    frontier.append((image, turned))


def _key(ways: Mapping[bool, Ways]) -> frozenset[tuple[bool, frozenset[tuple[int, ...]]]]:
    return frozenset((out, frozenset(every)) for out, every in ways.items())


def _dealt(packing: ForestPacking, shares: PackingShares, pieces: int) -> list[RootedTrees]:
    """The trees of each piece, root by root."""
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


@dataclass(frozen=True, slots=True)
class _Messages:
    """What is sent of so many pieces of each root's data; ``roots``: of each chunk its own."""

    ground: ForestGround
    collective: BoundedCollective
    jobs: _Jobs
    roots: tuple[int, ...]
    pieces: int

    def size(self, steps: int, rounds: int) -> ScheduleSize:
        in_all = CHUNKS_OF[NAMES[self.collective.value]] == "in all"
        return ScheduleSize(steps, rounds, len(self.roots) if in_all else self.pieces)


def _messages(ground: ForestGround, grown: _Grown, pieces: int) -> _Messages:
    packing, jobs = grown[0], _Jobs(ground.network)
    dealt = _dealt(*grown, pieces)
    for chunk, tree in enumerate(dealt):
        inward = jobs.adding(chunk, tree.ways[False]) if False in tree.ways else []
        if True in tree.ways:
            jobs.copying(chunk, tree.root, tree.ways[True], inward)
    jobs.count_down()
    roots = tuple(tree.root for tree in dealt)
    return _Messages(ground, packing.collective, jobs, roots, pieces)


@dataclass(frozen=True, slots=True)
class ForestSeed:
    """A schedule in the making: its messages by step, over a fabric's edges."""

    size: ScheduleSize
    _sent: _Messages
    _steps: list[list[int]]
    _rounds: list[int]
    _edges: Mapping[EdgeRow, int]

    @staticmethod
    def of(
        setting: SynthesisSetting, sent: _Messages, rounds: int, edges: Mapping[EdgeRow, int]
    ) -> ForestSeed:
        """With steps of at most so many rounds, or as many as bring a chunk over every edge."""
        limits = {
            arc: setting.fabric.capacities[k].bandwidth for arc, k in sent.ground.capacities.items()
        }
        jobs = sent.jobs
        least = max(-(-1 // limits[arc]) for job in jobs.all for arc in job.arcs)
        rooms = [int(limits.get(arc, 0) * max(rounds, least)) for arc in range(len(jobs.net.arcs))]
        tries = []
        for place in jobs.orders(rooms):
            steps = jobs.steps(rooms, place)
            taken = [_needed(jobs, step, limits) for step in steps]
            tries.append((sum(taken), len(steps), steps, taken))
        _, _, steps, taken = min(tries, key=lambda one: one[:2])
        return ForestSeed(sent.size(len(steps), sum(taken)), sent, steps, taken, edges)

    @property
    def seed(self) -> Seed:
        """The same with its messages over edges of the fabric."""
        sent = self._sent
        sums = _sums(sent, self._steps, self._rounds, self._edges, sent.ground.capacities)
        return Seed(self.size, f"a forest, in {counted(sent.pieces, 'piece')}", sums)


def _needed(jobs: _Jobs, step: Sequence[int], limits: Mapping[int, Fraction]) -> int:
    """The rounds that bring the messages of a step over their arcs."""
    loads = Counter(arc for n in step for arc in jobs.all[n].arcs)
    return max(-int(-load // limits[arc]) for arc, load in loads.items())


def _schedule(sent: _Messages) -> PieceSchedule:
    ground, jobs = sent.ground, sent.jobs
    net, name = ground.network, NAMES[sent.collective.value]
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
    size = sent.size(len(steps), whole)
    numbers = {edge_key(edge): e for e, edge in enumerate(edges)}
    sums = _sums(sent, steps, [rounds] * len(steps), numbers, order)
    schedule, report = lower(setting, size, sums)
    return PieceSchedule(setting, size, sent.pieces, slowest, schedule, report)


def _arc_name(net: TreeNetwork, arc: int) -> str:
    tail, head, _ = net.arcs[arc]
    return f"{net.vertices[tail]} to {net.vertices[head]}"


def _sums(
    sent: _Messages,
    steps: Sequence[Sequence[int]],
    rounds: Sequence[int],
    numbers: Mapping[EdgeRow, int],
    order: Mapping[int, int],
) -> SumSchedule:
    """Every message as the sum of what came before it, and what ranks end with.

    ``numbers``: of edges; ``order``: the capacities that arcs are.
    """
    collective, jobs = sent.collective, sent.jobs
    arrivals: dict[int, Arrival] = {}
    came: dict[tuple[int, int], list[int]] = defaultdict(list)
    made: list[SumStep] = []
    for number, step in enumerate(steps):
        sends = []
        for n in step:
            job = jobs.all[n]
            row = job.source, job.target, tuple(sorted(order[arc] for arc in job.arcs))
            edge = numbers[row]
            arrivals[n] = Arrival(number, edge)
            came[job.chunk, job.target].append(n)
            parts = (*((None,) if job.own else ()), *(arrivals[need] for need in job.needs))
            sends.append(SumSend(job.chunk, edge, parts))
        made.append(
            SumStep(rounds[number], tuple(sorted(sends, key=lambda s: (s.chunk, s.edge, s.slot))))
        )
    results = []
    for chunk, root in enumerate(sent.roots):
        for rank in range(jobs.net.ranks):
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
