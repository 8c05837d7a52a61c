"""Classic algorithms as messages in steps over a fabric: schedules that no search has to find.

A classic says what goes from rank to rank.  Here each message goes in the first step before which
all that it is made of is there, over the least loaded of the ways between its two ranks; where
there is none, the classic is none of the fabric.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.problems.schedule import Arrival, FinalSum, SumSchedule, SumSend, SumStep
from p2smt.schedules.classics import CLASSICS, Classic, Value
from p2smt.schedules.memory_cells import Memory, memory_of
from p2smt.schedules.model import Connection, Schedule, Span, Step
from p2smt.synthesis.group_order import grids
from p2smt.synthesis.keeping import Part
from p2smt.synthesis.placed import needed
from p2smt.synthesis.schedule_replay import sum_demands
from p2smt.synthesis.setting import SynthesisSetting

MOST_RANKS = 32
"""Classics of more ranks are not run: they take seconds each."""
_OWN: frozenset[Part] = frozenset((None,))
_AT_HOME = -1
"""The chunk of what a rank has for itself alone."""


def classics_in_steps(setting: SynthesisSetting) -> Iterator[tuple[str, int, SumSchedule]]:
    """Every classic of the collective that goes over the fabric: name, chunks, messages.

    With all numbers of GPUs of a node and all grids that the ranks fill.  Chunks are counted as
    the collective counts them; the rounds of the steps are 1 and say nothing.
    """
    if setting.fabric.ranks > MOST_RANKS:
        return
    for one in CLASSICS.values():
        if one.collective == setting.collective:
            for given in _variants(one, setting):
                try:
                    schedule = one.function(setting.fabric.ranks, **given)
                    chunks, sums = in_steps(setting, schedule)
                except InputError:  # not for so many ranks, or not over this fabric
                    continue
                yield _named(one, given), chunks, sums


def _named(one: Classic, given: Mapping[str, Value]) -> str:
    """Such as ``rail-aligned-all-reduce gpus=8``."""
    told = {key: value for key, value in given.items() if key in ("gpus", "dims", "directions")}
    words = (f"{k}={'x'.join(map(str, v)) if isinstance(v, tuple) else v}" for k, v in told.items())
    return " ".join([one.name, *words])


def _variants(one: Classic, setting: SynthesisSetting) -> Iterator[dict[str, Value]]:
    ranks = setting.fabric.ranks
    inner = [n for n in range(2, ranks + 1) if ranks % n == 0]
    values: Mapping[str, Sequence[Value]] = {
        "gpus": inner,
        "dims": [*grids(ranks, 2), *grids(ranks, 3)],
        "directions": (1, 2),
        "root": (setting.root,),
    }
    open_ones = [name for name in one.parameters if name in values]
    for chosen in product(*(values[name] for name in open_ones)):
        yield dict(zip(open_ones, chosen, strict=True))


class _Held(NamedTuple):
    """What is in a cell: a chunk, and the values that were added up."""

    chunk: int
    parts: frozenset[Part]

    @property
    def time(self) -> int:
        """The first step in which it can be sent."""
        return max((part.step + 1 for part in self.parts if part is not None), default=0)


def in_steps(setting: SynthesisSetting, schedule: Schedule) -> tuple[int, SumSchedule]:
    """The chunks of a schedule of the setting's collective, and its messages by step.

    Raises:
        InputError: two of its ranks have no way between them, or it adds up what is no chunk.
    """
    run = _InSteps(setting, schedule, memory_of(schedule), WaysOf(setting.fabric))
    for step in one_by_one(schedule.steps):
        run.act(step)
    sums = SumSchedule(run.steps(), run.results())
    return run.chunks, needed(sums, setting.edges)


def one_by_one(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps in an order in which they can run: after what they wait for, and their message."""
    blocks: dict[tuple[int, int], deque[Step]] = defaultdict(deque)
    for step in steps:
        blocks[step.rank, step.block].append(step)
    done: set[tuple[int, int, int]] = set()
    there: Counter[Connection] = Counter()
    moved = True
    while moved:
        moved = False
        for queue in blocks.values():
            while queue and _ready(queue[0], done, there):
                step = queue.popleft()
                done.add((step.rank, step.block, step.index))
                if step.receive is not None:
                    there[step.receive] -= 1
                if step.send is not None:
                    there[step.send] += 1
                moved = True
                yield step


def _ready(step: Step, done: set[tuple[int, int, int]], there: Counter[Connection]) -> bool:
    come = step.receive is None or there[step.receive] > 0
    return come and all((step.rank, ref.block, ref.index) in done for ref in step.waits)


