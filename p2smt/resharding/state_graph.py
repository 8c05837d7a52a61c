"""The steps from each state under a cap on memory, with their times and bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, permutations, product

import numpy as np
import numpy.typing as npt

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import step_model
from p2smt.cost.link_bounds import bare_links
from p2smt.cost.loads.footprint_explicit import explicit_send
from p2smt.parallelism.placement import BoolArray, FloatArray, IntArray
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.step_prices import StepPrices, moved_bytes, quick_levels
from p2smt.resharding.step_table import StateTable, Symmetry, powers, subsets
from p2smt.resharding.steps import KINDS, ArrayStep, MemoryLimit, StepKind

NUMBERED = tuple(StepKind)
"""Kinds by number."""
PERMUTE = NUMBERED.index(StepKind.PERMUTE)


@dataclass(frozen=True, slots=True, eq=False)
class NextSteps:
    """Steps from one state: where to, seconds (NaN: not priced yet), kind by number, and bytes.

    ``bytes`` are input, output and pack buffer where these are capped, else the output.
    """

    targets: IntArray
    seconds: FloatArray
    kinds: IntArray
    bytes: IntArray

    def where(self, kept: BoolArray) -> NextSteps:
        """Those that a mask keeps."""
        return NextSteps(self.targets[kept], self.seconds[kept], self.kinds[kept], self.bytes[kept])


class StateGraph:
    """States of a table and the steps between them; ``counted``: the number of steps matters."""

    def __init__(
        self, ends: Ends, table: StateTable, prices: StepPrices, memory: MemoryLimit, counted: bool
    ) -> None:
        self.table, self.memory, self.prices = table, memory, prices
        self.symmetry = Symmetry.of(prices.topology, table)
        self.sends = Sends(table, prices, self.symmetry)
        self._counted = counted
        self._moves = DigitMoves(table, range(len(ends.frame.digits)))
        self._lettered = DigitMoves(table, self.symmetry.letters)
        self._beside = ends.frame.local_bytes(ends.source) if memory.keep_source else 0
        self._prices: dict[tuple[StepKind, tuple[int, ...], int, int], float] = {}
        self._least: dict[tuple[StepKind, tuple[int, ...], int, int], float] = {}
        self._shape = np.array(ends.frame.shape, dtype=np.int64)
        self._timed = self._exact = True

    def steps_from(self, number: int, first: bool) -> NextSteps:
        """The steps that keep to the cap; ``first``: nothing stands beside the source yet."""
        edges = self._all_from(number, first)
        return edges.where(edges.bytes <= self.memory.limit_bytes)

    def relaxed_from(self, number: int, first: bool) -> NextSteps:
        """From a state that speaks for its letters the steps that keep to the cap in some order.

        Permutes lead to states that speak for theirs, at the price of the cheapest exchange.
        """
        self._exact = False
        edges = self.steps_from(number, first)
        self._exact = True
        return edges

    def untimed_from(self, number: int, first: bool) -> NextSteps:
        """Every step, whatever it needs, with times that mean nothing."""
        self._timed = False
        edges = self._all_from(number, first)
        self._timed = True
        return edges

    def _all_from(self, number: int, first: bool) -> NextSteps:
        moves = self._moves if self._exact else self._lettered
        bundles = list(moves.bundles(number, self._whole_slices(number)))
        sent = self.sends.targets(number) if self._exact else self.sends.speakers(number)
        found = [*self._collectives(number, bundles, first), self._permutes(number, sent, first)]
        columns = [
            [getattr(edges, name) for edges in found]
            for name in ("targets", "seconds", "kinds", "bytes")
        ]
        targets, seconds, kinds, size = map(np.concatenate, columns)
        return NextSteps(targets, seconds, kinds, size)

    def _whole_slices(self, number: int) -> bool:
        """Whether one slice of several digits can do what slices of a digit each cannot."""
        if self._counted or not (self.memory.of_steps and self._timed):
            return self._counted or self.memory.of_steps
        size = int(self.table.size[number])
        largest = size + -(-size // min(self.table.frame.sizes)) + self._beside
        return largest > self.memory.limit_bytes

    def _collectives(self, number: int, bundles: Sequence[Bundle], first: bool) -> list[NextSteps]:
        if not bundles:
            return []
        every = self.table.find(np.concatenate([bundle.codes for bundle in bundles]))
        found, at = [], 0
        for bundle in bundles:
            targets = every[at : at + len(bundle.codes)]
            at += len(bundle.codes)
            if targets[0] < 0 or targets.min() < 0:
                kept = targets >= 0
                targets, plain = targets[kept], bundle.plain[kept]
            else:
                plain = bundle.plain
            if len(targets):
                found.append(self._edges(number, bundle, targets, plain, first))
        return found

    def _edges(
        self,
        number: int,
        bundle: Bundle,
        targets: IntArray,
        plain: BoolArray,
        first: bool,
    ) -> NextSteps:
        apart = targets if self.table.frame.nested else targets[:1]
        prices = np.array([self._price(number, bundle, int(target)) for target in apart])
        seconds = np.broadcast_to(prices, targets.shape)
        kind = NUMBERED.index(bundle.kind)
        count = len(targets)
        size = self._bytes(number, bundle.kind, targets, plain, first)
        return NextSteps(targets, seconds, np.full(count, kind), size)

    def _price(self, number: int, bundle: Bundle, target: int) -> float:
        """The time of a bundle's steps: they have one kind, one set of digits and one payload.

        Uneven chunks have a payload for each target.
        """
        if bundle.kind is StepKind.SLICE or not self._timed:
            return 0.0
        before, after = int(self.table.size[number]), int(self.table.size[target])
        key = (
            bundle.kind,
            bundle.digits,
            moved_bytes(bundle.kind, self.table.frame.ways(bundle.digits), before, after),
            int(self.table.order[number]),
        )
        known = self._prices if self._exact else self._least
        found = known.get(key)
        if found is None:
            found = known[key] = self._new_price(*key)
        return found

    def _new_price(
        self, kind: StepKind, digits: tuple[int, ...], payload_bytes: int, order: int
    ) -> float:
        if self._exact:
            first = self.symmetry.first_of_kind(digits)
            return self.prices.collective(kind, first, payload_bytes, order).seconds
        return min(
            self.prices.collective(kind, some, payload_bytes, order).seconds
            for some in self.symmetry.same_letters(digits)
        )

    def _permutes(self, number: int, targets: IntArray, first: bool) -> NextSteps:
        size = self._bytes(number, StepKind.PERMUTE, targets, np.ones(len(targets), bool), first)
        unknown = np.full(len(targets), np.nan)
        price = self.sends.seconds if self._exact else self.sends.lettered
        seconds = price(number, targets) if self._timed else unknown
        return NextSteps(targets, seconds, np.full(len(targets), PERMUTE), size)

    def _bytes(
        self,
        number: int,
        kind: StepKind,
        targets: IntArray,
        plain: BoolArray,
        first: bool,
    ) -> IntArray:
        after = self.table.size[targets]
        if not self.memory.of_steps:
            return after
        before = int(self.table.size[number])
        kept = 0 if first and kind is not StepKind.ALL_REDUCE else self._beside
        match kind:
            case StepKind.ALL_REDUCE:
                return np.full(len(targets), before + kept)
            case StepKind.ALL_TO_ALL:
                return after + before + np.maximum(before, after) + kept
            case StepKind.ALL_GATHER:
                packed = after * ~self._whole(number, targets, plain, gathers=True)
            case StepKind.REDUCE_SCATTER:
                packed = self._scattered(number, targets, plain)
            case _:
                packed = np.zeros(len(targets), dtype=np.int64)
        return np.asarray(after + before + kept + packed, dtype=np.int64)

    def _scattered(self, number: int, targets: IntArray, plain: BoolArray) -> IntArray:
        """Pack buffers of reduce-scatters: parts that may differ in length are padded."""
        here, there = self.table.ways[number], self.table.ways[targets]
        padded = ((here != there) & (self._shape % there != 0)).any(axis=1)
        parts = self.table.size[targets] * (there.prod(axis=1) // here.prod())
        packed = self.table.size[number] * ~self._whole(number, targets, plain, gathers=False)
        return np.asarray(np.where(padded, parts, packed), dtype=np.int64)

    def _whole(
        self,
        number: int,
        targets: IntArray,
        plain: BoolArray,
        gathers: bool,
    ) -> BoolArray:
        """Where the blocks of a group follow each other in memory, so that nothing is packed."""
        plain = plain | (not self._exact)
        here, there = self.table.ways[number], self.table.ways[targets]
        small = -(-self._shape // (here if gathers else there))
        before = np.ones((len(targets), len(self._shape)), dtype=np.int64)
        before[:, 1:] = np.cumprod(np.broadcast_to(small, before.shape), axis=1)[:, :-1]
        cut = np.argmax(here != there, axis=1)
        return np.asarray(plain & (before[np.arange(len(targets)), cut] == 1))

    def step(self, before: int, after: int, kind: int) -> ArrayStep:
        """The step between two states."""
        return KINDS[NUMBERED[kind]](self.table.state(before), self.table.state(after))


# Where slices and collectives lead from a state.
# A path needs slices of one digit at a time only, as they cost nothing and shrink the array, unless
# the number of steps or the bytes of a step count.


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """Steps of one kind over one set of digits, to states of these codes (some may not exist).

    ``plain``: where the blocks of a group follow each other, as far as the digits say.
    """

    kind: StepKind
    digits: tuple[int, ...]
    codes: IntArray
    plain: BoolArray


class DigitMoves:
    """The steps other than permutes of a table's states.

    ``letters`` has one for each digit: of steps that differ in digits of a letter only, one counts.
    """

    def __init__(self, table: StateTable, letters: Sequence[int]) -> None:
        self._table, self._letters = table, letters
        self._powers: list[int] = powers(table.frame, table.fixed).tolist()
        self._most = 1 if table.frame.nested else len(table.frame.digits)

    def bundles(self, number: int, whole_slices: bool) -> Iterator[Bundle]:
        """Every step from a state; without ``whole_slices`` slices of one digit only."""
        table = self._table
        dims, partial = table.dims(number), table.partial(number)
        code = int(table.codes[number])
        sharding = {digit for dim in dims for digit in dim}
        free = [q for q in range(len(self._powers)) if q not in sharding and q not in partial]
        most = self._most if whole_slices else 1
        for digits in self._sets(free, most):
            yield self._placed(StepKind.SLICE, code, dims, digits, range(len(dims)))
        yield from self._suffixes(code, dims)
        reducible = [q for q in partial if q in table.optional]
        for digits in self._sets(reducible, self._most):
            yield self._fewer(StepKind.ALL_REDUCE, code, dims, digits)
            less = code - self._held(dims, digits)
            takers = range(len(dims))
            yield self._placed(StepKind.REDUCE_SCATTER, less, dims, digits, takers)

    def _sets(self, digits: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
        """The sets of so many of them at most; of a letter the first ones."""
        for some in subsets(digits, 1, most):
            last = {self._letters[q]: q for q in some}
            if all(q in some or q > last.get(self._letters[q], -1) for q in digits):
                yield some

    def _placed(
        self,
        kind: StepKind,
        code: int,
        dims: list[list[int]],
        digits: tuple[int, ...],
        takers: Sequence[int],
    ) -> Bundle:
        """Digits without a place, counted out of the code, join the ends of these lists."""
        count = len(self._powers)
        rows = template(tuple(self._letters[q] for q in digits), len(takers))
        ends = np.array([1 + i * count + len(dims[i]) for i in takers], dtype=np.int64)
        places = ends[rows.taker] + rows.offset
        weights = np.array([self._powers[q] for q in digits], dtype=np.int64)
        return Bundle(kind, digits, code + places @ weights, rows.plain)

    def _suffixes(self, code: int, dims: list[list[int]]) -> Iterator[Bundle]:
        """The ends of lists are gathered, or move to lists that lose none."""
        for cut in product(*(range(len(dim) + 1) for dim in dims)):
            if not 0 < sum(cut) <= self._most:
                continue
            lost = [dim[len(dim) - k :] for dim, k in zip(dims, cut, strict=True)]
            yield self._gather(code, dims, lost)
            takers = [i for i, k in enumerate(cut) if not k]
            if takers:
                digits = tuple(sorted(q for some in lost for q in some))
                less = code - self._value(dims, digits)
                yield self._placed(StepKind.ALL_TO_ALL, less, dims, digits, takers)

    def _gather(self, code: int, dims: list[list[int]], lost: list[list[int]]) -> Bundle:
        digits = tuple(sorted(q for some in lost for q in some))
        cut = [some for some in lost if some]
        plain = len(cut) == 1 and cut[0] == sorted(cut[0])
        codes = np.array([code - self._value(dims, digits)], dtype=np.int64)
        return Bundle(StepKind.ALL_GATHER, digits, codes, np.array([plain]))

    def _value(self, dims: list[list[int]], digits: Sequence[int]) -> int:
        """What digits that shard count in a code."""
        count, found = len(self._powers), 0
        for i, dim in enumerate(dims):
            for position, digit in enumerate(dim):
                if digit in digits:
                    found += (1 + i * count + position) * self._powers[digit]
        return found

    def _fewer(
        self, kind: StepKind, code: int, dims: list[list[int]], digits: tuple[int, ...]
    ) -> Bundle:
        less = code - self._held(dims, digits)
        return Bundle(kind, digits, np.array([less], dtype=np.int64), np.array([True]))

    def _held(self, dims: list[list[int]], digits: Sequence[int]) -> int:
        """What partial digits count in a code."""
        last = 1 + len(dims) * len(self._powers)
        return last * sum(self._powers[q] for q in digits)


# Ways to put digits at the ends of dimensions' lists, as arrays.


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """Ordered distributions of some digits over the ends of some lists: a row for each.

    Digit i of row r joins list ``taker[r, i]`` at ``offset[r, i]`` places after its end.
    ``plain[r]``: all join one list, in ascending order.
    """

    taker: IntArray
    offset: IntArray
    plain: BoolArray


@lru_cache(maxsize=1024)
def template(letters: tuple[int, ...], takers: int) -> Template:
    """The distributions of digits over so many lists; digits of one letter keep their order."""
    count = len(letters)
    rank = np.array(list(permutations(range(count))), dtype=np.int64).reshape(-1, count)
    for letter in set(letters):
        alike = [i for i in range(count) if letters[i] == letter]
        for one, other in pairwise(alike):
            rank = rank[rank[:, one] < rank[:, other]]
    cuts = _compositions(count, takers)
    taker = np.concatenate([np.repeat(np.arange(takers), cut)[rank] for cut in cuts])
    offset = np.concatenate([_counted(cut)[rank] for cut in cuts])
    ascending = (np.diff(offset, axis=1) == 1).all(axis=1)
    one_list = (taker == taker[:, :1]).all(axis=1)
    return Template(taker, offset, ascending & one_list)


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    """Every way to cut a row of so many into parts, one after the other."""
    if parts == 1:
        return [(total,)]
    return [
        (first, *rest)
        for first in range(total + 1)
        for rest in _compositions(total - first, parts - 1)
    ]


def _counted(cut: Sequence[int]) -> IntArray:
    return np.concatenate([np.arange(count) for count in cut])


# Where permutes lead from a state, and what they cost.
# Slots are the places in the lists of dimensions.  Where the digits of each slot have one size
# before and after, a permute is a set of pairs: the digit a that a slot has before, and b after.
# With aligned digits its price follows from the pairs alone.  Call a digit outer at a level if it
# decides the entity there; an entity fixes its outer digits.  If in some pair both are outer, and
# differ, then some entity holds no block that its devices take.  Else the blocks held and taken
# agree in all slots with an outer digit, before or after; counting holders and takers, one part
# stays inside in max(product of the sizes of pairs with a outer alone, of those with b outer
# alone).  One pair of states of each outcome is priced.  Where it matters which devices send, or
# where messages meet, that is the least price: on switches whose ports share evenly, all other
# links being free, with no more latency at any level than outside it.


FREE_RATE = 1e6
"""How much faster links are that do not count."""


class Sends:
    """The permutes of a table's states."""

    def __init__(self, table: StateTable, prices: StepPrices, symmetry: Symmetry) -> None:
        self._table, self._prices = table, prices
        self._by_key: dict[tuple[int, int], float] = {}
        self._plain = symmetry.plain
        self._keyed = prices if self._plain else StepPrices(roomy(prices.topology), table.frame)
        self._least_per_byte = least_seconds_per_byte(prices.topology)
        self._speaking: dict[int, IntArray] = {}
        self._exact: dict[tuple[int, int], float] = {}
        self._slots = _slots(table)
        self._members, self._group = _groups(table)
        self.speaker_of = symmetry.representatives(table)
        self._digits = np.arange(len(table.frame.digits) + 1)
        self._letters = np.array([*symmetry.letters, -1])
        self._sizes = np.array([*table.frame.sizes, 0])  # the last is of empty slots
        self._outer: list[BoolArray] | None = None
        if symmetry.levels is not None:
            levels = np.array(symmetry.levels)
            marks = sorted(set(symmetry.levels))[:-1]
            if (table.frame.devices + 1) ** len(marks) < 2**62:
                self._outer = [levels <= mark for mark in marks]

    def targets(self, number: int) -> IntArray:
        """The states that a permute from a state leads to."""
        group = int(self._group[number])
        if group < 0:
            return np.zeros(0, dtype=np.int64)
        members = self._members[group]
        return np.asarray(members[members != number], dtype=np.int64)

    def speakers(self, number: int) -> IntArray:
        """Those of the targets that speak for their letters."""
        group = int(self._group[number])
        if group < 0:  # uneven states are no group
            return self.targets(number)
        found = self._speaking.get(group)
        if found is None:
            members = self.targets(number)
            found = np.append(members[self.speaker_of[members] == members], number)
            self._speaking[group] = found
        return np.asarray(found[found != number], dtype=np.int64)

    def lettered(self, number: int, targets: IntArray) -> FloatArray:
        """The least price to a state of each target's letters; NaN where none is known."""
        found = np.full(len(targets), np.nan)
        if self._outer is None or not len(targets):
            return found
        same = self._table.order[targets] == self._table.order[number]
        keys = np.where(same, self._keys(number, targets, self._letters), -1)
        for key in np.unique(keys[keys >= 0]).tolist():
            here = keys == key
            known = self._by_key.get((int(self._group[number]), key))
            if known is None:
                first = self._nearest(number, int(targets[np.argmax(here)]))
                known = self._priced(number, first, key)
            found[here] = known
        return found

    def _nearest(self, number: int, target: int) -> int:
        """The state of a target's letters in which slots of the same letter keep their digits."""
        old, new = self._slots[number], self._slots[target]
        kept = (old >= 0) & (new >= 0) & (self._letters[old] == self._letters[new])
        places = self._table.places[target].copy()
        for letter in range(int(self._letters.max()) + 1):
            alike = [q for q, own in enumerate(self._letters[:-1].tolist()) if own == letter]
            staying = dict(zip(old[kept].tolist(), np.flatnonzero(kept).tolist(), strict=True))
            rest = [
                p for p in places[alike].tolist() if not (p and p - 1 < len(kept) and kept[p - 1])
            ]
            for q in alike:
                places[q] = staying[q] + 1 if q in staying else rest.pop(0)
        return int(self._table.at(places, self._table.order[[target]])[0])

    def seconds(self, number: int, targets: IntArray) -> FloatArray:
        """The price of each; NaN where it is known of the pair only (:meth:`exact`)."""
        if not self._plain:
            return np.full(len(targets), np.nan)
        return self._by_keys(number, targets)

    def _by_keys(self, number: int, targets: IntArray) -> FloatArray:
        found = np.full(len(targets), np.nan)
        if self._outer is None or not len(targets):
            return found
        same = self._table.order[targets] == self._table.order[number]
        keys = np.where(same, self._keys(number, targets, self._digits), -1)
        for key in np.unique(keys[keys >= 0]).tolist():
            here = keys == key
            found[here] = self._priced(number, int(targets[np.argmax(here)]), key)
        return found

    def least(self, number: int, targets: IntArray) -> FloatArray:
        """What each takes at least: in one order of devices a message over the best link."""
        seconds = float(self._table.size[number]) * self._least_per_byte
        same = self._table.order[targets] == self._table.order[number]
        message = np.where(same, seconds, 0.0)
        return message if self._plain else np.fmax(message, self._by_keys(number, targets))

    def exact(self, number: int, target: int) -> float:
        """The price of one permute: no less than its bounds, which prices of any senders may be."""
        key = (number, target)
        found = self._exact.get(key)
        if found is None:
            before, after = self._table.state(number), self._table.state(target)
            least_s = float(self.least(number, np.array([target]))[0])
            found = max(least_s, self._prices.permute(before, after).seconds)
            self._exact[key] = found
        return found

    def _keys(self, number: int, targets: IntArray, letters: IntArray) -> IntArray:
        """What each level lets stay inside, as one number for each target; -1 without pairs.

        Digits of one letter count as one.
        """
        assert self._outer is not None
        columns = np.flatnonzero((self._slots[number] >= 0) | (self._slots[targets[0]] >= 0))
        old, new = self._slots[number][columns], self._slots[targets][:, columns]
        size, other = self._sizes[old], letters[new] != letters[old]
        paired = (self._sizes[new] == size).all(axis=1)
        keys = np.zeros(len(targets), dtype=np.int64)
        base = self._table.frame.devices + 1
        for outer in self._outer:
            before, after = outer[old], outer[new]
            leaves = (before & after & other).any(axis=1)
            out = np.where(before & ~after, size, 1).prod(axis=1)
            into = np.where(after & ~before, size, 1).prod(axis=1)
            keys = keys * base + np.where(leaves, 0, np.maximum(out, into))
        return np.where(paired, keys, -1)

    def _priced(self, number: int, target: int, key: int) -> float:
        where = (int(self._group[number]), key)
        found = self._by_key.get(where)
        if found is None:
            before, after = self._table.state(number), self._table.state(target)
            found = self._by_key[where] = self._keyed.permute(before, after).seconds
        return found


