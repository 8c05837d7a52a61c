"""Classes of devices that split their rows in orders of their own, and the first and last row.

A reduce-scatter gives the i-th run of a group's rows to member i.  Where these rows are not alike,
which row comes in which run depends on the order that earlier steps left, and on the sizes.  Two
things are known all the same (docs/small-model.md, lemmas 3 and 4).  The first row of all goes to
the first member, the last one to the last.  And where rows are unlike only since devices with
another last non-zero level lag behind, each such class has its own order; as long as no group
spans two classes, each goes its way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

from experiments.small_model.diagrams import Node
from experiments.small_model.symbolic_state import (
    Hierarchies,
    Undecided,
    UnlikeRowsError,
    kept,
)
from p2smt.collectives.names import Collective, RequestKind


@dataclass(frozen=True, slots=True)
class Span:
    """What the devices hold whose last non-zero digit is at a level of begin..end-1.

    From level 0 on, the first device is among them.
    """

    begin: int
    end: int
    content: Node


@dataclass(frozen=True, slots=True)
class State:
    """The first and last row of all devices, and the classes of devices with rows of their own."""

    corners: Node
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """What devices hold after a step, and the class that they were in before.

    None: they hold everything, whatever it was.
    """

    after: Span
    before: Span | None


class Steps(Hierarchies):
    """The steps of states whose classes of devices have row orders of their own."""

    @cached_property
    def corner_rows(self) -> Node:
        """The first row (zero at each level) and the last (another digit, at each level)."""
        first = self.diagrams.product(3, [lambda t: t[1] == 0] * self.levels)
        last = self.diagrams.product(3, [lambda t: t[1] != 0] * self.levels)
        return self.diagrams.union(first, last)

    @cached_property
    def beginning(self) -> State:
        """Before the first step all devices share one order of rows."""
        corners = self.both(self.start, self.corner_rows)
        return State(corners, (Span(0, self.levels, self.start),))

    def corner_step(self, corners: Node, instruction: int) -> Node | None:
        """The first and last row after a step; None if no sizes allow it."""
        if not kept(self.row_rules(corners, instruction)):
            return None
        return self.after(corners, instruction)

    def corners_done(self, corners: Node) -> bool:
        """Whether the goal has these first and last rows."""
        if self.request is RequestKind.REDUCE_SCATTER:
            return kept(self.complete_and_apart(corners, self.rows(corners)))
        return kept([self.missing(self.corner_rows, corners)])

    def next(self, state: State, instruction: int) -> State | None:
        """The state after a step; None if no sizes allow it.

        Raises:
            Undecided: the reasoning does not settle the step.
        """
        corners = self.corner_step(state.corners, instruction)
        if corners is None:
            return None
        pieces = self.pieces(state.spans, instruction)
        return None if pieces is None else State(corners, self._joined([p.after for p in pieces]))

    def pieces(self, spans: Sequence[Span], instruction: int) -> list[Piece] | None:
        """The classes after a step, before any are joined; None if no sizes allow it.

        Raises:
            Undecided: the reasoning does not settle the step.
        """
        inner = self.instructions[instruction][1].inner
        if all(span.end >= inner for span in spans):
            return self._apart(spans, instruction)
        return self._met(spans, instruction)

    def _apart(self, spans: Sequence[Span], instruction: int) -> list[Piece] | None:
        """The classes after a step whose groups lie in one each."""
        found: list[Piece] = []
        undecided = None
        for span in spans:
            try:
                after = self._in_class(span, instruction)
            except Undecided as reason:
                undecided = reason  # another class may refuse the step
                continue
            if after is None:
                return None
            found += [Piece(one, span) for one in after]
        if undecided is not None:
            raise undecided
        return found

    def _in_class(self, span: Span, instruction: int) -> list[Span] | None:
        devices = self.devices(span.begin, span.end)
        try:
            after = self.step(span.content, instruction, devices)
        except UnlikeRowsError:
            return self._split(span, instruction)
        return None if after is None else [Span(span.begin, span.end, after)]

    def _split(self, span: Span, instruction: int) -> list[Span]:
        """Finer classes, as few as possible, of each of which a group's rows are alike."""
        inner = self.instructions[instruction][1].inner
        places = range(max(inner, span.begin + 1), span.end)
        for many in range(1, len(places) + 1):
            for cuts in combinations(places, many):
                ends = (span.begin, *cuts, span.end)
                try:
                    return list(self._parts(span.content, ends, instruction))
                except UnlikeRowsError:
                    continue
        raise UnlikeRowsError("rows of a group are not alike")

    def _parts(self, content: Node, ends: Sequence[int], instruction: int) -> Iterator[Span]:
        for begin, end in pairwise(ends):
            devices = self.devices(begin, end)
            after = self.step(self.of(content, devices), instruction, devices)
            if after is None:  # the rules held for the whole class
                raise Undecided("a part of a class refuses what the whole allows")
            yield Span(begin, end, after)

    def _met(self, spans: Sequence[Span], instruction: int) -> list[Piece] | None:
        """The classes after a step some of whose groups span two of them.

        It is settled only for a broadcast of everything: then the orders of rows play no part.
        """
        collective, grouping = self.instructions[instruction]
        outer, inner = grouping.outer, grouping.inner
        if collective is not Collective.BROADCAST:
            raise Undecided(f"classes meet in {collective.value}")
        if not all(self._complete_before(span, outer) for span in spans):
            raise Undecided("classes meet in a broadcast of less than all")
        full = self.of(self.everything, self.devices(0, inner))
        found = [Piece(Span(0, inner, full), None)]
        for span in spans:
            low, high = max(span.begin, outer), min(span.end, inner)
            if low < high and not self.all_lack(span.content, self.receivers(low, high)):
                return None
            if span.end > inner:
                after = self._beyond(span, inner, instruction)
                if after is None:
                    return None
                found.append(Piece(after, span))
        return found

    def _complete_before(self, span: Span, outer: int) -> bool:
        """Whether the devices of a class that are first in a group that spans two are complete."""
        end = min(span.end, outer)
        if end <= span.begin and span.begin:
            return True
        first = self.devices(span.begin, end)
        return self.complete(span.content, first)

    def _beyond(self, span: Span, inner: int, instruction: int) -> Span | None:
        """The devices of a class whose groups lie within it, since their last digit lies beyond."""
        devices = self.devices(max(span.begin, inner), span.end)
        content = self.of(span.content, devices)
        after = self.step(content, instruction, devices)
        return None if after is None else Span(max(span.begin, inner), span.end, after)

    def _joined(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        """Neighbouring classes as one where at most one of them tells rows apart."""
        found = [spans[0]]
        for span in spans[1:]:
            last = found[-1]
            if self.rows_alike(span.content) or self.rows_alike(last.content):
                content = self.diagrams.union(last.content, span.content)
                found[-1] = Span(last.begin, span.end, content)
            else:
                found.append(span)
        return tuple(found)

    def done(self, state: State) -> bool:
        """Whether a state is the goal, on all sizes or on none.

        Raises:
            Undecided: it depends on the sizes, as far as this reasoning can tell.
        """
        if len(state.spans) == 1:
            return self.is_goal(state.spans[0].content)
        if self.request is not RequestKind.REDUCE_SCATTER:
            classes = [(s.content, self.devices(s.begin, s.end)) for s in state.spans]
            return all(self.complete(*one) for one in classes)
        if not self.corners_done(state.corners):
            return False
        raise Undecided("which of several classes holds a row")
