"""What holds hosts, as a source tells it, made a tree of equal depth; what that took is said.

A host under two switches, or under none, is in no certain place: it is left out and named.  Where
one switch holds everything it is no level, since nothing passes its uplink; where several have
nothing over them, one that the source does not name joins them.  A switch that has fewer switches
over it than others gets such as pass everything through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from p2smt.errors import InputError
from p2smt.interop.clusters.facts import Holder, OutsideFacts, is_nowhere

MAX_DEPTH = 20
"""Most switches over each other, as in Slurm."""
_SHOWN = 3
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostTree:
    """Hosts in the order of the tree, each with the holders over it, outermost first.

    ``tiers`` names the levels of those, outermost first; ``left_out`` has hosts without one place,
    each with the holders that have it (several, or none).  ``rates`` are uplinks that the source
    tells, as OutsideFacts'.
    """

    tiers: tuple[str, ...]
    hosts: tuple[str, ...]
    paths: tuple[Path, ...]
    left_out: Mapping[str, tuple[str, ...]]
    rates: Mapping[str, float] = field(default_factory=dict)


def tree_of(facts: OutsideFacts, source: str) -> tuple[HostTree, tuple[str, ...]]:
    """The tree that holds the hosts, and sentences on what was left out or filled in.

    Raises:
        InputError: a holder is named twice or not at all, holders form a cycle, one holds a host
            twice or hosts beside holders, or no host is in one certain place.
    """
    lost: list[str] = []
    facts = _without_marks(facts, source, lost)
    by_name = _by_name(facts.holders, source)
    over = _over(by_name, source, lost)
    order = _order(by_name, over, source)
    homes, left_out = _homes(order, source, facts.loose, lost)
    paths = _paths(homes, over, source)
    _note_empty(order, paths, source, lost)
    paths, tiers = _levelled(paths, facts.tiers, source, lost)
    return HostTree(tiers, tuple(paths), tuple(paths.values()), left_out, facts.rates), tuple(lost)


def blocks_of(facts: OutsideFacts, source: str) -> tuple[HostTree, tuple[str, ...]]:
    """The hosts of each block, a level also where there is one block; as :func:`tree_of`."""
    lost: list[str] = []
    facts = _without_marks(facts, source, lost)
    by_name = _by_name(facts.holders, source)
    order = _order(by_name, _over(by_name, source, lost), source)
    homes, left_out = _homes(order, source, facts.loose, lost)
    paths = {host: (home,) for host, home in homes.items()}
    _note_empty(order, paths, source, lost)
    return HostTree(tuple(facts.tiers), tuple(paths), tuple(paths.values()), left_out), tuple(lost)


def doubts(left_out: Mapping[str, tuple[str, ...]]) -> str:
    """A sentence on where the first of the hosts without one place are; empty without any."""
    if not left_out:
        return ""
    shown = [
        f"{host} (under {' and '.join(name[:80] for name in over[:4]) or 'none'})"
        for host, over in list(left_out.items())[:_SHOWN]
    ]
    more = f" and {len(left_out) - _SHOWN} more" if len(left_out) > _SHOWN else ""
    return f" In no certain place: {', '.join(shown)}{more}."


def listed(names: Sequence[str]) -> str:
    """The first of some names, for a sentence."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(name[:80] for name in names[:_SHOWN]) + more


def _where(holder: Holder, source: str) -> str:
    return f"{source}, line {holder.line}" if holder.line else source


def _without_marks(facts: OutsideFacts, source: str, lost: list[str]) -> OutsideFacts:
    """The facts without holders that are marks of unknown places: their hosts are loose.

    A mark that all hosts are under tells as little, and takes nothing away.
    """
    children = {holder.name: holder.holders for holder in facts.holders}
    marks = [holder.name for holder in facts.holders if holder.name and is_nowhere(holder.name)]
    todo, gone = list(marks), set[str]()
    while todo:
        name = todo.pop()
        if name not in gone:
            gone.add(name)
            todo += children.get(name, ())
    kept = [holder for holder in facts.holders if holder.name not in gone]
    placed = {host for holder in kept for host in holder.hosts}
    if not marks or not placed:
        return facts
    lost.append(f"{source}: {listed(marks)} is no switch, but says that a place is not known")
    marked = [h for holder in facts.holders if holder.name in gone for h in holder.hosts]
    holders = [
        replace(holder, holders=tuple(name for name in holder.holders if name not in gone))
        for holder in kept
    ]
    loose = dict.fromkeys((*facts.loose, *(host for host in marked if host not in placed)))
    return replace(facts, holders=tuple(holders), loose=tuple(loose))


