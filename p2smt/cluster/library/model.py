"""A communication library as a value: its algorithms, protocols, costs and rule of choice.

A topology names hardware, a library what runs on it.  Choosing and pricing are two things: the
library's own rule (``formula``, ``ladders``) says which algorithm and protocol run; ``calls``,
``hops`` and ``protocols`` are what the cost model prices that with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

from p2smt.cluster.link import NETWORK, Algorithm
from p2smt.collectives.names import Collective, Operation
from p2smt.errors import InputError, did_you_mean
from p2smt.files.shapes import FileKey, FileTable, Limits, ReadBy
from p2smt.units import (
    exact_bandwidth,
    exact_bytes,
    exact_time,
    parse_bandwidth,
    parse_bytes,
    parse_time,
    part_of_rate,
)

NO_LIBRARY = "none"
"""How files and options say that there is no library."""
LIBRARY_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
FILE_PATTERN = r"/|\.(yaml|yml|json)$"
"""What of a text that names a library says that it is a file's."""
INSIDE, ACROSS = "inside", "network"
"""Names of the hops that hold for fabrics without hops of their own."""
ONE_SWITCH = 8
"""Members of a node up to which a step through its switches costs the same: those of one board."""
POINT_TO_POINT = "p2p"
"""How libraries name messages from peer to peer, which are no algorithm, and their hops."""
FAMILIES = ("ring", "tree", "nvls", "pat", POINT_TO_POINT)
"""What the hops of an algorithm are listed under."""
_FAMILY = {
    Algorithm.TREE: "tree",
    Algorithm.NVLS: "nvls",
    Algorithm.NVLS_TREE: "nvls",
    Algorithm.PAT: "pat",
    Algorithm.RING: "ring",
}


@dataclass(frozen=True, slots=True)
class AddedAlgorithm:
    """An algorithm by the name under which a program registered it.

    It stands beside an :class:`~p2smt.cluster.link.Algorithm`, which this package prices itself,
    wherever a library says what it runs.  It holds no more than the name, and so can be sent to
    another process; that one must have registered the algorithm as well, or its use is an error
    there.
    """

    value: str


LibraryAlgorithm = Algorithm | AddedAlgorithm


def hop_families(family: str) -> tuple[str, ...]:
    """Whose hops a family has: its own, else those of messages from peer to peer, or a ring's."""
    return (family, POINT_TO_POINT, "ring")


class NodeCount(Enum):
    """How many nodes a group spans."""

    ONE = "one"
    SEVERAL = "several"
    ANY = "any"

    def holds(self, nodes: int) -> bool:
        """Whether it is so for a group that spans so many."""
        return self is NodeCount.ANY or (self is NodeCount.ONE) == (nodes == 1)


# What fields are in files: times, rates and sizes have units, pairs are mappings.


def _value_of(parse: Callable[[object, str], Any]) -> Callable[[Any], Any]:
    return lambda text: parse(text, "value")


_TIME = _value_of(parse_time)
_RATE = _value_of(parse_bandwidth)


def _bytes(text: object) -> float:
    return float(parse_bytes(text, "value"))


def _bytes_text(size: float) -> str:
    return exact_bytes(int(size))


def _at_least_one(count: object) -> float:
    if type(count) is not int or count < 1:
        raise InputError(f"value {str(count)[:40]!r}", "must be a whole number from 1")
    return float(count)


Part = Annotated[float, ReadBy(part_of_rate)]
Seconds = Annotated[float, ReadBy(_TIME, write=exact_time)]
Rate = Annotated[float, ReadBy(_RATE, write=exact_bandwidth)]
Rates = Annotated[tuple[Rate, ...], Limits(min_length=3, max_length=3)]
"""For groups on one node, on two, and on more."""
BytesOrNone = Annotated[float, ReadBy(_bytes, 0.0, _bytes_text)]
RunAlgorithm = Annotated[
    LibraryAlgorithm | None,
    ReadBy(
        lambda name: named_algorithm(name), write=lambda one: one.value if one else POINT_TO_POINT
    ),
]
"""An algorithm by its name; None: messages from peer to peer."""
SecondsOf = Annotated[tuple[tuple[str, Seconds], ...], FileTable()]
RateOf = Annotated[tuple[tuple[str, Rate], ...], FileTable()]
CapsOf = Annotated[tuple[tuple[str, Rates], ...], FileTable()]
PartOf = Annotated[tuple[tuple[str, Part], ...], FileTable()]
NameList = tuple[str, ...]
CpuName = Literal["intel", "amd", "arm"]
SOME = Limits(min_length=1)


