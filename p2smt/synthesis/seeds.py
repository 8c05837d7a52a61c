"""Schedules that are known before any search: classics, levels put together, halves, pipelines.

An all-gather over ranks in a grid is one along the rails, then one inside the nodes, each found by
itself.  Run backwards it is a reduce-scatter; the two are an all-reduce.  Copies of a schedule that
begin one step after the other share the links of different phases.  None of these is searched for:
the rounds of a step are what its fullest capacity needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from p2smt.errors import InputError
from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge, edge_key
from p2smt.fabric.symmetries import Effort, FabricSymmetry, fabric_symmetries, permuted
from p2smt.problems.schedule import Arrival, FinalSum, StepSends, SumSchedule, SumSend, SumStep
from p2smt.result import StopWatch
from p2smt.synthesis.classics_in_steps import WaysOf, classics_in_steps
from p2smt.synthesis.group_order import LevelShifts, grids
from p2smt.synthesis.keeping import Part
from p2smt.synthesis.reversal import reversed_sums, sums_of
from p2smt.synthesis.schedule_replay import dissemination_problem, spreads
from p2smt.synthesis.setting import MOST_MESSAGES, ScheduleSize, SynthesisSetting, too_many_messages

MOST_TOGETHER = 12
"""So many copies of a schedule at once are tried, which fill rounds that one leaves half empty."""
SOLVED_RANKS, SOLVED_PART = 32, 8
"""All-gathers of more ranks, and over larger parts, are only put together, not searched for."""
SOLVED_TIME = 2
"""They have so small a part of the time of all seeds, and each search of what is left of it."""
KEPT = 2
"""Of the all-gathers with the same steps so many are kept, the best first; of many ranks one."""
ALL_GATHER = "allgather"


@dataclass(frozen=True, slots=True)
class Seed:
    """A schedule that nobody searched for; ``origin``: of what it was made, in words."""

    size: ScheduleSize
    origin: str
    sums: SumSchedule


Solve = Callable[[SynthesisSetting, int, Mapping[int, Seed]], Iterable[Seed]]
"""All-gathers of up to so many steps that a search finds, better than those that are given."""


def add_seeds(
    known: dict[int, Seed],
    setting: SynthesisSetting,
    most_steps: int,
    most_chunks: int,
    solve: Solve,
    watch: StopWatch,
) -> None:
    """Adds for numbers of steps the best that is known of them, where more steps gain by it.

    Also where KeyboardInterrupt ends it: of what was made by then.
    """
    level = _Levels(most_steps - setting.adds, solve, watch.part(1 / SOLVED_TIME))
    sketches = _in_time(_sketches(setting, most_steps, level), watch)
    _add_best(known, setting.fabric, sketches, most_steps, most_chunks)


def _in_time(sketches: Iterable[_Sketch], watch: StopWatch) -> Iterator[_Sketch]:
    """What is made before the time is over, the first in any case."""
    for one in sketches:
        yield one
        if watch.expired():
            return


def _sketches(setting: SynthesisSetting, most_steps: int, level: _Levels) -> Iterator[_Sketch]:
    """What is known, each once, before any copies of it are made."""
    for origin, chunks, sums in classics_in_steps(setting):
        if len(sums.steps) <= most_steps:
            yield _Sketch.of(setting.fabric, chunks, sums, origin)
    fabric = setting.fabric
    if too_many_messages(SynthesisSetting(fabric, ALL_GATHER)):
        return
    match setting.collective:
        case "allgather":
            yield from (_gathered(fabric, one) for one in level.made(fabric))
        case "reduce_scatter":
            yield from _scattered(fabric, level.made)
        case "allreduce":
            yield from _exchanged(fabric)
            halves = list(_scattered(fabric, level.of))
            for one in level.of(fabric):
                gathered = _gathered(fabric, one)
                for half in halves:
                    if half.steps + gathered.steps <= most_steps:
                        yield _joined(half, gathered)
        case _:
            return


# A schedule by what it loads, and copies of it.


Loads = NDArray[np.int64]
"""By step and capacity: how many messages load it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sketch:
    """A schedule of so many chunks, as its collective counts them; its rounds say nothing."""

    chunks: int
    sums: SumSchedule
    origin: str
    loads: Loads
    messages: int

    @staticmethod
    def of(fabric: Fabric, chunks: int, sums: SumSchedule, origin: str) -> _Sketch:
        """With the loads of its messages."""
        loads = np.zeros((len(sums.steps), len(fabric.capacities)), dtype=np.int64)
        for row, step in zip(loads, sums.steps, strict=True):
            for send in step.sends:
                for k in fabric.edges[send.edge].loads:
                    row[k] += 1
        messages = sum(len(step.sends) for step in sums.steps)
        return _Sketch(chunks, sums, origin, loads, messages)

    @property
    def steps(self) -> int:
        """How many there are."""
        return len(self.loads)


