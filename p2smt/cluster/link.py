"""Links: what joins the siblings of a level, its rates, and what runs over it.

A link is hardware.  Its ``fabric`` names the hardware as communication libraries know it: their
latencies and limits differ by fabric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from p2smt.collectives.names import Collective, RequestKind
from p2smt.errors import InputError

NETWORK = (
    *("infiniband", "roce", "efa", "efa2", "efa3", "gvnic", "tcpx", "fastrak", "ethernet", "dcn"),
)
"""Fabrics that join nodes."""
FABRICS = (
    *("nvlink1", "nvlink2", "nvlink3", "nvlink4", "nvlink5", "xgmi", "pcie", "ici", "shm"),
    *NETWORK,
)
"""Every fabric, those inside a node first; ``shm``: the shared memory of a host's processors."""
ANY = "any"
"""What a measured efficiency or latency holds for unless another entry names it."""
MAX_EFFICIENCY = 1.05
"""Of a nominal rate: rounding of published rates and times aside, nothing is faster."""


class LinkKind(Enum):
    """How the siblings of a level are joined."""

    SWITCH = "switch"
    RING = "ring"
    TORUS = "torus"
    FULL_MESH = "full-mesh"


class Algorithm(Enum):
    """How a collective is carried out inside a group (data of the cost model)."""

    RING = "ring"
    TREE = "tree"
    HALVING_DOUBLING = "halving-doubling"
    DIRECT = "direct"
    ONE_SHOT = "one-shot"
    IN_SWITCH = "in-switch"
    TORUS = "torus"
    BINOMIAL = "binomial"
    SCATTER_GATHER = "scatter-gather"
    NVLS = "nvls"
    NVLS_TREE = "nvls-tree"
    PAT = "pat"
    RECURSIVE_DOUBLING = "recursive-doubling"
    NEAREST_FIRST = "nearest-first"
    BRUCK = "bruck"
    PAIRWISE = "pairwise"
    LINEAR = "linear"
    ROOTED = "rooted"
    ROOTS_TREE = "roots-tree"
    ROOTS_RING = "roots-ring"
    ROOTS_DOUBLING = "roots-doubling"
    ROOTS_NEAREST = "roots-nearest"
    NEIGHBOUR = "neighbour"
    CHAIN = "chain"
    BINARY = "binary"
    SPLIT_BINARY = "split-binary"
    KNOMIAL = "knomial"
    SCATTER_DOUBLING = "scatter-doubling"


MPI_ALGORITHMS = (
    *(Algorithm.RECURSIVE_DOUBLING, Algorithm.NEAREST_FIRST, Algorithm.BRUCK, Algorithm.PAIRWISE),
    *(Algorithm.LINEAR, Algorithm.ROOTED, Algorithm.ROOTS_TREE, Algorithm.ROOTS_RING),
    *(Algorithm.ROOTS_DOUBLING, Algorithm.ROOTS_NEAREST, Algorithm.NEIGHBOUR, Algorithm.CHAIN),
    *(Algorithm.BINARY, Algorithm.SPLIT_BINARY, Algorithm.KNOMIAL, Algorithm.SCATTER_DOUBLING),
)
"""What MPI libraries run beside these (:mod:`p2smt.cost.library.mpi`)."""
OF_LIBRARIES = (Algorithm.NVLS, Algorithm.NVLS_TREE, Algorithm.PAT, *MPI_ALGORITHMS)
"""What is known to libraries only: without one nothing runs them."""
ANY_ALGORITHM: tuple[Algorithm, ...] = tuple(
    algorithm
    for algorithm in Algorithm
    if algorithm not in (Algorithm.BINOMIAL, Algorithm.SCATTER_GATHER, *MPI_ALGORITHMS)
)
"""What is chosen from, unless a topology says so; the others describe libraries that use them
whatever they cost."""
EFFICIENCY_NAMES = tuple(
    dict.fromkeys(
        (
            ANY,
            *(algorithm.value for algorithm in Algorithm),
            *(operation.value for operation in (*Collective, *RequestKind)),
        )
    )
)
"""What a measured efficiency can hold for: an operation goes before the algorithm that runs it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One (latency, bandwidth) pair of a link: a protocol, or a piece of a measured fit.

    ``latency_s`` is paid per message, ``bandwidth_bytes_per_s`` is per port and direction.
    """

    name: str
    latency_s: float
    bandwidth_bytes_per_s: float

    def __post_init__(self) -> None:
        if not 0 <= self.latency_s < 1e6:
            raise InputError(
                f"latency {self.latency_s} s", "must be from 0 to 1e6 s", "check its unit"
            )
        if not 1 <= self.bandwidth_bytes_per_s < 1e18:
            raise InputError(
                f"bandwidth {self.bandwidth_bytes_per_s} B/s",
                "must be at least 1 B/s and below 1e18 B/s",
                "check its unit",
            )

    def with_bandwidth_factor(self, factor: float) -> Piece:
        """The same with its bandwidth multiplied, to no less than one byte per second."""
        return replace(self, bandwidth_bytes_per_s=max(1.0, self.bandwidth_bytes_per_s * factor))