@dataclass(frozen=True, slots=True)
class ProtocolRate:
    """What a protocol makes of a link: a part of its bandwidth, at most so much per device.

    ``caps`` holds bytes per second by fabric; ``two_children`` is the part of that of a network
    which trees reach whose nodes have two children that send into one card which devices share.
    """

    efficiency: Part = 1.0
    caps: RateOf = ()
    two_children: Part = 1.0


@dataclass(frozen=True, slots=True)
class LibraryRun:
    """One algorithm (None: messages from peer to peer) for an operation, and when it can run.

    ``in_switch``: only where a node's switch reduces; ``one_rank_per_node``: only then;
    ``least_in_node``, ``most_in_node``: only with at least and at most so many members in one node
    (0: any number).
    """

    algorithm: RunAlgorithm
    protocols: Annotated[NameList, SOME]
    nodes: NodeCount = NodeCount.ANY
    least_members: int = 2
    one_rank_per_node: bool = False
    in_switch: bool = False
    most_in_node: Annotated[int, Limits(ge=0)] = 0
    least_in_node: Annotated[int, Limits(ge=0)] = 0

    def fits_node(self, local: int) -> bool:
        """Whether it can run with so many members in a node."""
        return self.least_in_node <= local <= (self.most_in_node or local)


@dataclass(frozen=True, slots=True)
class SizeThreshold:
    """Up to so many bytes (infinite: any more) this algorithm with this protocol."""

    up_to_bytes: Annotated[float, FileKey("up_to"), ReadBy(_bytes, math.inf, _bytes_text)]
    algorithm: RunAlgorithm
    protocol: str


@dataclass(frozen=True, slots=True)
class SizeThresholds:
    """A choice by size for one operation, where it applies; it goes before the formula.

    ``members`` 0: any number of them; ``up_to_members``: at most so many (0: any number), so that
    ladders in order are ranges; ``power_of_two``: only of such a number.  ``fabrics`` empty:
    whatever is inside a node.  With ``per_peer`` a rung's size is that of the part that goes to one
    peer.
    """

    operation: str
    rungs: Annotated[tuple[SizeThreshold, ...], SOME]
    nodes: NodeCount = NodeCount.ANY
    members: int = 0
    fabrics: NameList = ()
    per_peer: bool = False
    up_to_members: Annotated[int, Limits(ge=0)] = 0
    power_of_two: bool = False

    def holds(self, members: int) -> bool:
        """Whether it is for groups of so many."""
        power = members & (members - 1) == 0
        most = self.up_to_members or members
        return self.members in (0, members) and members <= most and power >= self.power_of_two


