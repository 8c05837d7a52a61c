"""Reduction programs on all sizes of a hierarchy at once: what each device holds, and each step.

A state is a relation: device d holds, of row u, the contribution c.  It stands for a state matrix
per device up to the order of the rows, on any sizes of at least 2 (docs/small-model.md, lemmas 1
and 2).  A rule is judged for all sizes together: no size breaks it, every size does, or
:class:`Undecided`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from functools import cached_property

from experiments.small_model.diagrams import EMPTY, Diagrams, Node
from experiments.small_model.equality_types import Formula, Where, Witnesses, number_of
from p2smt.collectives.names import Collective, RequestKind
from p2smt.problems.placement import InstructionSet
from p2smt.programs.program import Grouping

Polynomial = dict[int, int]
"""In the sizes less 2: coefficients of products of distinct levels, a bit per level."""


class Undecided(Exception):
    """What this reasoning does not settle for all sizes; the text says why."""


class UnlikeRowsError(Undecided):
    """A reduce-scatter would split rows that are not alike, so that their order matters."""


class Broken(Enum):
    """On which sizes a rule is broken."""

    NOWHERE = auto()
    EVERYWHERE = auto()
    PERHAPS = auto()  # on some sizes, or this reasoning cannot tell


class RowDigit(Enum):
    """What content asks of a row's digit at one level."""

    NOTHING = auto()
    WHETHER_ZERO = auto()
    WHICH = auto()


def kept(verdicts: Iterable[Broken]) -> bool:
    """Whether rules hold, on all sizes or on none.

    Raises:
        Undecided: it depends on the sizes, as far as this reasoning can tell.
    """
    perhaps = False
    for verdict in verdicts:
        if verdict is Broken.EVERYWHERE:
            return False
        perhaps |= verdict is Broken.PERHAPS
    if perhaps:
        raise Undecided("a rule depends on the sizes")
    return True


_HELD = Formula(("duc",), (), "du")
_ANY_ROW = Formula(("du",), (), "d")
_LACKS_ROW = Formula(("du",), ("eu",), "")
_SHARES_CONTRIBUTION = Formula(("duc", "euc", "de"), (), "")
_SHARES_ROW = Formula(("du", "eu", "de"), (), "")
_BEYOND_FIRST = Formula(("duc",), ("fuc",), "")
_GAINS = Formula(("fuc",), ("duc",), "d")
_OUTSIDE = Formula(("d",), ("d",), "")
_UNION = Formula(("euc",), (), "duc")
_OF_FIRST = Formula(("fuc",), (), "duc")
_SAME = Formula(("duc",), (), "duc")
_NOT_OF = Formula(("duc",), ("d",), "duc")
_ONLY_OF = Formula(("duc", "d"), (), "duc")
_ROWS_OF = Formula(("du", "d"), (), "du")
_BOTH = Formula(("duc", "duc"), (), "duc")
_MINUS = Formula(("d",), ("d",), "d")
_MEET = Formula(("d", "d"), (), "")
_IN_BOTH = Formula(("d", "d"), (), "d")
_MISSING = Formula(("duc",), ("duc",), "")
_OTHER_ROW = Formula(("dvc",), (), "duc")
_UNLIKE = Formula(("du", "dv", "uv"), (), "")
_INCOMPLETE = Formula(("d",), ("duc",), "")
_INCOMPLETE_DEVICES = Formula(("d",), ("duc",), "d")
_INCOMPLETE_ROW = Formula(("du",), ("duc",), "")

_TWO = Witnesses.TWO_VALUES