def _by_name(holders: Sequence[Holder], source: str) -> dict[str, Holder]:
    found: dict[str, Holder] = {}
    for holder in holders:
        if not holder.name or not holder.name.isprintable() or len(holder.name) > 255:
            raise InputError(
                _where(holder, source),
                "has a switch with an odd name, or without",
                "name it plainly",
            )
        if holder.name in found:
            given = f"{_where(holder, source)}: {holder.name[:80]!r}"
            raise InputError(given, "is named twice", "join both, or rename one")
        if holder.holders and holder.hosts:
            given = f"{_where(holder, source)}: {holder.name[:80]!r}"
            raise InputError(given, "has switches and hosts under it", "give its hosts a switch")
        found[holder.name] = holder
    return found


def _over(by_name: Mapping[str, Holder], source: str, lost: list[str]) -> dict[str, str]:
    """The name of what is over each holder; the first where there are several."""
    over: dict[str, str] = {}
    several: dict[str, str] = {}
    for holder in by_name.values():
        for child in holder.holders:
            if child not in by_name:
                given = f"{_where(holder, source)}: {child[:80]!r} under {holder.name[:80]!r}"
                raise InputError(given, "is described nowhere", "add a line for it, or drop it")
            if over.setdefault(child, holder.name) != holder.name:
                several[child] = holder.name
    for child, other in list(several.items())[:_SHOWN]:
        lost.append(f"{source}: {child} is under {over[child]} and {other}: {over[child]} is taken")
    if len(several) > _SHOWN:
        rest = len(several) - _SHOWN
        lost.append(f"{source}: {rest} more are under several: the first of each is taken")
    return over


def _order(by_name: dict[str, Holder], over: Mapping[str, str], source: str) -> list[Holder]:
    """The holders depth first, in the order of the source.

    Raises:
        InputError: some are in a cycle.
    """
    found: list[Holder] = []
    stack = [name for name in reversed(by_name) if name not in over]
    while stack:
        holder = by_name[stack.pop()]
        found.append(holder)
        children = dict.fromkeys(holder.holders)
        stack += [child for child in reversed(children) if over[child] == holder.name]
    if len(found) < len(by_name):
        known = {holder.name for holder in found}
        cycle = _cycle(next(name for name in by_name if name not in known), over)
        shown = " > ".join(name[:80] for name in cycle[:6]) + (" > .." if len(cycle) > 6 else "")
        raise InputError(f"{source}: {shown}", "form a cycle", "a switch cannot be over itself")
    return found


def _cycle(name: str, over: Mapping[str, str]) -> list[str]:
    """The cycle that lies over a holder."""
    seen: dict[str, None] = {}
    while name not in seen:
        seen[name] = None
        name = over[name]
    found = list(seen)
    return list(reversed([*found[found.index(name) :], name]))