@dataclass(frozen=True, slots=True)
class Library:
    """A communication library.

    ``joins_nodes``: rings and trees take ranks node by node, nodes by first appearance; otherwise
    in the order of the communicator.  ``calls`` is the cost of a call in seconds by operation,
    ``calls_across`` what a call of any operation costs more whose groups span several nodes, by the
    fabric that joins them, or ``network``; ``calls_on`` what it costs more on devices that a fabric
    joins inside a node (a generation of them).  ``hops`` are seconds per step by (fabric, family,
    protocol); a fabric without any has those of ``inside`` or ``network``.  ``in_flight`` is the
    number of chunks that a pipeline has under way at most (infinite: any number), ``ring_pace`` how
    many times as much a ring's step inside a node costs where the ring spans nodes,
    ``peers_at_once`` to how many peers a member sends at once in an exchange (0: to all).
    ``exchange_rate`` is the most that a member of an exchange sends over a network, in bytes per
    second, ``handover_rate`` the most that a node hands over to others after its switches reduced,
    and ``switch_member`` what each member beyond ``ONE_SWITCH`` in a node adds to a step through
    its switches, in seconds.  ``runs``
    lists by operation what can run, the first being the one that runs where nothing else is said:
    by a ladder, or by the formula's least time.  ``sent_as`` names the collectives that the library
    carries out by another one, whose messages are sent.

    Its hash is that of its name, for it is a part of many keys.
    """

    name: str
    vendor: Annotated[str, SOME]
    description: str
    sources: Annotated[NameList, SOME]
    joins_nodes: bool
    calls: SecondsOf
    protocols: Annotated[tuple[tuple[str, ProtocolRate], ...], FileTable(), SOME]
    runs: Annotated[tuple[tuple[str, Annotated[tuple[LibraryRun, ...], SOME]], ...], FileTable()]
    hops: Annotated[tuple[tuple[tuple[str, str, str], Seconds], ...], FileTable()] = ()
    calls_across: SecondsOf = ()
    calls_on: SecondsOf = ()
    ladders: tuple[SizeThresholds, ...] = ()
    formula: Formula | None = None
    sent_as: Annotated[tuple[tuple[Collective, Collective], ...], FileTable()] = ()
    in_flight: Annotated[float, ReadBy(_at_least_one, write=int)] = math.inf
    ring_pace: Part = 1.0
    peers_at_once: Annotated[int, Limits(ge=0)] = 0
    exchange_rate: Rate = math.inf
    handover_rate: Rate = math.inf
    switch_member: Seconds = 0.0

    @staticmethod
    def only_named(name: str) -> Library:
        """One of which no more is known than its name: it runs nothing."""
        return Library(name, "", "", (), joins_nodes=False, calls=(), protocols=(), runs=())

    def __hash__(self) -> int:
        return hash(self.name)

    def call_s(self, operation: str) -> float:
        """Seconds that one call costs inside a node, apart from its hops and its bytes."""
        return dict(self.calls).get(operation, 0.0)

    def on_s(self, fabric: str) -> float:
        """Seconds that one call costs more on devices that a fabric joins."""
        return dict(self.calls_on).get(fabric, 0.0)

    def across_s(self, fabric: str) -> float:
        """Seconds that one call costs more whose groups span nodes that a fabric joins."""
        across = dict(self.calls_across)
        return across.get(fabric, across.get(ACROSS, 0.0))

    def sent_for(self, operation: Operation) -> Operation:
        """The operation whose messages are sent for this one."""
        found = dict(self.sent_as)
        return found.get(operation, operation) if isinstance(operation, Collective) else operation

    def protocol(self, name: str) -> ProtocolRate:
        """The protocol of that name; one that the library does not know takes nothing away."""
        return dict(self.protocols).get(name, ProtocolRate())

    def hop_s(self, fabric: str, family: str, protocol: str, *, across: bool) -> float:
        """Seconds of one step over a link; ``across``: it joins nodes (where no fabric says).

        A family without hops of its own has those of messages from peer to peer, then a ring's.
        """
        hops = dict(self.hops)
        general = ACROSS if across or fabric in NETWORK else INSIDE
        for place in (fabric, general):
            for kind in hop_families(family):
                if (place, kind, protocol) in hops:
                    return hops[place, kind, protocol]
        return 0.0

    def runs_of(self, operation: str) -> tuple[LibraryRun, ...]:
        """What can run an operation."""
        return dict(self.runs).get(operation, ())

    @property
    def fixed(self) -> bool:
        """Whether there is one algorithm for each operation: nothing to choose."""
        return bool(self.runs) and all(len(runs) == 1 for _, runs in self.runs)

    def run_by(self, algorithm: Algorithm) -> tuple[str, ...]:
        """The operations that an algorithm alone runs, by their own messages."""
        other = {collective.value for collective, _ in self.sent_as}
        return tuple(
            name
            for name, runs in self.runs
            if name not in other and {run.algorithm for run in runs} == {algorithm}
        )

    @property
    def algorithms(self) -> tuple[Algorithm, ...]:
        """Every algorithm of this package that runs something, in the order of the enum."""
        found = {run.algorithm for _, runs in self.runs for run in runs}
        return tuple(algorithm for algorithm in Algorithm if algorithm in found)


# What a program adds.


@dataclass(frozen=True, slots=True)
class Added:
    """Libraries, and rules and families of algorithms, by name."""

    libraries: dict[str, Library]
    algorithms: dict[str, tuple[Callable[..., Any], str]]


ADDED = Added({}, {})
"""What this process knows beside the package's own.  It outlives every value, as files, options and
journals name what the program has registered before it reads them."""


def register_algorithm(name: str, rule: Callable[..., Any], family: str) -> AddedAlgorithm:
    """Make an algorithm known by a name; see :func:`p2smt.cost.library.ways.register_algorithm`,
    which says what a rule is."""
    if not re.fullmatch(LIBRARY_PATTERN, name):
        rule_text = "must be lower-case letters, digits, . _ -"
        raise InputError(f"algorithm {name[:60]!r}", rule_text, "rename it")
    if family not in FAMILIES:
        raise InputError(f"family {family[:60]!r}", f"must be one of {', '.join(FAMILIES)}")
    own = name == POINT_TO_POINT or name in {algorithm.value for algorithm in Algorithm}
    if own or ADDED.algorithms.get(name, (rule, family)) != (rule, family):
        raise InputError(f"algorithm {name}", "another algorithm has this name", "rename yours")
    ADDED.algorithms[name] = (rule, family)
    return AddedAlgorithm(name)