class Hierarchies:
    """All hierarchies of ``levels`` levels, whatever their sizes, and one request."""

    def __init__(self, levels: int, request: RequestKind) -> None:
        self.levels, self.request = levels, request
        self.diagrams = Diagrams(levels)
        self.instructions = InstructionSet.of(levels).items
        self.anywhere = (Where.ANY,) * levels
        self.where = [self._where(grouping) for _, grouping in self.instructions]
        self._steps: dict[tuple[Node, int, Node], Node | Undecided | None] = {}
        self._digits: dict[Node, tuple[RowDigit, ...]] = {}
        self._counts: dict[tuple[int, Node], dict[int, Polynomial]] = {}

    def _where(self, grouping: Grouping) -> tuple[Where, ...]:
        outside = Where.ZERO if grouping.master else Where.FIXED
        inside = (Where.VARIES,) * (grouping.inner - grouping.outer)
        inner = (outside,) * (self.levels - grouping.inner)
        return (Where.FIXED,) * grouping.outer + inside + inner

    @cached_property
    def everything(self) -> Node:
        """Every device holds all contributions to all rows."""
        return self.diagrams.product(3, [lambda _: True] * self.levels)

    @cached_property
    def start(self) -> Node:
        """What devices hold before the first step: all rows or one, all contributions or one."""
        own = 1 if self.request is RequestKind.ALL_GATHER else 2  # row or contribution
        return self.diagrams.product(3, [lambda t: t[0] == t[own]] * self.levels)

    @cached_property
    def different(self) -> Node:
        """Pairs of different digits."""
        return self.diagrams.somewhere(2, [lambda t: t[0] != t[1]] * self.levels)

    def devices(self, begin: int, end: int) -> Node:
        """Devices whose last digit that is not zero lies at a level of begin..end-1.

        From level 0 on, the first device is among them.
        """
        return self.receivers(begin, end) if begin else self._before(end)

    def receivers(self, begin: int, end: int) -> Node:
        """The same without the first device."""
        pair = (self._before(end), self._before(begin))
        return self.diagrams.solve(_MINUS, self.anywhere, pair)

    def _before(self, end: int) -> Node:
        """Devices whose digits are zero from a level on."""
        ends: list[Callable[[tuple[int, ...]], bool]] = [lambda _: True] * end
        ends += [lambda t: t[0] == 0] * (self.levels - end)
        return self.diagrams.product(1, ends)

    @cached_property
    def all_devices(self) -> Node:
        """Every device."""
        return self.devices(0, self.levels)

    # what a formula says of all sizes

    def find(
        self, formula: Formula, relations: tuple[Node, ...], where: tuple[Where, ...] | None = None
    ) -> Node:
        """The relation that a formula defines, the same on all sizes.

        Raises:
            Undecided: what exists on some sizes may be lacking on others.
        """
        where = where or self.anywhere
        found = self.diagrams.solve(formula, where, relations)
        sure = self.diagrams.solve(formula, where, relations, Witnesses.ON_EVERY_SIZE)
        if found != sure:
            raise Undecided("what exists depends on the sizes")
        return found

    def broken(
        self, formula: Formula, relations: tuple[Node, ...], where: tuple[Where, ...] | None = None
    ) -> Broken:
        """On which sizes something satisfies a formula that says what is forbidden."""
        where = where or self.anywhere
        if not self.diagrams.solve(formula, where, relations):
            return Broken.NOWHERE
        sure = self.diagrams.solve(formula, where, relations, _TWO)
        return Broken.EVERYWHERE if sure else Broken.PERHAPS

    def rows(self, content: Node) -> Node:
        """Which rows each device holds."""
        return self.find(_HELD, (content,))

    def of(self, content: Node, devices: Node) -> Node:
        """What some devices hold."""
        return self.diagrams.solve(_ONLY_OF, self.anywhere, (content, devices))

    def both(self, one: Node, other: Node) -> Node:
        """The intersection of two relations of devices, rows and contributions."""
        return self.diagrams.solve(_BOTH, self.anywhere, (one, other))

    # a step on devices that share one system of rows

    def step(self, content: Node, instruction: int, devices: Node) -> Node | None:
        """What these devices hold after a step; None if it is allowed on no sizes.

        Each group lies among the devices or apart from them.

        Raises:
            UnlikeRowsError: a reduce-scatter would split rows that are not alike.
            Undecided: the reasoning does not settle the step.
        """
        key = (content, instruction, devices)
        if key not in self._steps:
            try:
                self._steps[key] = self._step(*key)
            except Undecided as reason:
                self._steps[key] = reason
        found = self._steps[key]
        if isinstance(found, Undecided):
            raise found
        return found

    def _step(self, content: Node, instruction: int, devices: Node) -> Node | None:
        taking_part = self._taking_part[instruction]
        if not self.diagrams.solve(_MEET, self.anywhere, (taking_part, devices)):
            return content
        rules = self._whole_rules(content, instruction, devices)
        if not kept((*self.row_rules(content, instruction), *rules)):
            return None
        if self.instructions[instruction][0] is Collective.REDUCE_SCATTER:
            self._like_rows(content, instruction)
        return self.after(content, instruction)

    @cached_property
    def _taking_part(self) -> list[Node]:
        """The devices of each instruction's groups."""

        def zero(where: Where) -> Callable[[tuple[int, ...]], bool]:
            return lambda t: where is not Where.ZERO or t[0] == 0

        return [self.diagrams.product(1, list(map(zero, where))) for where in self.where]

    @cached_property
    def _not_first(self) -> list[Node]:
        """The devices that are not first in their group, of each instruction."""

        def other(where: Where) -> Callable[[tuple[int, ...]], bool]:
            return lambda t: where is Where.VARIES and t[0] != 0

        return [self.diagrams.somewhere(1, list(map(other, where))) for where in self.where]

    def row_rules(self, content: Node, instruction: int) -> Iterator[Broken]:
        """The rules that speak of one row each: they hold for every row or the step is refused."""
        where = self.where[instruction]
        match self.instructions[instruction][0]:
            case Collective.BROADCAST:
                yield self.broken(_BEYOND_FIRST, (content, content), where)
            case Collective.ALL_GATHER:
                rows = self.rows(content)
                yield self.broken(_SHARES_ROW, (rows, rows, self.different), where)
            case _:
                rows = self.rows(content)
                yield self.broken(_LACKS_ROW, (rows, rows), where)
                two = (content, content, self.different)
                yield self.broken(_SHARES_CONTRIBUTION, two, where)

    def _whole_rules(self, content: Node, instruction: int, devices: Node) -> Iterator[Broken]:
        """The rules that speak of all rows of a device of these."""
        collective, where = self.instructions[instruction][0], self.where[instruction]
        if collective is Collective.BROADCAST:
            gaining = self.find(_GAINS, (content, content), where)
            pair = (self._not_first[instruction], devices)
            others = self.diagrams.solve(_IN_BOTH, self.anywhere, pair)
            yield self.broken(_OUTSIDE, (others, gaining), where)
            return
        rows = self.rows(content)
        holding = self.find(_ANY_ROW, (rows,))
        yield self.broken(_OUTSIDE, (devices, holding), where)
        if collective is Collective.ALL_GATHER:
            yield self._counts_differ(rows, where)

    def after(self, content: Node, instruction: int) -> Node:
        """What devices hold after a step that is allowed, up to the order of rows."""
        collective, where = self.instructions[instruction][0], self.where[instruction]
        others = (content, self._taking_part[instruction])
        rest = self.diagrams.solve(_NOT_OF, self.anywhere, others)
        if collective is Collective.BROADCAST:
            new = self.find(_OF_FIRST, (content,), where)
        else:
            new = self.find(_UNION, (content,), where)
        kept_by = {Collective.REDUCE: Where.FIRST, Collective.REDUCE_SCATTER: Where.OWN_ROW}
        if collective in kept_by:
            keep = [kept_by[collective] if w is Where.VARIES else Where.ANY for w in where]
            new = self.diagrams.solve(_SAME, tuple(keep), (new,))
        return self.diagrams.union(rest, new)

    # rows

    def row_digits(self, content: Node) -> tuple[RowDigit, ...]:
        """What content asks of a row's digits: rows that agree on all of it are held alike."""
        if content not in self._digits:
            self._digits[content] = tuple(self._digit(content, i) for i in range(self.levels))
        return self._digits[content]

    def _digit(self, content: Node, level: int) -> RowDigit:
        for free, asked in (
            (Where.ANY, RowDigit.NOTHING),
            (Where.LIKE_ROW, RowDigit.WHETHER_ZERO),
        ):
            where = [Where.SAME_ROW] * self.levels
            where[level] = free
            if self.diagrams.solve(_OTHER_ROW, tuple(where), (content,)) == content:
                return asked
        return RowDigit.WHICH

    def rows_alike(self, content: Node) -> bool:
        """Whether all rows are held alike."""
        return set(self.row_digits(content)) == {RowDigit.NOTHING}

    def own_rows(self, levels: frozenset[int], devices: Node) -> Node:
        """Each of some devices with the rows that have its own digits at these levels."""

        def own(level: int) -> Callable[[tuple[int, ...]], bool]:
            return lambda t: level not in levels or t[0] == t[1]

        rows = self.diagrams.product(2, list(map(own, range(self.levels))))
        return self.diagrams.solve(_ROWS_OF, self.anywhere, (rows, devices))

    def _like_rows(self, content: Node, instruction: int) -> None:
        """Raises UnlikeRowsError unless each group's rows are alike, and as many of each digit."""
        asked, where = self.row_digits(content), self.where[instruction]
        pairs = zip(asked, where, strict=True)
        if any(w is Where.VARIES and a is not RowDigit.NOTHING for a, w in pairs):
            raise UnlikeRowsError("the digits that a group splits its rows by are not free")
        differ = {
            RowDigit.NOTHING: lambda _: False,
            RowDigit.WHETHER_ZERO: lambda t: (t[0] == 0) != (t[1] == 0),
            RowDigit.WHICH: lambda t: t[0] != t[1],
        }
        unlike = self.diagrams.somewhere(2, [differ[one] for one in asked])
        rows = self.rows(content)
        taking_part = tuple(Where.ZERO if w is Where.ZERO else Where.ANY for w in where)
        if self.diagrams.solve(_UNLIKE, taking_part, (rows, rows, unlike)):
            raise UnlikeRowsError("rows of a group are not alike")

    def counts(self, rows: Node) -> dict[int, Polynomial]:
        """How many rows a device holds, by which of its digits are zero (a bit per level)."""
        return self._counted(rows, 0)

    def _counted(self, rows: Node, level: int) -> dict[int, Polynomial]:
        if rows == EMPTY:
            return {}
        if level == self.levels:
            return {0: {0: 1}}
        if (level, rows) not in self._counts:
            found: dict[int, Polynomial] = {}
            for kind, constant, linear in _WEIGHTS:
                child = self.diagrams.children[rows][number_of(kind)]
                for zeros, part in self._counted(child, level + 1).items():
                    key = zeros | (kind[0] == 0) << level
                    found[key] = _sum(found.get(key, {}), part, constant, linear << level)
            self._counts[level, rows] = found
        return self._counts[level, rows]

    def _counts_differ(self, rows: Node, where: tuple[Where, ...]) -> Broken:
        """Whether members of a group hold different numbers of rows."""
        slice_ = sum(1 << i for i, w in enumerate(where) if w is Where.VARIES)
        zero = sum(1 << i for i, w in enumerate(where) if w is Where.ZERO)
        groups: dict[int, Polynomial] = {}
        verdict = Broken.NOWHERE
        for zeros, count in self.counts(rows).items():
            if zeros & zero == zero:
                first = groups.setdefault(zeros & ~slice_, count)
                verdict = worse(verdict, unequal(first, count))
        return verdict

    # the end

    def is_goal(self, content: Node) -> bool:
        """Whether the request is met, on all sizes or on none.

        Raises:
            Undecided: it depends on the sizes.
        """
        if self.request is RequestKind.REDUCE_SCATTER:
            return kept(self._one_row_each(content))
        return self.complete(content, self.all_devices)

    def complete(self, content: Node, devices: Node) -> bool:
        """Whether these devices hold everything, on all sizes or on none.

        Raises:
            Undecided: it depends on the sizes.
        """
        return kept([self.broken(_INCOMPLETE, (devices, content))])

    def all_lack(self, content: Node, devices: Node) -> bool:
        """Whether each of these devices lacks something, on all sizes or not on any.

        Raises:
            Undecided: it depends on the sizes.
        """
        incomplete = self.find(_INCOMPLETE_DEVICES, (self.all_devices, content))
        return kept([self.broken(_OUTSIDE, (devices, incomplete))])

    def missing(self, wanted: Node, content: Node) -> Broken:
        """Whether content lacks something that is wanted."""
        return self.broken(_MISSING, (wanted, content))

    def _one_row_each(self, content: Node) -> Iterator[Broken]:
        rows = self.rows(content)
        yield from self.complete_and_apart(content, rows)
        counts = self.counts(rows)
        if len(counts) < 2**self.levels:
            yield Broken.EVERYWHERE
        for count in counts.values():
            yield unequal(count, {0: 1})

    def complete_and_apart(self, content: Node, rows: Node) -> Iterator[Broken]:
        """Whether a row is held in part, or by two devices."""
        yield self.broken(_INCOMPLETE_ROW, (rows, content))
        whole = (Where.VARIES,) * self.levels
        yield self.broken(_SHARES_ROW, (rows, rows, self.different), whole)