def roomy(topology: Topology) -> Topology:
    """Links on which no permute takes longer: ports share evenly, links between siblings are free.

    Rates are the best that a library reaches; what it takes for latency is left out.  A level's
    latency is no more than that of any outside it: messages may meet there instead.
    """
    links = bare_links(topology, least=0.0 if topology.library else 1.0)
    found = replace(links, hosts=None, levels=tuple(map(_roomy, links.levels)))
    if topology.library:
        return replace(found, levels=tuple(_capped(level, 0.0) for level in found.levels))
    if not quick_levels(links):
        return found
    crossed = (level.link.latency_s if level.size > 1 else math.inf for level in links.levels)
    least_s = itertools.accumulate(crossed, min)
    return replace(found, levels=tuple(map(_capped, found.levels, least_s)))


def _capped(level: Level, most_s: float) -> Level:
    """A level whose latencies are at most so much."""
    pieces = (replace(p, latency_s=min(p.latency_s, most_s)) for p in level.link.pieces)
    return replace(level, link=replace(level.link, pieces=tuple(pieces)))


def _roomy(level: Level) -> Level:
    if level.link.kind is not LinkKind.SWITCH:
        return _scaled(
            replace(level, link=replace(level.link, kind=LinkKind.SWITCH, torus=())), FREE_RATE, 0
        )
    return _scaled(level, level.link.ports, 1.0)


