"""Closes open arcs: broadcasts between two classes of devices whose rows are in different orders.

A class splits its rows by digits: first by those of one level, these runs by those of another, and
so on.  So the rows of a class that have given digits at the first of these levels form one run.
Where two classes took the levels in different orders, what is one run for one is not for the other,
and a broadcast from one to the other is refused on all sizes (docs/small-model.md, lemma 5).

A state of the search does not tell the orders of its rows: two words that lead to it may differ
there.  So all words to an open arc are looked at.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from experiments.small_model.row_classes import Piece, Span, State, Steps
from experiments.small_model.search import GOAL, CornerSearch, Found, OpenArc, corners_go_on
from experiments.small_model.symbolic_state import RowDigit
from p2smt.collectives.names import Collective
from p2smt.programs.program import Grouping

Order = tuple[int, ...] | None
"""The levels by whose digits a class splits its rows, outermost first; None: another order."""


class Closed(Enum):
    """Why a word that ends in an open arc is no program's beginning on any sizes."""

    BY_CORNERS = "first and last row"
    BY_ORDERS = "two orders of rows"
    NOT = "not closed"


@dataclass(frozen=True, slots=True)
class Traced:
    """A state, and the order of rows of each of its classes."""

    state: State
    orders: tuple[Order, ...]


class Orders:
    """The orders of rows along words of steps."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    @property
    def beginning(self) -> Traced:
        """Before the first step."""
        return Traced(self.steps.beginning, ((),))

    def next(self, traced: Traced, instruction: int, after: State) -> Traced:
        """The orders after a step that leads to a state."""
        spans = traced.state.spans
        before = dict(zip(spans, traced.orders, strict=True))
        pieces = self.steps.pieces(spans, instruction) or []
        found = [
            (piece.after, self._of(piece, before[piece.before], instruction))
            for piece in pieces
            if piece.before is not None and not self.steps.rows_alike(piece.after.content)
        ]
        return Traced(after, tuple(self._joined(span, found) for span in after.spans))

    def _joined(self, span: Span, found: list[tuple[Span, Order]]) -> Order:
        """The order of a class: of its parts at most one tells rows apart."""
        within = [order for one, order in found if span.begin <= one.begin < span.end]
        return within[0] if within else ()

    def _of(self, piece: Piece, order: Order, instruction: int) -> Order:
        collective, grouping = self.steps.instructions[instruction]
        apart = grouping.master and piece.after.begin >= grouping.inner
        if collective is not Collective.REDUCE_SCATTER or apart or piece.before is None:
            return order
        devices = self.steps.devices(piece.after.begin, piece.after.end)
        asked = self.steps.row_digits(self.steps.of(piece.before.content, devices))
        if RowDigit.WHETHER_ZERO in asked:
            return None
        levels = _levels(asked)
        runs = () if order is None else order[: len(levels)]
        if set(runs) != levels:  # a group's rows are not one run
            return None
        return (*runs, *range(grouping.outer, grouping.inner))

    def refused(self, traced: Traced, instruction: int) -> bool:
        """Whether lemma 5 refuses a step on all sizes."""
        collective, grouping = self.steps.instructions[instruction]
        if collective is not Collective.BROADCAST or len(traced.state.spans) != 2:
            return False
        _, other = traced.state.spans
        sender, receiver = (self._run_levels(span) for span in traced.state.spans)
        if sender is None or receiver is None or None in traced.orders:
            return False
        if max(receiver, default=-1) >= other.begin or not _reaches(grouping, other.begin):
            return False
        a, b = (order or () for order in traced.orders)
        first = split_run(a, b)
        return first is not None and first <= sender & receiver

    def _run_levels(self, span: Span) -> frozenset[int] | None:
        """The levels where a device of a class holds just the rows with its own digits, if so."""
        levels = _levels(self.steps.row_digits(span.content))
        own = self.steps.own_rows(levels, self.steps.devices(span.begin, span.end))
        return levels if self.steps.rows(span.content) == own else None


def _levels(asked: tuple[RowDigit, ...]) -> frozenset[int]:
    return frozenset(i for i, one in enumerate(asked) if one is not RowDigit.NOTHING)


def _reaches(grouping: Grouping, level: int) -> bool:
    """Whether a slice has levels from this one on: its groups span the classes cut there."""
    return grouping.inner > level


def split_run(one: tuple[int, ...], other: tuple[int, ...]) -> frozenset[int] | None:
    """The levels of the largest run of one order that in the other is in several pieces."""
    alike = 0
    while alike < min(len(one), len(other)) and one[alike] == other[alike]:
        alike += 1
    for order, late in ((one, other), (other, one)):
        if alike < len(order) and order[alike] in late[alike + 1 :]:
            return frozenset(order[: alike + 1])
    return None


def close(found: Found) -> Counter[tuple[str, Closed]]:
    """How often each open arc is closed, by its reason: once for each word that leads to it."""
    totals: Counter[tuple[str, Closed]] = Counter()
    orders, corners = Orders(found.steps), CornerSearch(found.steps)
    open_arcs: dict[State, list[OpenArc]] = {}
    for open_arc in found.open_arcs:
        open_arcs.setdefault(open_arc.state, []).append(open_arc)
    towards = _leading_to(found, set(open_arcs))
    layer = Counter({orders.beginning: 1})
    for step in range(found.length):
        after: Counter[Traced] = Counter()
        for traced, words in layer.items():
            for open_arc in open_arcs.get(traced.state, ()):
                how = _closed(open_arc, traced, orders, corners, found.length - step - 1)
                totals[open_arc.reason, how] += words
            for arc in found.arcs[traced.state]:
                if arc.target is not GOAL and arc.target in towards:
                    after[orders.next(traced, arc.instruction, arc.target)] += words
        layer = after
    return totals


def _closed(
    arc: OpenArc, traced: Traced, orders: Orders, corners: CornerSearch, left: int
) -> Closed:
    if not corners_go_on(corners, arc.state, arc.instruction, left):
        return Closed.BY_CORNERS
    return Closed.BY_ORDERS if orders.refused(traced, arc.instruction) else Closed.NOT


def _leading_to(found: Found, targets: set[State]) -> set[State]:
    """The states from which one of these can be reached."""
    into: dict[State, list[State]] = {}
    for state, arcs in found.arcs.items():
        for arc in arcs:
            if arc.target is not GOAL:
                into.setdefault(arc.target, []).append(state)
    reached, left = set(targets), list(targets)
    while left:
        for before in into.get(left.pop(), ()):
            if before not in reached:
                reached.add(before)
                left.append(before)
    return reached
