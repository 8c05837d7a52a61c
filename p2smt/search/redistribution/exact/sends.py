"""Where permutes lead from a state, and what they cost.

Slots are the places in the lists of dimensions.  Where the digits of each slot have one size before
and after, a permute is a set of pairs: the digit a that a slot has before, and b after.  With
aligned digits its price follows from the pairs alone.  Call a digit outer at a level if it decides
the entity there; an entity fixes its outer digits.  If in some pair both are outer, and differ,
then some entity holds no block that its devices take.  Else the blocks held and taken agree in all
slots with an outer digit, before or after; counting holders and takers, one part stays inside in
max(product of the sizes of pairs with a outer alone, of those with b outer alone).  One pair of
states of each outcome is priced.  Where it matters which devices send, or where messages meet, that
is the least price: on switches whose ports share evenly, all other links being free, with no more
latency at any level than outside it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.alpha_beta import step_model
from p2smt.cost.bounds import bare_links
from p2smt.cost.loads.footprint_explicit import explicit_send
from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.redistribution.permutes import quick_levels
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.parallelism.placement import BoolArray, IntArray
from p2smt.search.redistribution.exact.symmetry import Symmetry
from p2smt.search.redistribution.exact.table import StateTable

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