def added_algorithms() -> tuple[AddedAlgorithm, ...]:
    """Every algorithm that was registered, by name."""
    return tuple(AddedAlgorithm(name) for name in sorted(ADDED.algorithms))


def named_algorithm(name: object) -> LibraryAlgorithm | None:
    """The algorithm that a library lists under a name; None for messages from peer to peer.

    Raises:
        InputError: there is none, nor was one registered.
    """
    every: tuple[LibraryAlgorithm, ...] = (*Algorithm, *added_algorithms())
    known = {algorithm.value: algorithm for algorithm in every}
    if name == POINT_TO_POINT:
        return None
    if name not in known:
        rule = f"must be one of {', '.join(known)}, {POINT_TO_POINT}"
        raise InputError(f"value {str(name)[:40]!r}", rule, did_you_mean(str(name), known))
    return known[str(name)]


def added(algorithm: AddedAlgorithm) -> tuple[Callable[..., Any], str]:
    """The rule of an added algorithm, and whose hops its steps cost.

    Raises:
        InputError: this process has registered no such algorithm.
    """
    if algorithm.value not in ADDED.algorithms:
        remedy = "call register_algorithm in this process before it is used"
        raise InputError(f"algorithm {algorithm.value[:60]}", "is not registered", remedy)
    return ADDED.algorithms[algorithm.value]


def family_of(algorithm: LibraryAlgorithm | None) -> str:
    """The family that lists an algorithm's hops; None: point to point."""
    if isinstance(algorithm, AddedAlgorithm):
        return added(algorithm)[1]
    return POINT_TO_POINT if algorithm is None else _FAMILY.get(algorithm, POINT_TO_POINT)


# A rule of choice made of estimated times, as NCCL and RCCL have it; the numbers are data.
# The library estimates for each algorithm and protocol
#
#     time = latency x plateau + bytes / (bandwidth x correction)
#
# and runs the least; the first of equal ones.  Source: NVIDIA/nccl and ROCm/rccl,
# src/graph/tuning.cc, ``ncclTopoTuneModel`` and ``ncclTopoGetAlgoTime``.


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the library takes a fabric for.

    ``row`` names its row of ``hops``; ``generation`` that of the devices it joins; ``known`` is
    the part of its nominal bandwidth that the library counts with, and ``latency_s`` what its
    driver adds to a hop.  ``one_order``: all channels pass the devices in one order, so that a
    chain's first hop hides the others.  ``direct``: devices send to their cards by themselves,
    without the hosts' memory.
    """

    row: str
    generation: str = ""
    known: Part = 1.0
    latency_s: Annotated[float, FileKey("latency"), ReadBy(_TIME, 0.0, exact_time)] = 0.0
    one_order: bool = True
    direct: bool = True


@dataclass(frozen=True, slots=True)
class Scaling:
    """One refinement of an algorithm's bus bandwidth: times ``factor``, then at most ``cap``.

    ``protocol`` empty: all; ``operations`` empty: all.  ``nodes``: ``one``, ``several``, ``two``
    (at most two), ``many`` (more than two) or ``any``.  ``alone``: with one rank per node (True),
    with more (False).  ``plain``: only of trees that enter and leave a node by one device.  ``cap``
    names a table of :attr:`Formula.caps`, per channel if ``per_channel``.
    """

    algorithm: Algorithm
    protocol: str = ""
    operations: NameList = ()
    nodes: Literal["any", "one", "several", "two", "many"] = "any"
    alone: bool | None = None
    plain: bool = False
    factor: Part = 1.0
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

    ``generations`` empty: all.  ``several``: on more than one node only.  ``unless_cpus``: not
    where the hosts have these.
    """

    algorithm: Algorithm
    protocol: str
    factors: Annotated[tuple[Part, ...], SOME]
    generations: NameList = ()
    several: bool = False
    unless_cpus: tuple[CpuName, ...] = ()


@dataclass(frozen=True, slots=True)
class Plateau:
    """A ring's all-reduce with the simple protocol across nodes costs more latency from a size on.

    The size is ``bytes_per_rank`` times the ranks plus ``bytes_per_channel_and_rank`` times ranks
    and channels; ``factors`` of the latency are by generation.
    """

    factors: PartOf
    bytes_per_rank: BytesOrNone = 0.0
    bytes_per_channel_and_rank: BytesOrNone = 0.0


