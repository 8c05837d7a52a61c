"""Volcano's HyperNodes: a tree of switches as objects of Kubernetes.

As ``kubectl get hypernodes -o json`` or ``-o yaml`` prints them, or as documents of a YAML file.  A
HyperNode has members: nodes, or HyperNodes of the tier below, each by its exact name
(topology.volcano.sh/v1alpha1, docs/design/hyperNode of volcano-sh/volcano).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from p2smt.errors import InputError
from p2smt.files.yaml_text import load_yaml
from p2smt.interop.clusters.facts import ClusterFormat, Facts, Holder, OutsideFacts, parsed
from p2smt.interop.clusters.slurm import MAX_CHARACTERS

_SIGN = re.compile(r"topology\.volcano\.sh/")
_KIND = re.compile(r"kind[\"']?: *[\"']?HyperNode")
_SPLIT = re.compile(r"^---[^\n]*$", re.MULTILINE)


def read_hypernodes(text: str, source: str) -> Facts:
    """The HyperNodes of a text, with the nodes that they have.

    Raises:
        InputError: it is malformed, or one names its members by a pattern or by labels.
    """
    holders = [_holder(data, where) for data, where in _objects(text, source)]
    if not holders:
        raise InputError(source, "has no HyperNode", "give kubectl get hypernodes -o json")
    return Facts(source, OutsideFacts(tuple(holders)))


def _objects(text: str, source: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The HyperNodes among the objects of all documents, with what messages call each."""
    number = 0
    for data in _documents(text, source):
        items = data.get("items") if isinstance(data, dict) else None
        for one in items if isinstance(items, list) else [data]:
            if isinstance(one, dict) and one.get("kind") == "HyperNode":
                number += 1
                yield one, f"{source}: HyperNode {number}"


def _documents(text: str, source: str) -> Iterator[Any]:
    if text.lstrip()[:1] in ("{", "["):
        yield parsed(text, source)
        return
    for part in _SPLIT.split(text):
        if any(line.strip() and not line.lstrip().startswith("#") for line in part.split("\n")):
            yield load_yaml(part, source, MAX_CHARACTERS)


def _holder(data: dict[str, Any], where: str) -> Holder:
    name = _inside(data, "metadata", "name")
    if not isinstance(name, str) or not name:
        raise InputError(where, "has no name", "give kubectl get hypernodes -o json")
    members = _inside(data, "spec", "members")
    if not isinstance(members, list):
        raise InputError(f"{where} ({name[:80]})", "has no list of members", "name its nodes")
    found: dict[str, list[str]] = {"Node": [], "HyperNode": []}
    for one in members:
        kind = one.get("type") if isinstance(one, dict) else None
        if kind not in found:
            rule = "has a member whose type is not Node or HyperNode"
            raise InputError(f"{where} ({name[:80]})", rule, "correct it")
        found[str(kind)].append(_member(one, f"{where} ({name[:80]})"))
    return Holder(name, tuple(found["HyperNode"]), tuple(found["Node"]))


def _member(data: dict[str, Any], where: str) -> str:
    name = _inside(data, "selector", "exactMatch", "name")
    if isinstance(name, str) and name:
        return name
    rule = "names members by a pattern or by labels (regexMatch, labelMatch), not one by one"
    remedy = "write them as exactMatch, or give kubectl get nodes -o json and --labels KEY,KEY"
    raise InputError(where, rule, remedy)


def _inside(data: Any, *keys: str) -> Any:
    """What lies under some keys of objects in objects; None where it is missing."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


HYPERNODES = ClusterFormat(
    "Volcano HyperNodes",
    lambda text: bool(_SIGN.search(text) and _KIND.search(text)),
    read_hypernodes,
)
