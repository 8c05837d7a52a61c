"""Hosts with the names of what holds them, outermost first, as holders.

Labels and physical locations say of each host where it is.  Names need to be unique only under what
holds them: where two racks of different rooms have one name, that of the room goes before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from p2smt.interop.clusters.facts import TIERS, Holder, OutsideFacts

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
