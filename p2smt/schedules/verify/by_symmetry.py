"""Is a schedule that is told by orbits right in every interleaving?  Checked on its programs alone.

Everything that is said of a step holds of all its images, so one step of each orbit stands for all:

1. Ends: each message that a program sends or takes has its other end in the image of a program.
2. Progress.  Steps wait for given others.  If some wait for each other in a circle, so do the
   programs' own steps when images are taken for the same; and from a circle there, followed on and
   on, one comes back to where one started, for the group is finite.  So one excludes the other.
3. Order: a step accesses chunks of its own rank, where the order inside the rank must decide.
4. Values: a message holds the image of what the program's own step sends.  Sums are exact; more
   than two of the same contribution count as two, for no goal has any twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from p2smt.collectives.contract import Contribution, Goal
from p2smt.errors import InputError
from p2smt.fabric.symmetries import named_symmetry
from p2smt.schedules.folded import connection_image
from p2smt.schedules.index import index_of
from p2smt.schedules.model import DEFAULT_DEPTH, Buffer, Connection, Span
from p2smt.schedules.order.happens_before import edges_of
from p2smt.schedules.order.unordered_accesses import find_races
from p2smt.schedules.verify.contributions import classify
from p2smt.schedules.verify.report import Kind, Report, Verdict, Violation
from p2smt.schedules.verify.structure import broken_steps, mismatched

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from p2smt.fabric.fabric import Fabric
    from p2smt.schedules.folded import Folded, Permutation
    from p2smt.schedules.index import Index

    SumIds = NDArray[np.int64]
    """Contributions, ascending: rank times input chunks, plus chunk; -1: undefined."""

_MOST = 100
_SHOWN = 8
_UNDEFINED = np.array([-1], dtype=np.int64)


def verify_by_symmetry(
    told: Folded, fifo_depth: int = DEFAULT_DEPTH, fabric: Fabric | None = None
) -> Report:
    """Checks a schedule for every interleaving, by its programs and symmetries.

    Its symmetries are known to be such of the collective.  With a fabric, they are held to be such
    of it as well, and messages to go along its edges.

    Args:
        fifo_depth: messages that a connection holds before its sender must wait.

    Raises:
        InputError: a symmetry is none of the fabric, or that has other ranks.
    """
    index = index_of(told.programs)
    report = Report(Verdict.VALID, (), told.programs.warnings, fifo_depth)
    far = () if fabric is None else tuple(_off_fabric(told, index, fabric))
    check = _Check(told, index)
    for broken in (broken_steps(index), chain(check.unmatched(), far)):
        if found := tuple(dict.fromkeys(islice(broken, _MOST))):
            return replace(report, verdict=Verdict.INVALID, violations=found)
    order, report = check.run(fifo_depth), replace(report, min_depth=check.least_depth())
    if len(order) < len(told.programs.steps):
        stuck = check.stuck(order, fifo_depth)
        return replace(report, verdict=Verdict.INVALID, violations=(stuck,))
    if races := find_races(index, edges_of(index), order):
        reason = (
            f"{index.memory.name(races[0].cell)} is accessed in no order that its rank alone "
            "decides; written out by `p2smt convert`, the schedule can be checked rank by rank"
        )
        return replace(report, verdict=Verdict.UNKNOWN, reason=reason)
    if found := tuple(islice(check.wrong(order), _MOST)):
        return replace(report, verdict=Verdict.INVALID, violations=found)
    return report


def _off_fabric(told: Folded, index: Index, fabric: Fabric) -> Iterator[Violation]:
    """Connections without an edge, after the symmetries were proved."""
    if fabric.ranks != told.what.ranks:
        given = f"fabric {fabric.name[:60]!r} of {fabric.ranks} ranks"
        rule = f"is not that of a schedule of {told.what.ranks}"
        raise InputError(given, rule, "name the schedule's own")
    for one in told.generators:
        named_symmetry(fabric, one.ranks.tolist())
    edges = {(edge.source, edge.target) for edge in fabric.edges}
    for connection, numbers in index.sends.items():
        if (connection.source, connection.target) not in edges:
            step = told.programs.steps[numbers[0]]
            text = f"{step} sends to rank {connection.target}, to which the fabric has no edge"
            yield Violation(Kind.PEER, text, tuple(numbers[:1]), step.rank)


@dataclass(frozen=True, slots=True)
class _Check:
    """The programs' own steps, by their numbers, and what their images do with them."""

    told: Folded
    index: Index

    def _home(self, rank: int) -> tuple[int, Permutation]:
        home, number = self.told.homes[rank]
        return home, self.told.group[number]

    def _back(self, connection: Connection, rank: int) -> Connection:
        """The connection as the program of one of its ends knows it."""
        _, symmetry = self._home(rank)
        return connection_image(connection, np.argsort(symmetry.ranks))

    def _senders(self, connection: Connection) -> Sequence[int]:
        """Steps whose images send on a connection."""
        return self.index.sends.get(self._back(connection, connection.source), ())

    def _receivers(self, connection: Connection) -> Sequence[int]:
        """Steps whose images receive on a connection."""
        return self.index.receives.get(self._back(connection, connection.target), ())

    def unmatched(self) -> Iterator[Violation]:
        """Messages whose other end is missing, or has another size or order of chunks."""
        for connection in dict.fromkeys(chain(self.index.sends, self.index.receives)):
            ends = self._senders(connection), self._receivers(connection)
            yield from (faults := tuple(mismatched(self.index, connection, *ends)))
            if not faults:
                yield from self._turned(connection, *ends)

    def _turned(
        self, connection: Connection, sends: Sequence[int], receives: Sequence[int]
    ) -> Iterator[Violation]:
        """Messages whose chunks a symmetry takes to others in different orders at both ends."""
        steps = self.index.schedule.steps
        at_source, at_target = (self._home(rank)[1] for rank in connection[:2])
        for send, receive in zip(sends, receives, strict=True):
            if steps[send].count == 1:
                continue
            orders = self._orders(send, at_source), self._orders(receive, at_target)
            if not np.array_equal(*orders):
                text = f"the chunks of {steps[send]} and of {steps[receive]} come in two orders"
                yield Violation(Kind.COUNT, text, (receive, send), steps[receive].rank)

    def _orders(self, number: int, symmetry: Permutation) -> NDArray[np.int64]:
        """In which order all symmetries take the chunks of a step's image."""
        step = self.index.schedule.steps[number]
        span = (*step.reads, *step.writes)[0]
        first = int(symmetry.of(span.buffer)[span.start : span.start + span.count].min())
        return self.told.runs(replace(span, start=first))[1]

    # Progress.

    def _waits(self, depth: int) -> list[list[int]]:
        """What each step must have before it: steps whose images, one each, are complete."""
        waits = [
            list(self.index.before(number)) for number in range(len(self.index.schedule.steps))
        ]
        for connection, receives in self.index.receives.items():
            for send, receive in zip(self._senders(connection), receives, strict=True):
                waits[receive].append(send)
        for connection, sends in self.index.sends.items():
            receives = self._receivers(connection)
            for receive, send in zip(receives, sends[depth:], strict=False):
                waits[send].append(receive)
        return waits

    def run(self, depth: int) -> list[int]:
        """The steps in an order in which nothing waits, as far as they get."""
        waits = self._waits(depth)
        left = [len(before) for before in waits]
        after: dict[int, list[int]] = defaultdict(list)
        for number, before in enumerate(waits):
            for one in before:
                after[one].append(number)
        order = [number for number, count in enumerate(left) if not count]
        for done in order:
            for number in after[done]:
                left[number] -= 1
                if not left[number]:
                    order.append(number)
        return order

    def least_depth(self) -> int | None:
        """The smallest depth at which every step gets its turn; None: there is none."""
        steps = len(self.index.schedule.steps)
        low, high = 1, max([1, *map(len, self.index.sends.values())])
        if len(self.run(high)) < steps:
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if len(self.run(middle)) == steps else (middle + 1, high)
        return low

    def stuck(self, order: Sequence[int], depth: int) -> Violation:
        """Steps that wait for each other, each for an image of the next."""
        steps, waits, done = self.index.schedule.steps, self._waits(depth), set(order)
        number = next(n for n in range(len(steps)) if n not in done)
        seen: list[int] = []
        while number not in seen:
            seen.append(number)
            number = next(n for n in waits[number] if n not in done)
        circle = seen[seen.index(number) :]
        shown = ", ".join(str(steps[one]) for one in circle[:_SHOWN])
        more = f" and {len(circle) - _SHOWN} more" if len(circle) > _SHOWN else ""
        text = f"images of {shown}{more} wait for each other with connections of depth {depth}"
        return Violation(Kind.DEADLOCK, text, tuple(circle), steps[circle[0]].rank)

    # Values.

    def wrong(self, order: Sequence[int]) -> Iterator[Violation]:
        """What ranks with a program do not end with, after steps in this order."""
        cells, written = self._values(order)
        what, memory = self.told.what, self.index.memory
        size = what.sizes(0).input
        for rank in dict.fromkeys(step.rank for step in self.index.schedule.steps):
            for chunk, wanted in what.goals(rank):
                cell = memory.output_cell(rank, chunk)
                got = cells.get(cell, _UNDEFINED)
                if np.array_equal(got, wanted):
                    continue
                parts = tuple(Contribution(*divmod(one, size)) for one in wanted.tolist())
                has = Counter(
                    str(Span(rank, Buffer.OUTPUT, chunk, 1))
                    if one < 0
                    else Contribution(*divmod(one, size))
                    for one in got.tolist()
                )
                kind, words = classify(Goal(rank, chunk, parts), has, cell not in written)
                yield Violation(kind, f"o[{chunk}] of rank {rank} {words}", (), rank, chunk)

    def _values(self, order: Sequence[int]) -> tuple[dict[int, SumIds], set[int]]:
        """What chunks of ranks with a program hold after all steps, and which were written."""
        steps, memory, cells = self.index.schedule.steps, self.index.memory, self._inputs()
        sender = {
            receive: (send, self._home(connection.source)[1])
            for connection, receives in self.index.receives.items()
            for send, receive in zip(self._senders(connection), receives, strict=True)
        }
        sent: dict[int, list[SumIds]] = {}
        written: set[int] = set()
        for number in order:
            step = steps[number]
            parts = [[cells.get(c, _UNDEFINED) for c in memory.cells(s)] for s in step.reads]
            if number in sender:
                send, symmetry = sender[number]
                parts.append(self._arrived(send, sent[send], symmetry))
            value = [_added(several) for several in zip(*parts, strict=True)]
            for span in step.writes:
                cells.update(zip(memory.cells(span), value, strict=True))
                written.update(memory.cells(span))
            if step.send:
                sent[number] = value
        return cells, written

    def _inputs(self) -> dict[int, SumIds]:
        size = self.told.what.sizes(0).input
        return {
            self.index.memory.input_cell(rank, chunk): np.array([rank * size + chunk])
            for rank in dict.fromkeys(step.rank for step in self.index.schedule.steps)
            for chunk in range(size)
        }

    def _arrived(self, send: int, value: list[SumIds], symmetry: Permutation) -> list[SumIds]:
        """What the image of a step sends, in the order in which that handles its chunks."""
        size = self.told.what.sizes(0).input
        moved = [_moved(one, symmetry, size) for one in value]
        step = self.index.schedule.steps[send]
        if step.count == 1:
            return moved
        span = (*step.reads, *step.writes)[0]
        images = symmetry.of(span.buffer)[span.start : span.start + span.count]
        return [moved[place] for place in np.argsort(images).tolist()]


def _moved(one: SumIds, symmetry: Permutation, size: int) -> SumIds:
    """A sum as a symmetry takes it to other ranks and chunks; what is undefined stays so."""
    ranks, chunks = np.divmod(one, size)
    images = symmetry.ranks[ranks] * size + symmetry.input[chunks]
    return np.sort(np.where(one < 0, one, images))


def _added(several: Sequence[SumIds]) -> SumIds:
    """The sum of some, with at most two of the same contribution."""
    if len(several) == 1:
        return several[0]
    found: SumIds = np.sort(np.concatenate(several))
    kept: SumIds = found[np.append([True, True], found[2:] != found[:-2])]
    return kept
