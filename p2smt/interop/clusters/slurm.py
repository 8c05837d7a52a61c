"""Lines of ``KEY=VALUE`` words, as Slurm's topology.conf has them and ``scontrol`` prints them.

A ``#`` begins a comment, a backslash at the end joins the next line, case does not matter in keys
(topology.conf(5), slurm.schedmd.com).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2smt.cluster.hostlist import MAX_HOSTS, parse_hostlist
from p2smt.errors import InputError, did_you_mean
from p2smt.files.yaml_text import load_yaml
from p2smt.interop.clusters.facts import (
    BLOCK_TIERS,
    TIERS,
    ClusterFormat,
    Facts,
    Holder,
    OutsideFacts,
)

MAX_CHARACTERS = 16 * 1024 * 1024
"""Of a text that Slurm writes or reads: 10,000 nodes take a tenth of a megabyte."""
_INCLUDE = re.compile(r"include\s", re.IGNORECASE)
_WORD = re.compile(r"([A-Za-z]+)=(\"[^\"]*\"|\S*)")


@dataclass(frozen=True, slots=True)
class SlurmLine:
    """Words of a line in order by lower-case key, and where it stands."""

    words: Mapping[str, str]
    where: str
    number: int

    def only(self, known: tuple[str, ...]) -> None:
        """Refuses keys that are none of these.

        Raises:
            InputError: there is one.
        """
        for key in self.words:
            if key not in known:
                rule = f"has the key {key[:40]!r}: none of {', '.join(known)}"
                raise InputError(self.where, rule, "keep what describes switches or blocks")


def lines_of(text: str, source: str) -> Iterator[SlurmLine]:
    """The lines of a text that hold something.

    Raises:
        InputError: the text is too long, or a line is not made of words KEY=VALUE, each key once.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(source, f"is longer than {MAX_CHARACTERS} characters", "shorten it")
    for number, line in _joined(text):
        bare = line.partition("#")[0].strip()
        if bare:
            where = f"{source}, line {number}"
            yield SlurmLine(_words(bare, where), where, number)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines with those that they go on with, by the number of the first."""
    start, parts = 1, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        if not parts:
            start = number
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        yield start, "".join([*parts, line])
        parts = []
    if parts:
        yield start, "".join(parts)


def _words(line: str, where: str) -> dict[str, str]:
    if _INCLUDE.match(line):
        rule = f"includes another file ({line[:60]!r}), and one file is read"
        raise InputError(where, rule, "put the lines of that file in its place")
    found: dict[str, str] = {}
    at = 0
    while at < len(line):
        word = _WORD.match(line, at)
        if word is None:
            rule = f"has {line[at : at + 40]!r} where a word KEY=VALUE must stand"
            raise InputError(where, rule, "write it like SwitchName=s0 Nodes=n[1-8]")
        key = word[1].lower()
        if key in found:
            raise InputError(where, f"has {word[1][:40]} twice", "keep one of them")
        found[key] = word[2].strip('"')
        at = word.end()
        while at < len(line) and line[at].isspace():
            at += 1
    return found


class HostNames:
    """Reads the host lists of one file, which stand for a bounded number of names together."""

    def __init__(self) -> None:
        self.count = 0

    def named(self, text: str, where: str) -> tuple[str, ...]:
        """The names that a host list stands for; none for an empty text.

        Raises:
            InputError: it is no host list, or the file names too many by now.
        """
        if not text or text == "(null)":
            return ()
        try:
            found = parse_hostlist(text)
        except InputError as error:
            raise InputError(f"{where}: {error.given}", error.rule, error.remedy) from None
        self.count += len(found)
        if self.count > MAX_HOSTS:
            rule = f"names more than {MAX_HOSTS} hosts and switches by here"
            raise InputError(where, rule, "name those of one cluster")
        return found


# Slurm's topology.conf: a tree of switches, or blocks of nodes (topology.conf(5)).
# SwitchName=spine Switches=leaf[0-1]
# SwitchName=leaf0 Nodes=n[01-05]
# SwitchName=leaf1 Nodes=n[06-12]


_CONF_SIGN = re.compile(
    r"^[ \t]*(?:(switchname|blockname|blocksizes)=|include[ \t]+\S)", re.IGNORECASE | re.MULTILINE
)
_SPEED = "LinkSpeed has units of the site's own, and is not used"


def blocks_lost(sizes: str) -> str:
    """What is said of the sizes of blocks that Slurm plans with."""
    return f"block sizes {sizes} are what Slurm plans with, not switches: they are no levels"


def read_slurm_conf(text: str, source: str) -> Facts:
    """The switches or blocks of a topology.conf.

    Raises:
        InputError: a line that belongs to neither, or both in one file.
    """
    names = HostNames()
    holders: list[Holder] = []
    lost: list[str] = []
    kinds: dict[str, str] = {}
    for line in lines_of(text, source):
        first = next(iter(line.words))
        if first == "blocksizes":
            line.only(("blocksizes",))
            lost.append(f"{source}: {blocks_lost(line.words['blocksizes'][:80])}")
            continue
        holders.append(_holder(line, first, names))
        kinds.setdefault(first, line.where)
        if "linkspeed" in line.words:
            lost.append(f"{source}: {_SPEED}")
    if len(kinds) > 1:
        rule = f"has blocks, and switches stand in {kinds['switchname']}"
        raise InputError(kinds["blockname"], rule, "keep the tree or the blocks")
    if not holders:
        raise InputError(source, "names no switch and no block", "give Slurm's topology.conf")
    tiers = BLOCK_TIERS if "blockname" in kinds else TIERS
    return Facts(source, OutsideFacts(tuple(holders), tiers=tiers), lost=tuple(dict.fromkeys(lost)))


def _holder(line: SlurmLine, first: str, names: HostNames) -> Holder:
    if first not in ("switchname", "blockname"):
        rule = f"begins with {first[:40]!r}, not with SwitchName, BlockName or BlockSizes"
        raise InputError(line.where, rule, "give a tree of switches or blocks, in one file")
    if first == "switchname":
        line.only(("switchname", "switches", "nodes", "linkspeed"))
    else:
        line.only(("blockname", "nodes"))
    switches = names.named(line.words.get("switches", ""), line.where)
    hosts = names.named(line.words.get("nodes", ""), line.where)
    return Holder(line.words[first], switches, hosts, line.number)


SLURM_CONF = ClusterFormat(
    "Slurm topology.conf", lambda text: _CONF_SIGN.search(text) is not None, read_slurm_conf
)


# Slurm's topology.yaml: several topologies, each a tree, blocks or flat (topology.yaml(5)).
#     - topology: fabric
#       cluster_default: true
#       tree:
#         switches:
#           - {switch: spine, children: "leaf[0-1]"}
#           - {switch: leaf0, nodes: "n[01-05]"}
#           - {switch: leaf1, nodes: "n[06-12]"}
#
# One of them is read: the one that is asked for by name, or else the first ``cluster_default``,
# which is what Slurm takes, or else the first.


_YAML_SIGN = re.compile(r"^[ \t]*-[ \t]+[\"']?topology[\"']?[ \t]*:", re.MULTILINE)
_KINDS = ("tree", "block")
_OTHERS = {
    "flat": "flat: it has no switches",
    "ring": "a ring of nodes, which is no tree of switches",
    "torus3d": "a torus of nodes, which is no tree of switches",
}


def recognises_slurm_yaml(text: str) -> bool:
    """Whether a text looks like a topology.yaml."""
    return _YAML_SIGN.search(text) is not None


def read_slurm_yaml(text: str, source: str, name: str | None = None) -> Facts:
    """The switches or blocks of one topology of a topology.yaml; ``name``: which one.

    Raises:
        InputError: no such topology, one that is neither tree nor blocks, or odd parts.
    """
    data = load_yaml(text, source, MAX_CHARACTERS)
    topologies = [_mapping(one, source, "topology") for one in _listed(data, source)]
    if not topologies:
        raise InputError(source, "has no topology in it", "give Slurm's topology.yaml")
    chosen = _chosen(topologies, source, name)
    others = [_named(one, source) for one in topologies if one is not chosen]
    where = f"{source}: topology {_named(chosen, source)[:80]!r}"
    found, lost = _read(chosen, where, _trees(topologies, source))
    if others:
        more = ", .." if len(others) > 3 else ""
        lost.append(f"{where} is read, and not {', '.join(others[:3])}{more}")
    return Facts(source, found, lost=tuple(lost))


def _chosen(topologies: Sequence[dict[str, Any]], source: str, name: str | None) -> dict[str, Any]:
    if name is not None:
        for one in topologies:
            if _named(one, source) == name:
                return one
        known = [_named(one, source) for one in topologies]
        remedy = did_you_mean(name, known) or f"it has {', '.join(known[:5])}"
        raise InputError(f"topology {name[:80]!r}", f"is not in {source}", remedy)
    default = (one for one in topologies if one.get("cluster_default") is True)
    return next(default, topologies[0])


def _trees(topologies: Sequence[dict[str, Any]], source: str) -> list[str]:
    """The names of those that can be read."""
    return [_named(one, source) for one in topologies if not set(_KINDS).isdisjoint(one)]


def _read(
    topology: dict[str, Any], where: str, trees: Sequence[str]
) -> tuple[OutsideFacts, list[str]]:
    kinds = [kind for kind in (*_KINDS, *_OTHERS) if kind in topology]
    if len(kinds) != 1:
        rule = "must have one of the keys tree and block"
        raise InputError(where, rule, "give exactly one of them")
    if kinds[0] in _OTHERS:
        remedy = (
            f"give --topology-name {trees[0][:80]}"
            if trees
            else "write a topology file by hand (hosts and the links between them)"
        )
        raise InputError(where, f"is {_OTHERS[kinds[0]]}", remedy)
    body = _mapping(topology[kinds[0]], where, kinds[0])
    names = HostNames()
    if kinds[0] == "tree":
        return OutsideFacts(tuple(_holders(body, where, names, "switches", "switch"))), []
    sizes = body.get("block_sizes")
    shown = ",".join(map(str, sizes)) if isinstance(sizes, list) else str(sizes)
    lost = [f"{where}: {blocks_lost(shown[:80])}"] if sizes else []
    found = tuple(_holders(body, where, names, "blocks", "block"))
    return OutsideFacts(found, tiers=BLOCK_TIERS), lost


def _holders(
    body: dict[str, Any], where: str, names: HostNames, plural: str, single: str
) -> Iterator[Holder]:
    for number, entry in enumerate(_listed(body.get(plural), f"{where}: {plural}"), start=1):
        here = f"{where}: {single} {number}"
        found = _mapping(entry, here, single)
        name = _text(found.get(single), here, single)
        if not name:
            raise InputError(here, "has no name", f"write {single}: NAME")
        children = names.named(_text(found.get("children"), here, "children"), here)
        hosts = names.named(_text(found.get("nodes"), here, "nodes"), here)
        yield Holder(name, children, hosts)


def _named(topology: dict[str, Any], source: str) -> str:
    return _text(topology.get("topology"), source, "topology")


def _text(value: object, where: str, key: str) -> str:
    """A text, or a name that looks like a number; empty where there is none."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: {key}", "must be text", "write a name or a host list")
    return str(value)


