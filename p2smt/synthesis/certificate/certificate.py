"""A bound on schedules with what proves it, as a value and as a JSON file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any, assert_never

from p2smt.errors import InputError
from p2smt.synthesis.certificate import plain

KIND = "schedule-certificate"
SCHEMA_VERSION = 1
MAX_BYTES = 2**27
MAX_RANKS = 1024
MAX_EDGES = 2**20
MAX_STEPS = 2**12


class BoundKind(StrEnum):
    """What a bound rests on.

    Distance: some data has so many edges to go.  Degree: what a rank must take or give at least.
    Cut: what sets of ranks must.  Gossip: an all-reduce between k parts takes 2(k - 1) messages a
    chunk.  Flow: all ways together, step by step.
    """

    DISTANCE = "distance"
    DEGREE = "degree"
    CUT = "cut"
    GOSSIP = "gossip"
    FLOW = "flow"


class BoundedCollective(StrEnum):
    """The collectives that bounds are known for."""

    ALL_GATHER = "all-gather"
    BROADCAST = "broadcast"
    SCATTER = "scatter"
    GATHER = "gather"
    REDUCE = "reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_TO_ALL = "all-to-all"
    ALL_REDUCE = "all-reduce"

    @property
    def rooted(self) -> bool:
        """Whether one of the ranks is the root."""
        own = BoundedCollective
        return self in (own.BROADCAST, own.SCATTER, own.GATHER, own.REDUCE)


@dataclass(frozen=True, slots=True)
class CertifiedFabric:
    """Edges are (source, target, numbers of loaded capacities), capacities their bandwidths."""

    name: str
    ranks: int
    capacities: tuple[Fraction, ...]
    edges: tuple[tuple[int, int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class CertifiedMap:
    """A generator: where it takes every rank and every edge."""

    ranks: tuple[int, ...]
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CutPrice:
    """The price of a chunk's message into a set of ranks."""

    ranks: tuple[int, ...]
    price: Fraction


@dataclass(frozen=True, slots=True)
class PartitionPrice:
    """The price of a chunk's message between parts of the ranks."""

    parts: tuple[tuple[int, ...], ...]
    price: Fraction


