"""What the files of a cluster tell, before it is levels: hosts, what holds them, what is inside.

A reader of a format gives :class:`Facts`.  A file tells of the network outside the nodes (switches
and hosts), of a node inside, or of all levels at once; several files combine, one for each part.
``lost`` are sentences for people: what a reader left out, and what it filled in.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from p2smt.cluster.link import Device
from p2smt.cluster.topology import Level
from p2smt.errors import InputError
from p2smt.files.json_text import loads

MAX_BYTES = 128 * 1024 * 1024
"""The largest file that is read: what kubectl prints of 4,096 nodes has some 20 kB of each."""
TIERS = ("leaf", "spine", "core")
"""Levels of a tree of switches, from the nodes outwards; then tier4, tier5, .."""
BLOCK_TIERS = ("block",)
"""The level of Slurm's blocks."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A switch, or a block, rack or zone: what holds other holders, or hosts, by name.

    ``line`` says where the source names it (0: it does not have lines).
    """

    name: str
    holders: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class OutsideFacts:
    """What joins hosts, as a source tells it: not checked, so it need not be a tree.

    ``tiers`` are the names of the levels from the nodes outwards, for as many as they name; the
    others are tier4, tier5, and so on by their number.  ``loose`` are hosts that no holder has.
    ``racks`` hold the hosts that one NVLink domain joins, where the source tells them apart;
    ``racks_by`` is what it tells them by, or without any, what would.  ``rates`` are the uplinks of
    holders in bytes per second and direction, by name, where the source tells them, and
    ``node_bytes_per_s`` is what a host's network cards have together in it.
    """

    holders: tuple[Holder, ...]
    loose: tuple[str, ...] = ()
    tiers: tuple[str, ...] = TIERS
    racks: tuple[Holder, ...] = ()
    racks_by: str = ""
    rates: Mapping[str, float] = field(default_factory=dict)
    node_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class InsideFacts:
    """A node: ``levels[0]`` is the level of nodes, of size 1, whose link is their network cards.

    The other levels lie inside it, outermost first.  ``link_known``: whether the source tells that
    link; without, it is a stand-in that ``--uplink`` must replace.  ``library``: what the source
    says runs on such nodes, or an empty text.  ``assumed``: what joins the devices is not told, but
    taken from what they are, so any other source of it goes before.  ``device``: what a device can
    do by itself, where the source names its model.  ``cpu``: whose processors it has, or empty.
    """

    levels: tuple[Level, ...]
    link_known: bool = True
    library: str = ""
    assumed: bool = False
    device: Device | None = None
    cpu: str = ""

    def __post_init__(self) -> None:
        if not self.levels or self.levels[0].size != 1:
            raise InputError("the levels of a node", "begin with that of the node, of size 1")


@dataclass(frozen=True, slots=True)
class Facts:
    """What one file tells.  At least one of the three parts is there.

    ``source`` names the file in messages, ``whole`` are all levels of a cluster whose nodes have no
    names, outermost first.  ``devices``: how many each host has, where that is all that is told.
    """

    source: str
    outside: OutsideFacts | None = None
    inside: InsideFacts | None = None
    whole: tuple[Level, ...] = ()
    lost: tuple[str, ...] = ()
    devices: int | None = None

    def adding(self, *sentences: str) -> Facts:
        """The same with more sentences on what was left out or filled in."""
        return replace(self, lost=(*self.lost, *sentences))


@dataclass(frozen=True, slots=True)
class ClusterFormat:
    """A format that tells of clusters.

    name: what messages call it.
    recognises: whether a text looks like one, well formed or not; cheap, and never raises.
    read: a text and what messages call its file; InputError if it is malformed.
    """

    name: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str], Facts]


_NOWHERE = re.compile(
    r"(?:(?:no|unknown|missing|default|without|invalid)(?:[ _-]?(?:topology|switch|leaf|spine|core|"
    r"block|rack|domain|place|location|clique))|unknown|default|none|null|n/?a|nil|undefined|unset|"
    r"unassigned|missing|invalid|tb[ad]|not[ _-]?(?:available|set|found|known|applicable)|[-?]+|"
    r"0{8}(?:-0{4}){3}-0{12}(?:\.0+)?)?",
    re.IGNORECASE,
)


def is_nowhere(name: str) -> bool:
    """Whether a name of a switch, or a label, is a tool's word for a place that it does not know.

    Topograph writes ``no-topology``; identifiers of zeros alone are of a domain that never came up.
    """
    return _NOWHERE.fullmatch(name.strip().strip("<>[]()\"'")) is not None


# JSON that other tools print: lists of things, bounded, with where each stands.


MAX_ITEMS = 2**18
"""Of one list: nodes, or instances."""


MAX_PARTS = 2**23
"""Values of a text, which take some 100 bytes of memory each: kubectl prints one in 40 bytes."""


def parsed(text: str, source: str) -> Any:
    """The data of a JSON text.

    Raises:
        InputError: it is none, nested too deeply, or has too many parts.
    """
    if sum(map(text.count, ",[{")) > MAX_PARTS:
        rule = f"has more than {MAX_PARTS} parts"
        raise InputError(source, rule, "cut it down to names and labels (jq)")
    try:
        return loads(text)
    except ValueError as error:
        rule = f"is not JSON ({str(error)[:120]})"
        raise InputError(source, rule, "give the whole output") from None
    except RecursionError:
        raise InputError(source, "is nested too deeply", "give the output as it is") from None


def each_of(data: Any, source: str, key: str) -> Iterator[tuple[Any, str]]:
    """The items of a list, or of the list under a key; with what messages call each.

    Raises:
        InputError: there is none, it is empty, or it is too long.
    """
    items = data.get(key) if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise InputError(source, f"has no list of {key}", "give the whole output of the command")
    if not 1 <= len(items) <= MAX_ITEMS:
        raise InputError(
            f"{source}: {len(items)} {key}", f"must be 1 to {MAX_ITEMS}", "list those of one job"
        )
    for number, item in enumerate(items):
        yield item, f"{source}: {key}[{number}]"


# Hosts with the names of what holds them, outermost first, as holders.
# Labels and physical locations say of each host where it is.  Names need to be unique only under
# what holds them: where two racks of different rooms have one name, that of the room goes before
# it.


Path = tuple[str, ...]


def outside_of(paths: Mapping[str, Path], loose: Sequence[str] = ()) -> OutsideFacts:
    """What holds these hosts; paths are of one length, which is at least 1."""
    inside: dict[Path, dict[Path, None]] = defaultdict(dict)
    hosts: dict[Path, list[str]] = defaultdict(list)
    for host, path in paths.items():
        hosts[path].append(host)
        for depth in range(1, len(path) + 1):
            inside[path[: depth - 1]][path[:depth]] = None
    every = [path for paths_under in inside.values() for path in paths_under]
    names = _names(every)
    holders = (
        Holder(
            names[path], tuple(names[child] for child in inside.get(path, ())), tuple(hosts[path])
        )
        for path in every
    )
    return OutsideFacts(tuple(holders), tuple(loose), TIERS)


def _names(every: Sequence[Path]) -> dict[Path, str]:
    """A name of each, as short as can be: the end of its path that no other has."""
    names = {path: path[-1] for path in every}
    for depth in range(2, max(map(len, every), default=0) + 1):
        several = Counter(names.values())
        for path, name in names.items():
            if several[name] > 1:
                names[path] = "/".join(path[-depth:])
    return names