@dataclass(frozen=True, slots=True)
class Nvls:
    """How the reduction by NVSwitch is estimated.

    ``of_bus``: as a part ``efficiency`` of what the devices' links carry (NCCL from 2.28 on, where
    an all-reduce counts twice and the first channel is not counted); otherwise the algorithm's
    bandwidth is ``ratio`` of the channels' (NCCL 2.19 to 2.27).
    """

    of_bus: bool
    efficiency: PartOf = ()
    ratio: Part = 1.0


@dataclass(frozen=True, slots=True)
class Search:
    """Bandwidths per channel that the library tries, in bytes per second, largest first.

    By generation; none: one channel takes all.  ``twice_from``: a channel of at least so much is
    split in two; ``not_twice``: generations where only from twice that on, or for few channels.
    More generations: ``plain_tree``, where a tree may enter and leave a node by one device though
    there are more; ``relayed_ll128``, where LL128 runs though a device reaches a card by the help
    of another; ``paired``, where a switch or processor (which may be named, too) joins two devices
    with their cards; ``turned``, where what comes in by a card costs an eighth of itself on the way
    out; and ``served_twice``, where across nodes twice as many channels serve wide rings.
    """

    inside: Annotated[tuple[tuple[str, tuple[Rate, ...]], ...], FileTable()] = ()
    outside: Annotated[tuple[tuple[str, tuple[Rate, ...]], ...], FileTable()] = ()
    twice_from: Annotated[float, ReadBy(_RATE, math.inf, exact_bandwidth)] = math.inf
    not_twice: NameList = ()
    plain_tree: NameList = ()
    relayed_ll128: NameList = ()
    paired: NameList = ()
    turned: NameList = ()
    served_twice: NameList = ()
    channels: Annotated[int, Limits(ge=1)] = 32


@dataclass(frozen=True, slots=True)
class Pat:
    """PAT's latency: so much for each rank, and so much of a hop for each doubling."""

    per_rank_s: Annotated[Seconds, FileKey("per_rank")]
    hop_part: Part


@dataclass(frozen=True, slots=True)
class Formula:
    """The constants of the estimate; times in seconds, rates in bytes per second.

    ``base`` and ``hops`` are by algorithm and protocol, hops also by row of ``hardware``.
    ``inside`` and ``outside`` are the fabrics assumed where a link does not say its own.
    ``caps`` are by generation or by the hosts' processors, whose row ``other`` is that of the rest.
    ``overhead_s`` is the least of a step inside a node when a ring spans several, three times that
    for the simple protocol, and ``overhead_on`` what it is with some processors; ``ll_inside``
    multiplies such a step of LL.  ``rounds_by_node``: the ring of an all-reduce passes between
    nodes 2N times, not 2(N - 1).  ``alone_as_tree``: with one rank per node hops across are those
    of a tree.  ``most_bus`` limits every bus bandwidth.
    The latency that a network's driver reports is added to a hop, twice for the simple protocol,
    which flushes; with ``driver_replaces`` it stands for the hop (NCCL before 2.18).
    """

    hardware: Annotated[tuple[tuple[str, Hardware], ...], FileTable(), SOME]
    inside: str
    outside: str
    base: Annotated[tuple[tuple[tuple[Algorithm, str], Seconds], ...], FileTable()]
    hops: Annotated[tuple[tuple[tuple[str, Algorithm, str], Seconds], ...], FileTable()]
    scalings: tuple[Scaling, ...] = ()
    caps: Annotated[tuple[tuple[str, CapsOf], ...], FileTable()] = ()
    search: Search = Search()
    corrections: tuple[Correction, ...] = ()
    plateau: Plateau | None = None
    nvls: Nvls | None = None
    overhead_s: Annotated[float, FileKey("overhead"), ReadBy(_TIME, 0.0, exact_time)] = 0.0
    overhead_on: Annotated[tuple[tuple[CpuName, Seconds], ...], FileTable()] = ()
    ll_inside: Part = 1.0
    rounds_by_node: bool = False
    alone_as_tree: bool = False
    pat: Pat | None = None
    most_bus: RateOf = ()
    driver_replaces: bool = False

    def hardware_of(self, fabric: str, *, across: bool) -> Hardware:
        """What a fabric is taken for; one that is not listed, for the usual one of its place."""
        known = dict(self.hardware)
        return known.get(fabric) or known[self.outside if across else self.inside]