def _listed(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(where, "must be a list", "write lines that start with a dash")
    return value


def _mapping(value: object, where: str, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: {key}", "must be a mapping", f"write {key}: ..")
    return value


# What ``scontrol show topology`` prints: a line per switch or block.
#     SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=n[01-05]
#     SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[01-12] Switches=leaf[0-1]
#
# The nodes of a switch of switches are all that lie under it, so they are not read.  Blocks print
# ``BlockName=b0 BlockIndex=0 Nodes=n[01-04] BlockSize=4``, and aggregated ones
# ``AggregatedBlock=..`` (src/plugins/topology of SchedMD/slurm).


_SIGN = re.compile(
    r"^(SwitchName=\S+ Level=|BlockName=\S+ BlockIndex=|AggregatedBlock=)", re.MULTILINE
)
_SCONTROL_KEYS = {
    "switchname": ("switchname", "level", "linkspeed", "nodes", "switches"),
    "blockname": ("blockname", "blockindex", "nodes", "blocksize"),
    "aggregatedblock": ("aggregatedblock", "blockindex", "nodes", "blocksize"),
}


def read_scontrol(text: str, source: str) -> Facts:
    """The switches or blocks that scontrol printed.

    Raises:
        InputError: a line that belongs to neither, both in one text, or a line that was cut off.
    """
    names = HostNames()
    holders: list[Holder] = []
    kinds: dict[str, str] = {}
    for line in lines_of(text, source):
        first = next(iter(line.words))
        if first not in _SCONTROL_KEYS:
            rule = f"begins with {first[:40]!r}, not with SwitchName or BlockName"
            raise InputError(line.where, rule, "give what scontrol show topology prints alone")
        line.only(_SCONTROL_KEYS[first])
        kinds.setdefault(first, line.where)
        if first != "aggregatedblock":
            holders.append(_printed_holder(line, first, names))
    if "switchname" in kinds and len(kinds) > 1:
        other = next(where for kind, where in kinds.items() if kind != "switchname")
        raise InputError(other, "has blocks beside switches", "give one topology at a time")
    if not holders:
        raise InputError(source, "names no switch and no block", "give the whole output")
    lost = (
        (f"{source}: aggregated blocks are what Slurm plans with, and no levels",)
        if "aggregatedblock" in kinds
        else ()
    )
    tiers = TIERS if "switchname" in kinds else BLOCK_TIERS
    return Facts(source, OutsideFacts(tuple(holders), tiers=tiers), lost=lost)


def _printed_holder(line: SlurmLine, first: str, names: HostNames) -> Holder:
    if "nodes" not in line.words and "switches" not in line.words and "level" not in line.words:
        raise InputError(line.where, "is cut off", "give the whole output of scontrol")
    switches = names.named(line.words.get("switches", ""), line.where)
    hosts = () if switches else names.named(line.words.get("nodes", ""), line.where)
    return Holder(line.words[first], switches, hosts, line.number)


SCONTROL = ClusterFormat(
    "scontrol show topology", lambda text: _SIGN.search(text) is not None, read_scontrol
)