class WaysOf:
    """Chooses among the edges between two ranks the one whose capacities carry least in a step."""

    def __init__(self, fabric: Fabric) -> None:
        self._edges, self._bandwidths = fabric.edges, fabric.bandwidths
        self.between: dict[tuple[int, int], list[int]] = defaultdict(list)
        for number, edge in enumerate(fabric.edges):
            self.between[edge.source, edge.target].append(number)
        self._loads: Counter[tuple[int, int]] = Counter()
        self._taken: set[tuple[int, int, int]] = set()

    def take(self, chunk: int, source: int, target: int, step: int) -> Arrival:
        """How a chunk arrives that may go from a step on: no chunk takes an edge twice in one.

        Raises:
            InputError: there is no edge.
        """
        every = self.between.get((source, target), [])
        if not every:
            raise InputError(f"ranks {source} and {target}", "have no edge between them")
        while True:
            free = [edge for edge in every if (chunk, edge, step) not in self._taken]
            if free:
                edge = min(free, key=lambda one: self._fullest(one, step))
                self._taken.add((chunk, edge, step))
                self._loads.update((step, k) for k in self._edges[edge].loads)
                return Arrival(step, edge)
            step += 1

    def _fullest(self, edge: int, step: int) -> float:
        loads = self._edges[edge].loads
        return max(float((self._loads[step, k] + 1) / self._bandwidths[k]) for k in loads)


@dataclass(slots=True)
class _InSteps:
    """Runs a schedule on names of values; used only while its messages are gathered."""

    setting: SynthesisSetting
    schedule: Schedule
    memory: Memory
    ways: WaysOf
    cells: dict[int, _Held] = field(default_factory=dict)
    waiting: dict[Connection, deque[list[_Held]]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    sent: dict[int, list[SumSend]] = field(default_factory=lambda: defaultdict(list))
    chunks: int = 0

    def __post_init__(self) -> None:
        contract = self.schedule.contract
        parted = self.setting.collective in ("reduce_scatter", "alltoall")
        self.chunks = len(contract.starts[0]) // (contract.ranks if parted else 1)
        for rank, starts in enumerate(contract.starts):
            for place, start in enumerate(starts):
                if start is not None:
                    held = _Held(self._chunk(start.rank, start.chunk), _OWN)
                    self.cells[self.memory.input_cell(rank, place)] = held

    def _chunk(self, rank: int, place: int) -> int:
        """The chunk that an input chunk of a rank is, or is a part of."""
        match self.setting.collective:
            case "allgather":
                return rank * self.chunks + place
            case "alltoall":
                goal, part = divmod(place, self.chunks)
                pair = rank * (self.schedule.ranks - 1) + goal - (goal > rank)
                return _AT_HOME if goal == rank else pair * self.chunks + part
            case _:
                return place

    def act(self, step: Step) -> None:
        """Does a step: what it receives and reads is added up, stored, and sent."""
        values = self.waiting[step.receive].popleft() if step.receive is not None else None
        for span in step.reads:
            read = self._read(span)
            values = read if values is None else list(map(_added, values, read))
        for span in step.writes:
            self.cells.update(zip(self.memory.cells(span), values or [], strict=True))
        if step.send is not None:
            ends = step.send.source, step.send.target
            self.waiting[step.send].append([self._sent(one, *ends) for one in values or []])

    def _read(self, span: Span) -> list[_Held]:
        cells = self.memory.cells(span)
        if any(cell not in self.cells for cell in cells):
            raise InputError(str(span), "holds nothing yet")
        return [self.cells[cell] for cell in cells]

    def _sent(self, value: _Held, source: int, target: int) -> _Held:
        if value.chunk == _AT_HOME:
            raise InputError(f"rank {source}", "sends what it has for itself alone")
        came = self.ways.take(value.chunk, source, target, value.time)
        parts = tuple(sorted(value.parts, key=lambda part: (part is not None, part or came)))
        self.sent[came.step].append(SumSend(value.chunk, came.edge, parts))
        return _Held(value.chunk, frozenset((came,)))

    def steps(self) -> tuple[SumStep, ...]:
        """The messages by step, in order."""
        return tuple(
            SumStep(1, tuple(sorted(self.sent[n], key=lambda send: (send.chunk, send.edge))))
            for n in range(max(self.sent) + 1)
        )

    def results(self) -> tuple[FinalSum, ...]:
        """What ranks end with, as the collective asks for it."""
        ends: dict[tuple[int, int], tuple[Part, ...]] = {}
        for goal in self.schedule.contract.goals:
            chunk = self._chunk(*goal.parts[0])
            held = self.cells[self.memory.output_cell(goal.rank, goal.chunk)]
            order = sorted(held.parts, key=lambda p: (p is not None, p or Arrival(0, 0)))
            ends[chunk, goal.rank] = tuple(order)
        asked = sum_demands(
            self.setting.collective, self.schedule.ranks, self.chunks, self.setting.root
        )
        return tuple(
            FinalSum(chunk, rank, ends[chunk, rank])
            for chunk, demand in enumerate(asked)
            for rank in sorted(demand.goals)
        )


def _added(one: _Held, other: _Held) -> _Held:
    if one.chunk != other.chunk or one.parts & other.parts:
        raise InputError(f"chunk {one.chunk}", "is added to another, or to itself")
    return _Held(one.chunk, one.parts | other.parts)
