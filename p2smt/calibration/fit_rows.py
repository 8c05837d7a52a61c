"""The rows of a fit: one level's share of measured times, the levels inside it being known.

A step names one piece (protocol) for all levels; a level that lacks the name uses its first
piece (:mod:`p2smt.cost.bounds`).  So a row carries, per algorithm and name known inside, the
seconds that the inner levels take, and the table of a fit pairs them with the pieces that are
sought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2smt.calibration.samples import Sample, Usage, usages
from p2smt.cluster.file_model import SIMPLE
from p2smt.cluster.topology import Link, Piece, Topology
from p2smt.collectives.names import Collective
from p2smt.cost.algorithms import Operation

Floats = NDArray[np.float64]
_SIZES = ("large", "medium", "small")


@dataclass(frozen=True, slots=True)
class Inside:
    """What the inner levels take by one name: latencies, and the least transfer time."""

    latency_s: float
    wire_s: float


@dataclass(frozen=True, slots=True)
class Ask:
    """What one algorithm asks of the level that is fitted.

    ``inside`` holds the names that the inner levels know; any other name costs ``otherwise``.
    ``passes`` > 0 marks a pipelined tree.
    """

    steps: int
    load_bytes: float
    passes: int = 0
    otherwise: Inside = Inside(0.0, 0.0)
    inside: tuple[tuple[str, Inside], ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One measured time; it runs by the fastest of ``asks``.

    ``slack`` is the relative spread of the measurement.
    """

    seconds: float
    asks: tuple[Ask, ...]
    slack: float = 0.0

    @property
    def load_bytes(self) -> float:
        """What the first algorithm puts on the worst link: tells message sizes apart."""
        return self.asks[0].load_bytes


def make_row(topology: Topology, sample: Sample) -> Row:
    """The row of a sample for the outermost level that it crosses."""
    asks = tuple(_ask(topology, found, sample.operation) for found in usages(topology, sample))
    return Row(sample.seconds, asks, sample.spread_s / sample.seconds)


def _ask(topology: Topology, asked: Usage, operation: Operation) -> Ask:
    names = dict.fromkeys(
        piece.name
        for level in topology.levels[asked.level + 1 :]
        for piece in pieces_of(level.link, operation)
    )
    return Ask(
        asked.steps[asked.level],
        asked.loads[asked.level],
        asked.passes,
        _inside(topology, asked, operation, ""),
        tuple((name, _inside(topology, asked, operation, name)) for name in names),
    )


def _inside(topology: Topology, asked: Usage, operation: Operation, name: str) -> Inside:
    latency = wire = 0.0
    for j, level in enumerate(topology.levels):
        draw = level.link.device_bandwidth_bytes_per_s
        if draw is not None:
            wire = max(wire, asked.drawn[j] / draw)
        if j > asked.level:
            piece = named_piece(pieces_of(level.link, operation), name)
            latency += asked.steps[j] * piece.latency_s
            wire = max(wire, asked.loads[j] / piece.bandwidth_bytes_per_s)
    return Inside(latency, wire)


def pieces_of(link: Link, operation: Operation | None) -> tuple[Piece, ...]:
    """The pieces that time an operation; only collectives can have pieces of their own."""
    return link.pieces_for(operation if isinstance(operation, Collective) else None)


def named_piece(pieces: Sequence[Piece], name: str) -> Piece:
    """The piece of that name, or the first."""
    return next((piece for piece in pieces if piece.name == name), pieces[0])


def piece_names(count: int, inner: Sequence[str]) -> tuple[str, ...]:
    """Names of ``count`` pieces, highest latency first, that pair with those known inside."""
    if len(inner) < 2:
        return {1: (SIMPLE,), 2: ("large", "small")}.get(count, _SIZES)
    first, last = inner[0], inner[-1]
    spare = next(name for name in (*_SIZES, "other") if name not in (first, last))
    middle = inner[len(inner) // 2] if len(inner) > 2 else spare
    return {1: (first,), 2: (first, last)}.get(count, (first, middle, last))


@dataclass(frozen=True, slots=True)
class FitTable:
    """Rows and their ways to run as arrays: ``seconds`` of shape (rows,), others (rows, ways).

    Way w of row r has latencies A = fixed_s + steps a_k and transfer W = max(load b_k, floor_s)
    with k = piece[r, w].  It takes A + W, or as a pipeline of ``passes`` what
    :mod:`p2smt.cost.bounds` says; the row takes the least of its ways.
    """

    seconds: Floats
    steps: Floats
    load_bytes: Floats
    passes: Floats
    piece: NDArray[np.int64]
    fixed_s: Floats
    floor_s: Floats

    def take(self, chosen: NDArray[Any]) -> FitTable:
        """Some of the rows."""
        return FitTable(*(getattr(self, field.name)[chosen] for field in fields(self)))


def make_table(rows: Sequence[Row], names: Sequence[str]) -> FitTable:
    """The table of a fit that seeks one piece for each of these names."""
    ways = [[way for ask in row.asks for way in _ways(ask, names)] for row in rows]
    width = max(len(found) for found in ways)
    padded = np.array([found + [found[0]] * (width - len(found)) for found in ways])
    seconds = np.array([row.seconds for row in rows])
    steps, load, passes, piece, fixed, floor = np.moveaxis(padded, 2, 0)
    return FitTable(seconds, steps, load, passes, piece.astype(np.int64), fixed, floor)


def _ways(ask: Ask, names: Sequence[str]) -> list[tuple[float, ...]]:
    """Steps, load, passes, piece, fixed_s and floor_s of each name."""
    known, index = dict(ask.inside), {name: k for k, name in enumerate(names)}
    found: list[tuple[float, ...]] = []
    for name in dict.fromkeys((*names, *known)):
        inside = known.get(name, ask.otherwise)
        own = (ask.steps, ask.load_bytes, ask.passes, index.get(name, 0))
        found.append((*own, inside.latency_s, inside.wire_s))
    return found