@dataclass(frozen=True, slots=True)
class BoundPrices:
    """Prices, each for everything that the generators make of what is named; the rest cost 0.

    ``pair``: of a bound by distance, from where to where.  ``capacities``: (capacity, step,
    price).  ``shares``: what of an edge's price a pair takes of the group of pairs to which it
    belongs, (from, to, edge, step, price).  Steps are None where the bound is for any number.
    """

    pair: tuple[int, int] | None = None
    capacities: tuple[tuple[int, int | None, Fraction], ...] = ()
    shares: tuple[tuple[int, int, int, int | None, Fraction], ...] = ()
    cuts: tuple[CutPrice, ...] = ()
    partitions: tuple[PartitionPrice, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduleCertificate:
    """The claim: no schedule of ``steps`` steps (None: of any number) has less than ``bound``.

    ``bound``: rounds a chunk, R/C; of kind DISTANCE, steps.  Chunks are counted per rank
    (all-gather, reduce-scatter), per pair (all-to-all, scatter, gather), or in all.  ``root``: None
    for collectives without one.
    """

    kind: BoundKind
    collective: BoundedCollective
    root: int | None
    steps: int | None
    bound: Fraction
    fabric: CertifiedFabric
    generators: tuple[CertifiedMap, ...]
    prices: BoundPrices

    def data(self) -> dict[str, Any]:
        """The certificate as plain data."""
        own = plain.data_of(self)
        kind = own.pop("kind")
        return {"schema_version": SCHEMA_VERSION, "kind": KIND, "bound_kind": kind, **own}

    def text(self) -> str:
        """The certificate as the text of its file."""
        return json.dumps(self.data()) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file.

        Raises:
            InputError: it cannot be written.
        """
        try:
            Path(path).write_text(self.text(), encoding="utf-8")
        except OSError as error:
            rule = f"cannot be written ({error.strerror})"
            raise InputError(f"output {str(path)[:200]!r}", rule, "give another path") from None

    @staticmethod
    def load(path: str | os.PathLike[str]) -> ScheduleCertificate:
        """What the certificate in a file claims; the claim is not checked.

        Raises:
            InputError: the file cannot be read, or is no certificate.
        """
        source = f"certificate {str(path)[:200]!r}"
        return ScheduleCertificate.of_text(certificate_text(path, source), source)

    @staticmethod
    def of_text(text: str, source: str = "certificate") -> ScheduleCertificate:
        """The claim in the text of a file; ``source`` names it in messages.

        Raises:
            InputError: it is no certificate.
        """
        return ScheduleCertificate.of_data(plain.parsed(text, source), source)

    @staticmethod
    def of_data(data: Any, source: str = "certificate") -> ScheduleCertificate:
        """The claim in the data of a file.

        Raises:
            InputError: it is no certificate.
        """
        return _certificate(data, source)


def certificate_text(path: str | os.PathLike[str], source: str) -> str:
    """The text of a certificate's file, which ``source`` names in messages.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise InputError(source, f"is larger than {MAX_BYTES} bytes")
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(source, f"cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(source, "is not UTF-8 text") from None


_KEYS = (
    *("schema_version", "kind", "bound_kind", "collective", "root", "steps", "bound", "fabric"),
    *("generators", "prices"),
)


def _certificate(data: Any, source: str) -> ScheduleCertificate:
    version, kind, bound_kind, collective, root, steps, bound, fabric, generators, prices = (
        plain.keys(data, _KEYS, source)
    )
    if type(version) is not int or version != SCHEMA_VERSION:
        raise plain.refused(source, "schema_version", f"must be {SCHEMA_VERSION}")
    if kind != KIND:
        raise plain.refused(source, "kind", f"must be {KIND}")
    if bound_kind not in list(BoundKind):
        raise plain.refused(source, "bound_kind", f"must be one of {', '.join(BoundKind)}")
    if collective not in list(BoundedCollective):
        known = ", ".join(BoundedCollective)
        raise plain.refused(source, "collective", f"must be one of {known}")
    read = _fabric(fabric, source)
    named = BoundedCollective(collective)
    if named.rooted == (root is None):
        rule = "must be a rank" if named.rooted else f"must be null: {named} has none"
        raise plain.refused(source, "root", rule)
    if steps is not None and plain.whole(steps, MAX_STEPS, source, "steps") < 1:
        raise plain.refused(source, "steps", "must be at least 1, or null")
    return ScheduleCertificate(
        BoundKind(bound_kind),
        named,
        plain.open_number(root, read.ranks, source, "root"),
        steps,
        plain.fraction(bound, source, "bound"),
        read,
        plain.items(generators, lambda one: _generator(one, read, source), source, "generators"),
        _prices(prices, read, steps, source),
    )


def _fabric(data: Any, source: str) -> CertifiedFabric:
    name, ranks, capacities, edges = plain.keys(
        data, ("name", "ranks", "capacities", "edges"), source
    )
    count = plain.whole(ranks, MAX_RANKS + 1, source, "ranks")
    if count < 1:
        raise plain.refused(source, "ranks", "must be at least 1")
    rates = plain.items(
        capacities, lambda one: plain.fraction(one, source, "a capacity"), source, "capacities"
    )
    if min(rates, default=Fraction(1)) <= 0:
        raise plain.refused(source, "a capacity", "must be positive")

    def edge(one: Any) -> tuple[int, int, tuple[int, ...]]:
        a, b, loads = plain.row(one, 3, source, "an edge")
        numbers = _numbers(loads, len(rates), source, "a load")
        if a == b or not numbers or len(set(numbers)) < len(numbers):
            rule = "must join two ranks and load a capacity or more, none twice"
            raise plain.refused(source, "an edge", rule)
        start = plain.whole(a, count, source, "rank")
        return start, plain.whole(b, count, source, "rank"), numbers

    read = plain.items(edges, edge, source, "edges")
    if len(read) > MAX_EDGES:
        raise plain.refused(source, "edges", f"must be at most {MAX_EDGES}")
    return CertifiedFabric(plain.text(name, source, "name"), count, rates, read)


def _numbers(data: Any, below: int, source: str, what: str) -> tuple[int, ...]:
    return plain.items(data, lambda one: plain.whole(one, below, source, what), source, what)


def _generator(data: Any, fabric: CertifiedFabric, source: str) -> CertifiedMap:
    ranks, edges = plain.keys(data, ("ranks", "edges"), source)
    return CertifiedMap(
        _numbers(ranks, fabric.ranks, source, "rank"),
        _numbers(edges, len(fabric.edges), source, "edge"),
    )


def _prices(data: Any, fabric: CertifiedFabric, steps: int | None, source: str) -> BoundPrices:
    pair, capacities, shares, cuts, partitions = plain.keys(
        data, ("pair", "capacities", "shares", "cuts", "partitions"), source
    )
    ranks, edges = fabric.ranks, len(fabric.edges)

    def step(one: Any) -> int | None:
        if (one is None) != (steps is None):
            rule = "must be null where the number of steps is, and a number where it is one"
            raise plain.refused(source, "the step of a price", rule)
        return plain.open_number(one, steps or 1, source, "step")

    def capacity(one: Any) -> tuple[int, int | None, Fraction]:
        k, s, price = plain.row(one, 3, source, "a capacity's price")
        number = plain.whole(k, len(fabric.capacities), source, "capacity")
        return number, step(s), plain.fraction(price, source, "price")

    def share(one: Any) -> tuple[int, int, int, int | None, Fraction]:
        a, b, e, s, price = plain.row(one, 5, source, "a share")
        start, goal = (plain.whole(rank, ranks, source, "rank") for rank in (a, b))
        edge = plain.whole(e, edges, source, "edge")
        return start, goal, edge, step(s), plain.fraction(price, source, "price")

    def cut(one: Any) -> CutPrice:
        members, price = plain.keys(one, ("ranks", "price"), source)
        inside = _numbers(members, ranks, source, "rank")
        if len(set(inside)) < len(inside):
            raise plain.refused(source, "a cut", "names a rank twice")
        return CutPrice(inside, plain.fraction(price, source, "price"))

    def partition(one: Any) -> PartitionPrice:
        parts, price = plain.keys(one, ("parts", "price"), source)
        read = plain.items(parts, lambda p: _numbers(p, ranks, source, "rank"), source, "parts")
        return PartitionPrice(read, plain.fraction(price, source, "price"))

    ends = None if pair is None else _numbers(pair, ranks, source, "rank")
    if ends is not None and len(ends) != 2:
        raise plain.refused(source, "pair", "must be two ranks, or null")
    return BoundPrices(
        None if ends is None else (ends[0], ends[1]),
        plain.items(capacities, capacity, source, "capacities"),
        plain.items(shares, share, source, "shares"),
        plain.items(cuts, cut, source, "cuts"),
        plain.items(partitions, partition, source, "partitions"),
    )


# What a collective must bring where: for each of its chunks, the pairs of ranks to be joined.


ChunkPairs = frozenset[tuple[int, int]]


def demands(collective: BoundedCollective, ranks: int, root: int | None) -> list[ChunkPairs]:
    """For every kind of chunk the pairs (from, to) such that data of one must come to the other.

    Of a chunk that is copied, from the rank that holds it to those that want it; of one that is
    added up, from every rank to those that want the sum, since each contributes.
    """
    own, pairs = BoundedCollective, list(permutations(range(ranks), 2))
    match collective:
        case own.ALL_GATHER:
            return _by_end(pairs, ranks, 0)
        case own.REDUCE_SCATTER:
            return _by_end(pairs, ranks, 1)
        case own.BROADCAST:
            return [frozenset(pair for pair in pairs if pair[0] == root)]
        case own.REDUCE:
            return [frozenset(pair for pair in pairs if pair[1] == root)]
        case own.SCATTER:
            return [frozenset([pair]) for pair in pairs if pair[0] == root]
        case own.GATHER:
            return [frozenset([pair]) for pair in pairs if pair[1] == root]
        case own.ALL_TO_ALL:
            return [frozenset([pair]) for pair in pairs]
        case own.ALL_REDUCE:
            return [frozenset(pairs)]
        case _:
            assert_never(collective)


def is_demanded(
    collective: BoundedCollective, ranks: int, root: int | None, pair: tuple[int, int]
) -> bool:
    """Whether a pair is one of :func:`demands`."""
    source, target = pair
    if source == target or not (0 <= source < ranks and 0 <= target < ranks):
        return False
    own = BoundedCollective
    match collective:
        case own.BROADCAST | own.SCATTER:
            return source == root
        case own.REDUCE | own.GATHER:
            return target == root
        case _:
            return True


def _by_end(pairs: list[tuple[int, int]], ranks: int, end: int) -> list[ChunkPairs]:
    """A kind of chunk for every rank: the pairs that begin (0) or end (1) there."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    for pair in pairs:
        found[pair[end]].append(pair)
    return [frozenset(one) for one in found]