_WEIGHTS = (
    # the type of a device's digit and a row's, and how many of the row's digits are of it:
    # a constant, plus (1) the size less 2 or not (0)
    ((0, 0), 1, 0),
    ((0, 1), 1, 1),
    ((1, 0), 1, 0),
    ((1, 1), 1, 0),
    ((1, 2), 0, 1),
)


def _sum(total: Polynomial, part: Polynomial, constant: int, level: int) -> Polynomial:
    """total + part * (constant + the size of a level less 2, if one is given)."""
    found = dict(total)
    for levels, factor in part.items():
        found[levels] = found.get(levels, 0) + factor * constant
        if level:
            found[levels | level] = found.get(levels | level, 0) + factor
    return {levels: factor for levels, factor in found.items() if factor}


def unequal(one: Polynomial, other: Polynomial) -> Broken:
    """On which sizes two counts differ: nowhere if they are one polynomial.

    Everywhere if the coefficients of the difference have one sign and the constant is not 0.
    """
    levels = one.keys() | other.keys()
    differences = {at: one.get(at, 0) - other.get(at, 0) for at in levels}
    signs = {math.copysign(1, d) for d in differences.values() if d}
    if not signs:
        return Broken.NOWHERE
    sure = len(signs) == 1 and differences.get(0, 0) != 0
    return Broken.EVERYWHERE if sure else Broken.PERHAPS


def worse(one: Broken, other: Broken) -> Broken:
    """What two verdicts on one rule come to."""
    order = (Broken.NOWHERE, Broken.PERHAPS, Broken.EVERYWHERE)
    return max(one, other, key=order.index)