@dataclass(frozen=True, slots=True)
class _Copies:
    """``pieces`` of a sketch, each begun a step after the one before, of ``together`` copies."""

    sketch: _Sketch
    together: int
    pieces: int

    def loads(self, one: Loads) -> Loads:
        """Of all copies together, by those of one."""
        one = one * self.together
        found = np.zeros((len(one) + self.pieces - 1, one.shape[1]), dtype=np.int64)
        for late in range(self.pieces):
            found[late : late + len(one)] += one
        return found

    def seed(self, rounds: Sequence[int]) -> Seed:
        """The copies as one schedule."""
        starts = [late for late in range(self.pieces) for _ in range(self.together)]
        sums = staggered(self.sketch.sums, self.sketch.chunks, starts)
        steps = tuple(replace(s, rounds=r) for s, r in zip(sums.steps, rounds, strict=True))
        size = ScheduleSize(len(steps), sum(rounds), self.sketch.chunks * len(starts))
        origin = self.sketch.origin
        if self.pieces > 1:
            origin = f"{origin}, pipelined in {self.pieces}"
        return Seed(size, origin, SumSchedule(steps, sums.results))


def _add_best(
    known: dict[int, Seed],
    fabric: Fabric,
    sketches: Iterable[_Sketch],
    most_steps: int,
    most_chunks: int,
) -> None:
    """Adds by steps the copies of the best rate, the fewest chunks first."""
    found: dict[int, tuple[Fraction, int, _Copies, list[int]]] = {}
    try:
        for sketch in sketches:
            few, over, under = _distinct(fabric, sketch.loads)
            for copies in _copies(sketch, most_steps, most_chunks):
                loads = copies.loads(few)
                rounds = np.maximum(1, -(-(loads * under) // over)).max(axis=1).tolist()
                chunks = sketch.chunks * copies.together * copies.pieces
                rate = Fraction(sum(rounds), chunks)
                before = found.get(len(rounds))
                if before is None or (rate, chunks) < before[:2]:
                    found[len(rounds)] = rate, chunks, copies, rounds
    finally:
        best = None
        for steps in sorted(found):
            rate, _, copies, rounds = found[steps]
            if best is None or rate < best:
                known[steps], best = copies.seed(rounds), rate


def _copies(sketch: _Sketch, most_steps: int, most_chunks: int) -> Iterator[_Copies]:
    for pieces in range(1, most_steps - sketch.steps + 2):
        for together in range(1, MOST_TOGETHER + 1):
            copies = together * pieces
            if sketch.chunks * copies > most_chunks or sketch.messages * copies > MOST_MESSAGES:
                break
            yield _Copies(sketch, together, pieces)


def _distinct(
    fabric: Fabric, loads: Loads
) -> tuple[Loads, NDArray[np.object_], NDArray[np.object_]]:
    """The loads of capacities that differ, numerators and denominators of their bandwidths."""
    rates = sorted(set(fabric.bandwidths))
    kinds = np.array([rates.index(one) for one in fabric.bandwidths], dtype=np.int64)
    few = np.unique(np.vstack([loads, kinds]), axis=1)
    own = [rates[kind] for kind in few[-1]]
    over = np.array([rate.numerator for rate in own], dtype=object)
    return few[:-1], over, np.array([rate.denominator for rate in own], dtype=object)


def staggered(sums: SumSchedule, chunks: int, starts: Sequence[int]) -> SumSchedule:
    """Copies of a schedule of ``chunks`` chunks that begin at these steps; its rounds are 1."""
    steps: list[list[SumSend]] = [[] for _ in range(max(starts) + len(sums.steps))]
    results: list[FinalSum] = []
    for copy, late in enumerate(starts):

        def number(chunk: int, copy: int = copy) -> int:
            place, part = divmod(chunk, chunks)
            return (place * len(starts) + copy) * chunks + part

        for at, step in enumerate(sums.steps, start=late):
            steps[at] += [
                SumSend(number(s.chunk), s.edge, _later(s.parts, late), s.slot) for s in step.sends
            ]
        results += [FinalSum(number(r.chunk), r.rank, _later(r.parts, late)) for r in sums.results]
    return SumSchedule(
        tuple(SumStep(1, tuple(sorted(s, key=lambda m: (m.chunk, m.edge, m.slot)))) for s in steps),
        tuple(sorted(results, key=lambda result: (result.chunk, result.rank))),
    )


def _later(parts: tuple[Part, ...], steps: int) -> tuple[Part, ...]:
    if not steps:
        return parts
    return tuple(
        None if part is None else Arrival(part.step + steps, part.edge, part.slot) for part in parts
    )


def _joined(scatter: _Sketch, gather: _Sketch) -> _Sketch:
    """The all-reduce of a reduce-scatter and an all-gather, with as many copies as both need."""
    chunks = math.lcm(scatter.chunks, gather.chunks)
    one, two = (_times(half, chunks // half.chunks) for half in (scatter, gather))
    late = one.steps
    whole = {result.chunk: result for result in one.sums.results}
    steps = list(one.sums.steps)
    for step in two.sums.steps:
        sends = (replace(s, parts=_made(s.chunk, s.parts, whole, late)) for s in step.sends)
        steps.append(SumStep(1, tuple(sends)))
    ends = [FinalSum(r.chunk, r.rank, _later(r.parts, late)) for r in two.sums.results]
    results = sorted([*whole.values(), *ends], key=lambda result: (result.chunk, result.rank))
    origin = f"reduce-scatter, all-gather: {gather.origin}"
    if scatter.origin != gather.origin:
        origin = f"reduce-scatter: {scatter.origin}; all-gather: {gather.origin}"
    return _Sketch(
        chunks * len({r.rank for r in results}),
        SumSchedule(tuple(steps), tuple(results)),
        origin,
        np.vstack([one.loads, two.loads]),
        one.messages + two.messages,
    )


def _made(
    chunk: int, parts: tuple[Part, ...], whole: Mapping[int, FinalSum], late: int
) -> tuple[Part, ...]:
    """The parts of a message after a reduce-scatter: what the owner sends is its result."""
    return whole[chunk].parts if parts == (None,) else _later(parts, late)


def _times(sketch: _Sketch, copies: int) -> _Sketch:
    """So many copies at once."""
    if copies == 1:
        return sketch
    sums = staggered(sketch.sums, sketch.chunks, [0] * copies)
    loads, messages = sketch.loads * copies, sketch.messages * copies
    return replace(sketch, chunks=sketch.chunks * copies, sums=sums, loads=loads, messages=messages)


# All-gathers over parts of a fabric, and of these over the whole.


@dataclass(frozen=True, slots=True)
class Gather:
    """An all-gather of ``chunks`` of each rank: by step, the chunks and the edges they take."""

    chunks: int
    steps: tuple[tuple[tuple[int, int], ...], ...]
    origin: str


def _gathered(fabric: Fabric, one: Gather) -> _Sketch:
    """The all-gather as a schedule."""
    chunks = spreads(ALL_GATHER, fabric.ranks, one.chunks)
    problem = dissemination_problem(fabric, chunks, len(one.steps), len(one.steps))
    sums = sums_of(problem, [StepSends(1, step) for step in one.steps])
    return _Sketch.of(fabric, one.chunks, sums, one.origin)


def _scattered(fabric: Fabric, gathers: Callable[[Fabric], Sequence[Gather]]) -> Iterator[_Sketch]:
    """All-gathers over the reversed fabric, run backwards: reduce-scatters over the fabric.

    Where the fabric has a map onto its reverse those of the fabric itself are taken through it.
    """
    turned = fabric.reversed()
    turn = _reversal(fabric)
    for one in gathers(turned if turn is None else fabric):
        there = one if turn is None else _turned(fabric, one, turn)
        routes = spreads(ALL_GATHER, fabric.ranks, there.chunks)
        problem = dissemination_problem(turned, routes, len(there.steps), len(there.steps))
        steps = [StepSends(1, step) for step in there.steps]
        sums = reversed_sums(problem, steps, fabric.edge_rows)
        yield _Sketch.of(fabric, one.chunks, sums, one.origin)


def _reversal(fabric: Fabric) -> FabricSymmetry | None:
    found = permuted(fabric, [], reverses=True)
    if found is not None or fabric.ranks > SOLVED_RANKS:
        return found
    every = fabric_symmetries(fabric, reversing=True, effort=Effort())
    return next((one for one in every if one.reverses), None)


def _turned(fabric: Fabric, one: Gather, turn: FabricSymmetry) -> Gather:
    """The same all-gather over the reversed fabric."""
    ends = [FabricEdge(e.target, e.source, e.loads) for e in fabric.edges]
    order = sorted(range(len(ends)), key=lambda number: edge_key(ends[number]))
    number = {old: new for new, old in enumerate(order)}
    steps = []
    for step in one.steps:
        sends = []
        for chunk, edge in step:
            rank, part = divmod(chunk, one.chunks)
            sends.append((turn.ranks[rank] * one.chunks + part, number[turn.edges[edge]]))
        steps.append(tuple(sorted(sends)))
    return replace(one, steps=tuple(steps))


@dataclass(slots=True)
class _Levels:
    """All-gathers of up to so many steps over fabrics and their parts, each found once."""

    most_steps: int
    solve: Solve
    watch: StopWatch
    known: dict[object, list[Gather]] = field(default_factory=dict)

    def of(self, fabric: Fabric, most_ranks: int = SOLVED_RANKS) -> list[Gather]:
        """Those that are put together, and up to so many ranks those that a search finds."""
        key = fabric.edge_rows, fabric.bandwidths
        if key not in self.known:
            made = self.made(fabric)
            if fabric.ranks <= most_ranks and not self.watch.expired():
                setting = SynthesisSetting(fabric, ALL_GATHER)
                sketches = [_gathered(fabric, one) for one in made]
                best = dict[int, Seed]()
                _add_best(best, fabric, sketches, self.most_steps, MOST_TOGETHER)
                made += [_as_gather(one) for one in self.solve(setting, self.most_steps, best)]
            self.known[key] = _few(fabric, made)
        return self.known[key]

    def made(self, fabric: Fabric) -> list[Gather]:
        """Those that are put together of all-gathers over parts of the fabric."""
        found = [one for one in [_direct(fabric)] if one is not None]
        for outer, inner in _splits(fabric):
            if not self.watch.expired():
                found += self._products(fabric, outer, inner)
        return _few(fabric, [one for one in found if len(one.steps) <= self.most_steps])

    def _products(self, fabric: Fabric, outer: int, inner: int) -> Iterator[Gather]:
        """Along the rails, then inside nodes of ``inner`` ranks, where both are connected."""
        rail = part_of(fabric, range(0, outer * inner, inner))
        node = part_of(fabric, range(inner))
        if rail is None or node is None:
            return
        for one in self.of(rail, SOLVED_PART):
            for two in self.of(node, SOLVED_PART):
                if len(one.steps) + len(two.steps) <= self.most_steps + 1:
                    made = product_of(fabric, (rail, one), (node, two))
                    if made is not None:
                        yield made
                        yield earliest(fabric, made)


def _splits(fabric: Fabric) -> list[tuple[int, int]]:
    """Ranks as nodes and ranks of a node: all ways; of many ranks those between levels."""
    if fabric.ranks <= SOLVED_RANKS:
        return [(outer, inner) for outer, inner in grids(fabric.ranks, 2)]
    shape = LevelShifts(fabric).shape()
    return [(math.prod(shape[:at]), math.prod(shape[at:])) for at in range(1, len(shape))]


def _as_gather(seed: Seed) -> Gather:
    steps = tuple(tuple((s.chunk, s.edge) for s in step.sends) for step in seed.sums.steps)
    return Gather(seed.size.chunks, steps, seed.origin)


def _few(fabric: Fabric, every: Iterable[Gather]) -> list[Gather]:
    """Of those with the same steps the best, by the time that their fullest capacities take."""
    bandwidths = np.array([float(one) for one in fabric.bandwidths])
    kept = KEPT if fabric.ranks <= SOLVED_RANKS else 1
    rated: dict[int, list[tuple[float, int, int, Gather]]] = {}
    for number, one in enumerate(every):
        time = sum(
            (np.bincount(_loaded(fabric, step), minlength=len(bandwidths)) / bandwidths).max()
            for step in one.steps
        )
        rate = round(float(time) / one.chunks, 9)
        rated.setdefault(len(one.steps), []).append((rate, one.chunks, number, one))
    return [row[-1] for steps in sorted(rated) for row in sorted(rated[steps])[:kept]]


def _loaded(fabric: Fabric, step: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    every = [k for _, edge in step for k in fabric.edges[edge].loads]
    return np.array(every, dtype=np.int64)


def _direct(fabric: Fabric) -> Gather | None:
    """Every rank to every other one in one step; None: some have no edge between them."""
    ways, every = WaysOf(fabric), range(fabric.ranks)
    try:
        sends = [(a, ways.take(a, a, b, 0).edge) for a in every for b in every if a != b]
    except InputError:
        return None
    return Gather(1, (tuple(sorted(sends)),), "direct")


def _exchanged(fabric: Fabric) -> Iterator[_Sketch]:
    """The all-reduce in which every rank sends its input to every other one, where it can."""
    made = _direct(fabric)
    if made is not None:
        ends = [(0, edge) for _, edge in made.steps[0]]
        came: dict[int, list[Part]] = {rank: [None] for rank in range(fabric.ranks)}
        for _, edge in sorted(ends):
            came[fabric.edges[edge].target].append(Arrival(0, edge))
        sends = tuple(SumSend(0, edge, (None,)) for _, edge in sorted(ends))
        results = tuple(FinalSum(0, rank, tuple(parts)) for rank, parts in came.items())
        sums = SumSchedule((SumStep(1, sends),), results)
        yield _Sketch.of(fabric, 1, sums, "all inputs sent to all ranks")


def part_of(fabric: Fabric, ranks: Sequence[int]) -> Fabric | None:
    """The fabric of some of the ranks, renumbered in their order; None: it is not connected."""
    place = {rank: n for n, rank in enumerate(ranks)}
    inside = [e for e in fabric.edges if e.source in place and e.target in place]
    number: dict[int, int] = {}
    for edge in inside:
        for k in edge.loads:
            number.setdefault(k, len(number))
    edges = [
        FabricEdge(place[e.source], place[e.target], tuple(sorted(number[k] for k in e.loads)))
        for e in inside
    ]
    capacities = tuple(Capacity(str(n), fabric.capacities[k].bandwidth) for k, n in number.items())
    name = f"{len(ranks)} ranks of {fabric.name}"
    found = Fabric(name, len(ranks), capacities, tuple(sorted(edges, key=edge_key)))
    try:
        found.check_connected()
    except InputError:
        return None
    return found if len(ranks) > 1 else None


def product_of(
    fabric: Fabric, outer: tuple[Fabric, Gather], inner: tuple[Fabric, Gather]
) -> Gather | None:
    """One along the rails, then one inside the nodes; None: some rail or node lacks an edge.

    Rank g of node i is number i * ranks of a node + g.
    """
    (rail, one), (node, two) = outer, inner
    size, share = node.ranks, math.lcm(rail.ranks * one.chunks, two.chunks)
    chunks, between = share // rail.ranks, WaysOf(fabric).between
    alongs, insides = _by_ways(rail, one), _by_ways(node, two)
    try:
        steps = [
            [
                ((i * size + g) * chunks + part + copy, between[u * size + g, v * size + g][way])
                for i, part, u, v, way in sends
                for copy in range(0, chunks, one.chunks)
                for g in range(size)
            ]
            for sends in alongs
        ]
        steps += [
            [
                (_of_rail(part + copy, g, size, chunks), between[i * size + u, i * size + v][way])
                for g, part, u, v, way in sends
                for copy in range(0, share, two.chunks)
                for i in range(rail.ranks)
            ]
            for sends in insides
        ]
    except IndexError:
        return None
    origin = f"{one.origin} along {rail.ranks}, {two.origin} in {size}"
    return Gather(chunks, tuple(tuple(sorted(step)) for step in steps), origin)


def _of_rail(number: int, g: int, ranks: int, chunks: int) -> int:
    """Of the chunks of a rail, those of its first rank first, the number among all."""
    i, part = divmod(number, chunks)
    return (i * ranks + g) * chunks + part


def _by_ways(fabric: Fabric, one: Gather) -> Iterator[list[tuple[int, int, int, int, int]]]:
    """The messages of each step: rank and part of the chunk, ends of the edge, which way it is."""
    way: dict[int, int] = {}
    for every in WaysOf(fabric).between.values():
        way.update({edge: n for n, edge in enumerate(every)})
    for step in one.steps:
        yield [
            (*divmod(chunk, one.chunks), fabric.edges[e].source, fabric.edges[e].target, way[e])
            for chunk, e in step
        ]


def earliest(fabric: Fabric, one: Gather) -> Gather:
    """Every message as early as its chunk is there."""
    there = {
        (rank * one.chunks + n, rank): 0 for rank in range(fabric.ranks) for n in range(one.chunks)
    }
    steps: dict[int, list[tuple[int, int]]] = {}
    for sends in one.steps:
        came: dict[tuple[int, int], int] = {}
        for chunk, e in sends:
            edge = fabric.edges[e]
            at = there[chunk, edge.source]
            steps.setdefault(at, []).append((chunk, e))
            came[chunk, edge.target] = at + 1
        there = came | there
    made = tuple(tuple(sorted(steps[n])) for n in range(len(steps)))
    return replace(one, steps=made)
