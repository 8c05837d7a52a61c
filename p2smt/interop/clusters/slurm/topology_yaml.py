"""Slurm's topology.yaml: several topologies, each a tree, blocks or flat (topology.yaml(5)).

    - topology: fabric
      cluster_default: true
      tree:
        switches:
          - {switch: spine, children: "leaf[0-1]"}
          - {switch: leaf0, nodes: "n[01-05]"}
          - {switch: leaf1, nodes: "n[06-12]"}

One of them is read: the one that is asked for by name, or else the first ``cluster_default``, which
is what Slurm takes, or else the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean
from p2smt.files.yaml_text import load_yaml
from p2smt.interop.clusters.facts import BLOCK_TIERS, Facts, Holder, OutsideFacts
from p2smt.interop.clusters.slurm.conf import blocks_lost
from p2smt.interop.clusters.slurm.lines import MAX_CHARACTERS, HostNames

_SIGN = re.compile(r"^[ \t]*-[ \t]+[\"']?topology[\"']?[ \t]*:", re.MULTILINE)
_KINDS = ("tree", "block")
_OTHERS = {
    "flat": "flat: it has no switches",
    "ring": "a ring of nodes, which is no tree of switches",
    "torus3d": "a torus of nodes, which is no tree of switches",
}


def recognises_slurm_yaml(text: str) -> bool:
    """Whether a text looks like a topology.yaml."""
    return _SIGN.search(text) is not None


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