def _scaled(level: Level, rate: float, latency: float) -> Level:
    """A level whose link has one port, and pieces with so many times the rate and the latency."""
    pieces = tuple(
        replace(
            piece,
            bandwidth_bytes_per_s=piece.bandwidth_bytes_per_s * rate,
            latency_s=piece.latency_s * latency,
        )
        for piece in level.link.pieces
    )
    link = replace(level.link, pieces=pieces, ports=1, device_bandwidth_bytes_per_s=None)
    return replace(level, link=link)


def least_seconds_per_byte(topology: Topology) -> float:
    """Wire seconds per byte of one message to another device, at the best rate of the links."""
    links, found = bare_links(topology, least=0.0 if topology.library else 1.0), math.inf
    if topology.hosts is not None:
        return 0.0
    for j, size in enumerate(topology.sizes):
        if size > 1:
            one = np.array([0]), np.array([topology.devices_under(j)])
            model = step_model(links, explicit_send(links, *one), RequestKind.SEND)
            found = min(found, *(way.seconds_per_byte for way in model.ways))
    return found if found < math.inf else 0.0


def _slots(table: StateTable) -> npt.NDArray[np.int8]:
    """The digit in each slot of each state, -1 where there is none."""
    digits, dims = len(table.frame.digits), len(table.frame.shape)
    found = np.full((len(table), dims * digits), -1, dtype=np.int8)
    for digit in range(digits):
        place = table.places[:, digit]
        rows = np.flatnonzero((place > 0) & (place <= dims * digits))
        found[rows, place[rows] - 1] = digit
    return found


def _groups(table: StateTable) -> tuple[list[IntArray], IntArray]:
    """States of one local shape and one set of partial digits; and the group of each state."""
    partial = 1 + len(table.frame.shape) * len(table.frame.digits)
    mask = (table.places == partial) @ (1 << np.arange(len(table.frame.digits)))
    key = mask
    for dim in range(len(table.frame.shape)):
        values, inverse = np.unique(table.ways[:, dim], return_inverse=True)
        key = key * len(values) + inverse
    _, group = np.unique(key, return_inverse=True)
    if table.frame.nested:
        uneven = (np.array(table.frame.shape) % table.ways != 0).any(axis=1)
        members = [np.flatnonzero((group == g) & ~uneven) for g in range(group.max(initial=-1) + 1)]
        return members, np.where(uneven, -1, group)
    order = np.argsort(group, kind="stable")
    cuts = np.searchsorted(group[order], np.arange(1, group.max(initial=-1) + 1))
    return np.split(order, cuts), np.asarray(group, dtype=np.int64)