def _homes(
    order: Sequence[Holder], source: str, loose: Sequence[str], lost: list[str]
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """What holds each host that one holder alone holds; and those left out, as HostTree's."""
    homes: dict[str, str] = {}
    several: dict[str, list[str]] = {}
    for holder in order:
        for host in holder.hosts:
            home = homes.setdefault(host, holder.name)
            if home != holder.name:
                several.setdefault(host, [home]).append(holder.name)
        if len(set(holder.hosts)) != len(holder.hosts):
            twice = Counter(holder.hosts).most_common(1)[0][0]
            given = f"{_where(holder, source)}: host {twice[:80]!r}"
            raise InputError(given, f"is named twice under {holder.name[:80]}", "name it once")
    for host in several:
        del homes[host]
    lost += [
        f"{source}: host {host} is under {' and '.join(found[:4])}: it is left out"
        for host, found in list(several.items())[:_SHOWN]
    ]
    if len(several) > _SHOWN:
        rest = list(several)[_SHOWN:]
        lost.append(f"{source}: {listed(rest)} are under several switches too: they are left out")
    free = [host for host in dict.fromkeys(loose) if host not in homes and host not in several]
    if not order:
        homes, free = dict.fromkeys(free, ""), []
    if free:
        one = f"{free[0][:80]} is: it is left out"
        many = f"{len(free)} hosts are: they are left out ({listed(free)})"
        lost.append(f"{source}: nothing says where {one if len(free) == 1 else many}")
    if not homes:
        raise InputError(source, "leaves no host in one certain place", "name hosts under switches")
    found = {host: tuple(dict.fromkeys(over)) for host, over in several.items()}
    return homes, found | dict.fromkeys(free, ())


def _paths(homes: Mapping[str, str], over: Mapping[str, str], source: str) -> dict[str, Path]:
    """What is over each host, outermost first."""
    known: dict[str, Path] = {"": ()}
    for home in dict.fromkeys(homes.values()):
        path = [home] if home else []
        while path and path[-1] in over:
            path.append(over[path[-1]])
            if len(path) > MAX_DEPTH:
                rule = f"has more than {MAX_DEPTH - 1} switches over it"
                raise InputError(f"{source}: {home[:80]!r}", rule, "give a tree of fewer levels")
        known[home] = tuple(reversed(path))
    return {host: known[home] for host, home in homes.items()}


def _note_empty(
    order: Sequence[Holder], paths: Mapping[str, Path], source: str, lost: list[str]
) -> None:
    used = {name for path in set(paths.values()) for name in path}
    empty = [holder.name for holder in order if holder.name not in used]
    if empty:
        lost.append(f"{source}: {listed(empty)} hold no hosts: left out")


def _levelled(
    paths: dict[str, Path], tiers: Sequence[str], source: str, lost: list[str]
) -> tuple[dict[str, Path], tuple[str, ...]]:
    """Paths of one length without a top that holds everything, and the names of their levels."""
    distinct = list(dict.fromkeys(paths.values()))
    top = _shared(distinct)
    if top:
        verb = "is" if top == 1 else "are"
        what = "over everything: nothing leaves there, so that it is no level"
        lost.append(f"{source}: {listed(distinct[0][:top])} {verb} {what}")
    depth = max(map(len, distinct)) - top
    names = [tiers[j] if j < len(tiers) else f"tier{j + 1}" for j in range(depth)]
    roots = list(dict.fromkeys(path[top] for path in distinct if path[top:]))
    if not top and len(roots) > 1:
        lost.append(f"{source}: nothing is over {listed(roots)}: one switch joins them")
    if short := [path[-1] for path in distinct if len(path) - top < depth]:
        over = "have fewer switches over them than others: the missing ones pass everything through"
        lost.append(f"{source}: {listed(short)} {over}")
    padded = {path: tuple(_padded(path[top:], names)) for path in distinct}
    named = {name for path in distinct for name in path}
    for path, new in padded.items():
        if odd := named.intersection(new).difference(path):
            given = f"{source}: switch {min(odd)[:80]!r}"
            raise InputError(given, "has the name of one that is filled in", "rename it")
    return {host: padded[path] for host, path in paths.items()}, tuple(reversed(names))


def _shared(distinct: Sequence[Path]) -> int:
    """How many names all paths begin with."""
    first, last = min(distinct), max(distinct)
    return next((j for j, name in enumerate(first) if name != last[j]), len(first))


def _padded(path: Path, names: Sequence[str]) -> Iterator[str]:
    """A path with switches over the innermost that pass everything through."""
    yield from path[:-1]
    for tier in range(len(names) - len(path), 0, -1):
        yield f"{path[-1]}-as-{names[tier]}"
    yield from path[-1:]
