"""What the files of a cluster tell, before it is levels: hosts, what holds them, what is inside.

A reader of a format gives :class:`Facts`.  A file tells of the network outside the nodes (switches
and hosts), of a node inside, or of all levels at once; several files combine, one for each part.
``lost`` are sentences for people: what a reader left out, and what it filled in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from p2smt.cluster.device import Device
from p2smt.cluster.topology import Level
from p2smt.errors import InputError

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
    """

    holders: tuple[Holder, ...]
    loose: tuple[str, ...] = ()
    tiers: tuple[str, ...] = TIERS


@dataclass(frozen=True, slots=True)
class InsideFacts:
    """A node: ``levels[0]`` is the level of nodes, of size 1, whose link is their network cards.

    The other levels lie inside it, outermost first.  ``link_known``: whether the source tells that
    link; without, it is a stand-in that ``--uplink`` must replace.  ``library``: what the source
    says runs on such nodes, or an empty text.  ``assumed``: what joins the devices is not told, but
    taken from what they are, so any other source of it goes before.  ``device``: what a device can
    do by itself, where the source names its model.
    """

    levels: tuple[Level, ...]
    link_known: bool = True
    library: str = ""
    assumed: bool = False
    device: Device | None = None

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
