"""Buckets: a plan in so many rounds that what a device stages at once keeps to a cap; its times.

Every bucket takes the same part of every piece, so that all of them load the ports alike, and the
sum of their busiest ports is the busiest port of all, but for whole elements.  (Tensor by tensor,
or in the order of layers, a few ports would be busy at a time and the others wait.)

A device stages, in a bucket, each part of a piece that it sends or receives, once.  The weights
themselves, before and after, are not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray
from p2smt.transfer.plan import TreePiece
from p2smt.transfer.ports import PortMap
from p2smt.units import exact_bytes

MAX_BUCKETS = 4096
CHUNK_BYTES = 4 * 2**20
"""What is sent at once of a piece, so that the next on its way can pass it on."""
_LARGEST = 2**62
"""Above it products are Python's own numbers, which have no largest one."""


@dataclass(frozen=True)
class BucketTimes:
    """So many buckets, the most that a device stages in one, and the time of their bytes."""

    count: int
    staging_bytes: int
    bandwidth_s: Fraction


def bucket_count(pieces: Sequence[TreePiece], item_bytes: int, cap_bytes: int) -> int:
    """Buckets that keep what every device stages to a cap.

    Raises:
        InputError: parts of one element each are more than the cap already.
    """
    total, many = defaultdict[int, int](int), defaultdict[int, int](int)
    for piece in pieces:
        for device in _devices(piece):
            total[device] += (piece.stop - piece.start) * item_bytes
            many[device] += item_bytes
    least = max((many[d] for d in total if total[d] > cap_bytes), default=0)
    given = f"a cap of {exact_bytes(cap_bytes)} on staging"
    if least >= cap_bytes:
        rule = f"is no more than an element of each piece of a device, {exact_bytes(least)}"
        raise InputError(given, rule, f"give {_enough(total, many)} or more")
    found = max(
        (-(-total[d] // (cap_bytes - many[d])) for d in total if total[d] > cap_bytes), default=1
    )
    if found > MAX_BUCKETS:
        rule = f"would need {found} buckets, more than {MAX_BUCKETS}"
        raise InputError(given, rule, f"give {_enough(total, many)} or more")
    return found


def _enough(total: Mapping[int, int], many: Mapping[int, int]) -> str:
    """A cap that the most buckets keep to, in whole units."""
    least = max(many[d] - -total[d] // MAX_BUCKETS for d in total)
    unit, size = next(
        (one for one in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)) if least >= one[1]),
        ("B", 1),
    )
    return f"{-(-least // size)}{unit}"


def bucket_times(
    pieces: Sequence[TreePiece], ports: PortMap, item_bytes: int, count: int
) -> BucketTimes:
    """What so many buckets stage and take, each derived by itself."""
    if not pieces:
        return BucketTimes(count, 0, Fraction(0))
    loads = _Loads.of(pieces, ports)
    sent = sum((piece.stop - piece.start) * (len(piece.edges) + 1) for piece in pieces)
    whole: type = np.int64 if sent * item_bytes * count < _LARGEST else object
    sizes: IntArray = np.array([piece.stop - piece.start for piece in pieces], dtype=whole)
    staging, seconds, kinds = 0, Fraction(0), dict[tuple[int, ...], tuple[int, Fraction]]()
    for bucket in range(count):
        part = sizes * (bucket + 1) // count - sizes * bucket // count
        key = tuple(part.tolist())
        if key not in kinds:
            kinds[key] = loads.bucket(part * item_bytes)
        staging, seconds = max(staging, kinds[key][0]), seconds + kinds[key][1]
    return BucketTimes(count, staging, seconds)


def _devices(piece: TreePiece) -> set[int]:
    return {device for edge in piece.edges for device in edge}


@dataclass(frozen=True)
class _Loads:
    """Which pieces load which ports and devices: pairs of a piece's number and theirs."""

    port_piece: IntArray
    port: IntArray
    rates: Sequence[Fraction]
    of_rate: Sequence[IntArray]
    device_piece: IntArray
    device: IntArray

    @staticmethod
    def of(pieces: Sequence[TreePiece], ports: PortMap) -> _Loads:
        numbers: dict[object, int] = {}
        known: dict[tuple[int, int], list[int]] = {}
        rates: dict[Fraction, list[int]] = defaultdict(list)
        rows: list[tuple[int, int]] = []
        for at, piece in enumerate(pieces):
            for edge in piece.edges:
                if edge not in known:
                    known[edge] = []
                    for port in ports.message(*edge):
                        if port not in numbers:
                            numbers[port] = len(numbers)
                            rates[ports.rate(port)].append(numbers[port])
                        known[edge].append(numbers[port])
                rows += ((at, port) for port in known[edge])
        port_piece, port = np.array(rows, dtype=np.int64).T
        owned = [(at, d) for at, piece in enumerate(pieces) for d in sorted(_devices(piece))]
        device_piece, device = np.array(owned, dtype=np.int64).T
        groups = [np.array(own) for own in rates.values()]
        return _Loads(port_piece, port, list(rates), groups, device_piece, device)

    def bucket(self, payload: IntArray) -> tuple[int, Fraction]:
        """What is staged at most, and the time of the busiest port."""
        staged = _totals(self.device, payload[self.device_piece])
        return int(staged.max()), max(self._times(payload))

    def _times(self, payload: IntArray) -> Iterator[Fraction]:
        load = _totals(self.port, payload[self.port_piece])
        for rate, own in zip(self.rates, self.of_rate, strict=True):
            yield Fraction(int(load[own].max())) / rate


def _totals(owner: IntArray, payload: IntArray) -> IntArray:
    """The sum of what each owner has, exactly."""
    total = np.zeros(int(owner.max()) + 1, dtype=payload.dtype)
    np.add.at(total, owner, payload)
    return total


def fill_s(ports: PortMap, pieces: Sequence[TreePiece], item_bytes: int, buckets: int = 1) -> float:
    """Seconds until the last device of the longest way gets a first chunk, in all buckets.

    Every edge of a way adds the latency of its link, and each but the first, whose time is that of
    the bytes, the time of a chunk.
    """
    ends = (end for _, _, end in _passages(ports, pieces, item_bytes, buckets))
    return max(ends, default=0.0) * buckets


def arrivals(
    ports: PortMap, pieces: Sequence[TreePiece], item_bytes: int, buckets: int = 1
) -> dict[tuple[int, int], float]:
    """Of each pair of devices the seconds in a bucket after which the first begins to send."""
    found: dict[tuple[int, int], float] = {}
    for edge, start, _ in _passages(ports, pieces, item_bytes, buckets):
        found[edge] = min(found.get(edge, start), start)
    return found


def _passages(
    ports: PortMap, pieces: Sequence[TreePiece], item_bytes: int, buckets: int
) -> Iterator[tuple[tuple[int, int], float, float]]:
    """Edges, when their first chunk is sent, and when the receiver gets its first bytes."""
    costs: dict[tuple[int, int], tuple[float, float]] = {}
    for piece in pieces:
        chunk = min(CHUNK_BYTES, -(-(piece.stop - piece.start) // buckets) * item_bytes)
        came: dict[int, float] = {}
        for edge in piece.edges:
            latency, per_byte = _known(costs, ports, edge)
            start = came[edge[0]] + chunk * per_byte if edge[0] in came else 0.0
            came[edge[1]] = start + latency
            yield edge, start, came[edge[1]]


def _edge_cost(ports: PortMap, source: int, target: int) -> tuple[float, float]:
    """Latency of a message, and seconds per byte."""
    used = ports.message(source, target)
    link = ports.topology.levels[min(port.level for port in used)].link
    fastest = max(link.pieces, key=lambda piece: piece.bandwidth_bytes_per_s)
    return fastest.latency_s, max(float(1 / ports.rate(port)) for port in used)


def _known(
    costs: dict[tuple[int, int], tuple[float, float]], ports: PortMap, edge: tuple[int, int]
) -> tuple[float, float]:
    if edge not in costs:
        costs[edge] = _edge_cost(ports, *edge)
    return costs[edge]