@dataclass(frozen=True, slots=True)
class Link:
    """The link that joins an entity of a level to its siblings.

    ``pieces`` holds at least one (latency, bandwidth) pair: without a library a step takes the
    protocol whose time is least, under one the largest bandwidth alone counts.  ``ports`` links of
    that bandwidth leave each entity (a node's NICs), spread evenly over the devices under it.
    ``device_bandwidth_bytes_per_s`` caps what one device sends over all links of the level; on a
    ring, torus or full mesh for sends, and for groups that span nothing outside it.  ``torus``
    holds the dimensions of a torus.
    ``in_switch_members`` is the least group size for which the switch reduces (0: it does not).
    ``measured`` holds pieces that replace the link's own for one collective, as calibration finds
    them.  ``fabric`` is one of ``FABRICS``; empty: not said.  ``efficiency`` is the measured part
    of the nominal bandwidth by what runs (``EFFICIENCY_NAMES``), ``hops`` the measured latency of a
    step in seconds by protocol; both replace what the library says.
    """

    kind: LinkKind
    pieces: tuple[Piece, ...]
    ports: int = 1
    device_bandwidth_bytes_per_s: float | None = None
    torus: tuple[int, ...] = ()
    in_switch_members: int = 0
    measured: tuple[tuple[Collective, tuple[Piece, ...]], ...] = ()
    fabric: str = ""
    efficiency: tuple[tuple[str, float], ...] = ()
    hops: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        if not self.pieces or any(not pieces for _, pieces in self.measured):
            raise InputError("a link without bandwidth", "needs at least one (latency, bandwidth)")
        if self.kind is not LinkKind.SWITCH and (self.ports != 1 or self.in_switch_members):
            raise InputError(
                f"a {self.kind.value} link with ports or in_switch_reduction",
                "only a switch link has them",
                "remove them, or make the link a switch",
            )
        if (self.kind is LinkKind.TORUS) != bool(self.torus) or any(d < 1 for d in self.torus):
            raise InputError(f"dims {list(self.torus)}", "a torus, and only a torus, has dims >= 1")
        if self.ports < 1:
            raise InputError(f"ports {self.ports}", "must be at least 1")
        draw = self.device_bandwidth_bytes_per_s
        if draw is not None and not 1 <= draw < 1e18:
            raise InputError(f"device bandwidth {draw} B/s", "must be from 1 to 1e18 B/s")
        if self.in_switch_members < 0 or self.in_switch_members == 1:
            raise InputError(
                f"in-switch reduction from {self.in_switch_members} members",
                "a reduction has at least 2 members",
                "give 2 or more, or 0 for none",
            )
        self._check_names()
        self._check_fabric()

    def _check_names(self) -> None:
        measured = [collective for collective, _ in self.measured]
        if len(set(measured)) != len(measured):
            raise InputError(
                f"measured {[c.value for c in measured]}",
                "a collective is named twice",
                "merge them",
            )
        for pieces in (self.pieces, *(pieces for _, pieces in self.measured)):
            names = [piece.name for piece in pieces]
            if len(set(names)) != len(names):
                raise InputError(f"protocols {names}", "a name is used twice", "rename one of them")

    def _check_fabric(self) -> None:
        if self.fabric and self.fabric not in FABRICS:
            rule = f"must be one of {', '.join(FABRICS)}"
            raise InputError(f"fabric {self.fabric[:40]!r}", rule)
        for name, part in self.efficiency:
            if name not in EFFICIENCY_NAMES:
                rule = f"must be one of {', '.join(EFFICIENCY_NAMES)}"
                raise InputError(f"efficiency of {name[:40]!r}", rule)
            if not 0 < part <= MAX_EFFICIENCY:
                rule = f"is a part of the bandwidth: above 0, at most {MAX_EFFICIENCY}"
                raise InputError(f"efficiency {part} of {name}", rule, "check the bandwidth")
        for name, hop in self.hops:
            if not 0 <= hop < 1e6:
                raise InputError(f"hop {hop} s of {name[:40]}", "must be from 0 to 1e6 s")
        for what, found in (("efficiency", self.efficiency), ("hops", self.hops)):
            if len(dict(found)) != len(found):
                raise InputError(what, "names one twice", "keep one of them")

    @property
    def network(self) -> bool:
        """Whether this link joins nodes, by its fabric."""
        return self.fabric in NETWORK

    def efficiency_of(self, *names: str) -> float:
        """The measured part of the bandwidth for the first of these names that has one.

        ``any`` comes last; 1 where nothing was measured.
        """
        known = dict(self.efficiency)
        return next((known[name] for name in (*names, ANY) if name in known), 1.0)

    @property
    def best_efficiency(self) -> float:
        """The largest part of the bandwidth that anything reaches."""
        return max(self.efficiency_of(), *(part for _, part in self.efficiency), 0.0)

    def hop_of(self, protocol: str, *kinds: str) -> float | None:
        """The measured latency of a step in seconds by a protocol; None: not measured.

        ``kinds``: an operation, or what a library lists an algorithm's hops under; an entry such as
        tree-ll holds for it alone and goes before that of the protocol.
        """
        known = dict(self.hops)
        names = (*(f"{kind}-{protocol}" for kind in kinds), protocol, ANY)
        return next((known[name] for name in names if name in known), None)

    def pieces_for(self, collective: Collective | None) -> tuple[Piece, ...]:
        """The pieces that time ``collective`` (None: plain transfers) on this link."""
        return dict(self.measured).get(collective, self.pieces) if collective else self.pieces

    def with_bandwidth_factor(self, factor: float) -> Link:
        """The same link with every bandwidth multiplied by ``factor``."""

        def scale(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
            return tuple(piece.with_bandwidth_factor(factor) for piece in pieces)

        draw = self.device_bandwidth_bytes_per_s
        return replace(
            self,
            pieces=scale(self.pieces),
            measured=tuple((c, scale(pieces)) for c, pieces in self.measured),
            device_bandwidth_bytes_per_s=None if draw is None else draw * factor,
        )

    @property
    def nominal_bytes_per_s(self) -> float:
        """The largest bandwidth of a port in one direction, over the link's own pieces."""
        return max(piece.bandwidth_bytes_per_s for piece in self.pieces)

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """The largest bandwidth of a port in one direction, over all pieces."""
        every = [*self.pieces, *(p for _, pieces in self.measured for p in pieces)]
        return max(piece.bandwidth_bytes_per_s for piece in every)

    @property
    def latency_s(self) -> float:
        """The smallest latency of a message, over all pieces."""
        every = [*self.pieces, *(p for _, pieces in self.measured for p in pieces)]
        return min(piece.latency_s for piece in every)


CPUS = ("intel", "amd", "arm")
"""Whose processors hosts may have: libraries choose by it."""


# What a device of a cluster can do by itself: arithmetic, memory.


DTYPES = ("bf16", "fp16", "fp8", "fp4")
"""Data types of matrix products that a peak may be given for."""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU or another accelerator.

    ``peaks``: flop/s of dense matrix products by data type, as the vendor states them.
    ``memory_bandwidth_bytes_per_s`` and ``memory_bytes`` are those of its own memory (HBM).
    """

    name: str
    peaks: tuple[tuple[str, float], ...]
    memory_bandwidth_bytes_per_s: float
    memory_bytes: int

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("a device without a name", "needs one", "such as h100")
        names = [name for name, _ in self.peaks]
        if not names or len(set(names)) != len(names) or not set(names) <= set(DTYPES):
            rule = f"name each of {', '.join(DTYPES)} at most once, and one at least"
            raise InputError(f"peaks {[name[:40] for name in names]} of {self.name[:40]}", rule)
        rates = [rate for _, rate in self.peaks] + [self.memory_bandwidth_bytes_per_s]
        if not all(1 <= rate < math.inf for rate in rates) or self.memory_bytes < 1:
            rule = "peaks, bandwidth and memory are 1 FLOP/s, 1 B/s and 1 B or more"
            raise InputError(f"device {self.name[:40]}", rule)

    @property
    def fused_attention(self) -> bool:
        """Whether FlashAttention has kernels for it: its second version wants what first computed
        in bf16, Ampere or MI200 (README of Dao-AILab/flash-attention); a V100 has fp16 alone.
        """
        return {name for name, _ in self.peaks} != {"fp16"}

    def peak_flops(self, dtype: str) -> float:
        """Flop/s of matrix products of a data type.

        Raises:
            InputError: its peak is not given.
        """
        found = dict(self.peaks).get(dtype)
        if found is None:
            given = ", ".join(name for name, _ in self.peaks)
            rule = f"gives no peak of {dtype}, but of {given}"
            raise InputError(
                f"device {self.name}", rule, f"take a device that has {dtype}, or these"
            )
        return found
