"""A rule of choice made of estimated times, as NCCL and RCCL have it; the numbers are data.

The library estimates for each algorithm and protocol

    time = latency x plateau + bytes / (bandwidth x correction)

and runs the least; the first of equal ones.  Source: NVIDIA/nccl and ROCm/rccl,
src/graph/tuning.cc, ``ncclTopoTuneModel`` and ``ncclTopoGetAlgoTime``.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.cluster.link import Algorithm

Triple = tuple[float, float, float]
"""For groups on one node, on two, and on more."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the library takes a fabric for.

    ``row`` names its row of ``hops``; ``generation`` that of the devices it joins; ``known`` is
    the part of its nominal bandwidth that the library counts with, and ``latency_s`` what its
    driver adds to a hop.  ``one_order``: all channels pass the devices in one order, so that a
    chain's first hop hides the others.
    """

    row: str
    generation: str = ""
    known: float = 1.0
    latency_s: float = 0.0
    one_order: bool = True


@dataclass(frozen=True, slots=True)
class Scaling:
    """One refinement of an algorithm's bus bandwidth: times ``factor``, then at most ``cap``.

    ``protocol`` empty: all; ``operations`` empty: all.  ``nodes``: ``one``, ``several``, ``two``
    (at most two), ``many`` (more than two) or ``any``.  ``alone``: with one rank per node (True),
    with more (False).  ``cap`` names a table of :attr:`Formula.caps`, per channel if
    ``per_channel``.
    """

    algorithm: Algorithm
    protocol: str = ""
    operations: tuple[str, ...] = ()
    nodes: str = "any"
    alone: bool | None = None
    factor: float = 1.0
    cap: str = ""
    per_channel: bool = False

    def holds(self, protocol: str, operation: str, nodes: int, local: int) -> bool:
        """Whether it applies to this protocol and operation on such a group."""
        counts = {"any": True, "one": nodes == 1, "several": nodes > 1}
        counts |= {"two": nodes <= 2, "many": nodes > 2}
        return (
            self.protocol in ("", protocol)
            and (not self.operations or operation in self.operations)
            and counts[self.nodes]
            and self.alone in (None, local == 1)
        )


@dataclass(frozen=True, slots=True)
class Correction:
    """Factors of an algorithm's bandwidth by size: from 64 bytes on, doubling; 1 beyond them.

    ``generations`` empty: all.  ``several``: on more than one node only.
    """

    algorithm: Algorithm
    protocol: str
    factors: tuple[float, ...]
    generations: tuple[str, ...] = ()
    several: bool = False


@dataclass(frozen=True, slots=True)
class Plateau:
    """A ring's all-reduce with the simple protocol across nodes costs more latency from a size on.

    The size is ``bytes_per_rank`` times the ranks plus ``bytes_per_channel_and_rank`` times ranks
    and channels; ``factors`` of the latency are by generation.
    """

    factors: tuple[tuple[str, float], ...]
    bytes_per_rank: float = 0.0
    bytes_per_channel_and_rank: float = 0.0


@dataclass(frozen=True, slots=True)
class Nvls:
    """How the reduction by NVSwitch is estimated.

    ``of_bus``: as a part ``efficiency`` of what the devices' links carry (NCCL from 2.28 on, where
    an all-reduce counts twice and the first channel is not counted); otherwise the algorithm's
    bandwidth is ``ratio`` of the channels' (NCCL 2.19 to 2.27).
    """

    of_bus: bool
    efficiency: tuple[tuple[str, float], ...] = ()
    ratio: float = 1.0


@dataclass(frozen=True, slots=True)
class Search:
    """Bandwidths per channel that the library tries, in bytes per second, largest first.

    By generation; none: one channel takes all.  ``twice_from``: a channel of at least so much is
    split in two; ``not_twice``: generations where only from twice that on, or for few channels.
    """

    inside: tuple[tuple[str, tuple[float, ...]], ...] = ()
    outside: tuple[tuple[str, tuple[float, ...]], ...] = ()
    twice_from: float = float("inf")
    not_twice: tuple[str, ...] = ()
    channels: int = 32


@dataclass(frozen=True, slots=True)
class Formula:
    """The constants of the estimate; times in seconds, rates in bytes per second.

    ``base`` and ``hops`` are by algorithm and protocol, hops also by row of ``hardware``.
    ``inside`` and ``outside`` are the fabrics assumed where a link does not say its own.
    ``overhead_s`` is the least of a step inside a node when a ring spans several, three times that
    for the simple protocol; ``ll_inside`` multiplies such a step of LL.  ``rounds_by_node``: the
    ring of an all-reduce passes between nodes 2N times, not 2(N - 1).  ``alone_as_tree``: with one
    rank per node hops across are those of a tree.  PAT takes ``pat_per_rank_s`` for each rank and
    ``pat_hop_part`` of a hop for each doubling.  ``most_bus`` limits every bus bandwidth.
    The latency that a network's driver reports is added to a hop, twice for the simple protocol,
    which flushes; with ``driver_replaces`` it stands for the hop (NCCL before 2.18).
    """

    hardware: tuple[tuple[str, Hardware], ...]
    inside: str
    outside: str
    base: tuple[tuple[tuple[Algorithm, str], float], ...]
    hops: tuple[tuple[tuple[str, Algorithm, str], float], ...]
    scalings: tuple[Scaling, ...] = ()
    caps: tuple[tuple[str, tuple[tuple[str, Triple], ...]], ...] = ()
    search: Search = Search()
    corrections: tuple[Correction, ...] = ()
    plateau: Plateau | None = None
    nvls: Nvls | None = None
    overhead_s: float = 0.0
    ll_inside: float = 1.0
    rounds_by_node: bool = False
    alone_as_tree: bool = False
    pat_per_rank_s: float = 0.0
    pat_hop_part: float = 0.0
    most_bus: tuple[tuple[str, float], ...] = ()
    driver_replaces: bool = False

    def hardware_of(self, fabric: str, *, across: bool) -> Hardware:
        """What a fabric is taken for; one that is not listed, for the usual one of its place."""
        known = dict(self.hardware)
        return known.get(fabric) or known[self.outside if across else self.inside]
