"""Where clouds say that virtual machines are: Google's ``physicalHost``, Amazon's NetworkNodes.

Either as JSON (``gcloud compute instances list --format=json``), or as lines of names and locations
in any order, with commas or blanks between them, as Google's cluster-toolkit asks for them:

    gcloud compute instances list --format="csv[no-heading](zone,resourceStatus.physicalHost,name)"
    us-central1-a,/4d5e/0a1b/f00d,a3-0

A location is ``/block/subblock/host``, on older machines ``/cluster/rack/host``, and one more level
goes before it on some; the last part is the machine itself, and is no level.
(cloud.google.com/compute/docs, sort_nodes.py of GoogleCloudPlatform/cluster-toolkit.)

``aws ec2 describe-instance-topology`` lists instances with the network nodes over them, outermost
first, and, of UltraServers, the capacity block that is one (docs.aws.amazon.com, InstanceTopology).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import replace
from typing import Any

from p2smt.cluster.hostlist import MAX_NAME
from p2smt.errors import InputError
from p2smt.interop.clusters.facts import (
    ClusterFormat,
    Facts,
    Holder,
    Path,
    each_of,
    is_nowhere,
    outside_of,
    parsed,
)
from p2smt.interop.clusters.slurm import MAX_CHARACTERS as MAX_LINE_CHARACTERS

MAX_PARTS = 6
_LINE = re.compile(r"^[^#\n/]{0,300}(^|[ \t,])/[\w.-]+/[\w.-]+", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
_AMAZON, _BLOCK = "Instances", "CapacityBlockId"
_PARTS = ("cluster", "block", "subblock", "host")
_HEADINGS = ("name", "zone", "physical_host", "physicalhost")
_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")


def read_physical_hosts(text: str, source: str) -> Facts:
    """The machines of a list by where they are.

    Raises:
        InputError: no machine has a location, one is named twice, or locations are unequally deep.
    """
    if len(text) > MAX_LINE_CHARACTERS and not _is_json(text):
        raise InputError(source, f"is longer than {MAX_LINE_CHARACTERS} characters", "shorten it")
    data: Any = parsed(text, source) if _is_json(text) else None
    found = _in_lines(text, source) if data is None else _in_json(data, source)
    paths: dict[str, Path] = {}
    loose: dict[str, None] = {}
    for name, location, where in found:
        if name in paths or name in loose:
            raise InputError(f"{where}: {name[:80]!r}", "is named twice", "name each once")
        if len(name) > MAX_NAME:
            raise InputError(where, f"has a name longer than {MAX_NAME} characters", "rename it")
        path = _path(location, where) if location else ()
        if path and not any(map(is_nowhere, path)):
            paths[name] = path
        else:
            loose[name] = None
    depths = {len(path): name for name, path in paths.items()}
    if not paths:
        rule = "names no machine with a physicalHost or NetworkNodes"
        raise InputError(source, rule, "they need a compact placement, or a machine type that has")
    if len(depths) > 1:
        few, many = (depths[depth] for depth in (min(depths), max(depths)))
        rule = f"has fewer parts in its physicalHost than {many[:80]}"
        raise InputError(f"{source}: {few[:80]}", rule, "list machines of one kind")
    outside = outside_of(paths, tuple(loose))
    racks, by = tuple(one for one in outside.holders if one.hosts), "subblocks of physicalHost"
    if _is_amazon(data):
        racks, by = _ultraservers(data[_AMAZON], paths)
    return Facts(source, replace(outside, racks=racks, racks_by=by))


def _is_amazon(data: Any) -> bool:
    return isinstance(data, dict) and _AMAZON in data


def _ultraservers(items: list[Any], placed: Container[str]) -> tuple[tuple[Holder, ...], str]:
    """The instances that one UltraServer holds, by its block; and what they are told by."""
    blocks = {item["InstanceId"]: (str(item.get(_BLOCK) or ""),) for item in items}
    known = {name: path for name, path in blocks.items() if name in placed and path != ("",)}
    named = f"give instances that have a {_BLOCK}, as those of UltraServers do"
    return outside_of(known).holders, _BLOCK if known else named


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _path(location: str, where: str) -> Path:
    parts = tuple(location.strip("/").split("/"))
    if not 2 <= len(parts) <= MAX_PARTS + 1 or not all(parts):
        rule = f"is a physicalHost of {len(parts)} parts, not 2 to {MAX_PARTS + 1}"
        raise InputError(f"{where}: {location[:80]!r}", rule, "it reads like /block/subblock/host")
    return parts[:-1]


def _in_json(data: Any, source: str) -> Iterator[tuple[str, str, str]]:
    amazon = _is_amazon(data)
    if isinstance(data, dict) and not amazon and "items" not in data:
        data = [data]
    for item, where in each_of(data, source, _AMAZON if amazon else "items"):
        key = "InstanceId" if amazon else "name"
        name = item.get(key) if isinstance(item, dict) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(where, f"has no {key}", "give the whole output of the command")
        status = item.get("resourceStatus")
        yield name, _network_nodes(item, name, where) if amazon else _location(status, where), where


def _network_nodes(item: dict[str, Any], name: str, where: str) -> str:
    """The network nodes over an instance and itself as one location, or an empty text."""
    nodes = item.get("NetworkNodes") or []
    if not isinstance(nodes, list) or not all(
        isinstance(n, str) and _NAME.fullmatch(n) for n in nodes
    ):
        raise InputError(f"{where}: NetworkNodes", "must be names", "give the output as it is")
    return "".join(f"/{one}" for one in (*nodes, name)) if nodes else ""


def _location(status: Any, where: str) -> str:
    """The location of a machine, or an empty text."""
    found = status.get("physicalHost", "") if isinstance(status, dict) else ""
    parts = status.get("physicalHostTopology") if isinstance(status, dict) else None
    if not found and isinstance(parts, dict):
        found = "".join(f"/{parts[part]}" for part in _PARTS if parts.get(part))
    if not isinstance(found, str):
        raise InputError(f"{where}: physicalHost", "must be text", "give the output as it is")
    return found


def _in_lines(text: str, source: str) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        words = [word for word in re.split(r"[\s,]+", line.partition("#")[0].strip()) if word]
        where = f"{source}, line {number}"
        if not words or any(word.lower() in _HEADINGS for word in words):
            continue
        places = [word for word in words if word.startswith("/")]
        others = [word for word in words if not word.startswith("/")]
        names = [word for word in others if not _ZONE.fullmatch(word)]
        if len(places) > 1 or len(names) != 1 or not _NAME.fullmatch(names[0]):
            rule = "is not a name and a physicalHost, with a zone or without"
            raise InputError(where, rule, "write it like us-central1-a,/b/s/h,vm-0")
        yield names[0], places[0] if places else "", where


def _recognises(text: str) -> bool:
    if _is_json(text):
        return any(key in text for key in ('"physicalHost', '"resourceStatus"', '"NetworkNodes"'))
    return _LINE.search(text) is not None


PHYSICAL_HOSTS = ClusterFormat(
    "list of physicalHost or NetworkNodes", _recognises, read_physical_hosts
)
