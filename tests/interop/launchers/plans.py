"""Plans whose ranks lie anywhere: on hosts under unequal switches, or on nodes without names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from p2smt.cluster.file import dump_topology, parse_topology
from p2smt.cluster.topology import Topology
from p2smt.files.validation import validated
from p2smt.interop.places import PlacedPlan, placed
from p2smt.plans.file_model import PlanModel

LENGTH = {
    "kind": "max-length",
    "text": "programs of at most 5 instructions",
    "instructions": 5,
}
LINK = "link: {kind: switch, bandwidth: 10 GB/s, latency: 1 us"


def topology(leaves: Sequence[Sequence[str]], inside: Sequence[int]) -> Topology:
    """Hosts under leaf switches, and the sizes of the levels in a node."""
    levels = [f"- {{name: leaf, size: {len(leaves)}, {LINK}, fabric: roce}}}}"]
    levels.append(f"- {{name: node, size: {max(map(len, leaves))}, {LINK}, fabric: roce}}}}")
    for i, size in enumerate(inside):
        levels.append(f"- {{name: in{i}, size: {size}, {LINK}, fabric: nvlink4}}}}")
    switches = [f"- {{name: l{i}, hosts: '{','.join(names)}'}}" for i, names in enumerate(leaves)]
    text = ["name: test", "library: none", "levels:", *levels, "switches:", *switches]
    return parse_topology("\n".join(text), "test")


def unnamed(nodes: int, inside: Sequence[int]) -> Topology:
    """Nodes without names."""
    levels = [f"- {{name: node, size: {nodes}, {LINK}, fabric: roce}}}}"]
    for i, size in enumerate(inside):
        levels.append(f"- {{name: in{i}, size: {size}, {LINK}, fabric: nvlink4}}}}")
    return parse_topology("\n".join(["name: test", "library: none", "levels:", *levels]), "test")


def plan_data(where: Topology, axes: dict[str, int], ranks: Sequence[int]) -> dict[str, Any]:
    """A plan file's data with one request that nobody solved."""
    zeros = dict.fromkeys(("objective_s", "bound_s", "physical_bound_s"), 0.0)
    request = {
        "kind": "all-reduce",
        "axes": [next(iter(axes))],
        "bytes": 1,
        "times": 1,
        "program": None,
        "status": "feasible",
        "seconds": 0.0,
        "bound_s": 0.0,
        "physical_bound_s": 0.0,
        "single_collective_s": 0.0,
        "peak_bytes": 1,
        "shards": None,
        "steps": [],
    }
    return {
        "schema_version": 2,
        "topology": dump_topology(where),
        "matrix": None,
        **zeros,
        "axes": [{"name": name, "size": size} for name, size in axes.items()],
        "ranks": list(ranks),
        "objective": "sum",
        "status": "feasible",
        "peak_bytes": 1,
        "restrictions": [LENGTH],
        "requests": [request],
        "limits": {"solver": "cpsat", "time_limit_s": None, "seed": 0, "workers": 1, "top": 1},
    }


def placed_plan(
    where: Topology, ranks: Sequence[int], hosts: Sequence[str] | None = None
) -> PlacedPlan:
    """The plan of ranks along one axis, read."""
    data = plan_data(where, {"dp": len(ranks)}, ranks)
    return placed(validated(PlanModel, data, "test"), "test", hosts)


def written_plan(path: Path, where: Topology, ranks: Sequence[int]) -> str:
    """The same as a file."""
    path.write_text(json.dumps(plan_data(where, {"dp": len(ranks)}, ranks)))
    return str(path)


HOST_NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,5}[0-9]{1,3}", fullmatch=True)


@st.composite
def clusters(draw: st.DrawFn, names: st.SearchStrategy[str] = HOST_NAMES) -> Topology:
    """Hosts of any names under up to four unequal leaves, of up to six devices in two levels."""
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    total = sum(counts)
    found = draw(st.lists(names, min_size=total, max_size=total, unique=True))
    inside = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    leaves, at = [], 0
    for count in counts:
        leaves.append(found[at : at + count])
        at += count
    return topology(leaves, inside)


CLUSTERS = clusters()


@st.composite
def placed_plans(draw: st.DrawFn, where: st.SearchStrategy[Topology] = CLUSTERS) -> PlacedPlan:
    """Ranks on the devices of a cluster in any order."""
    cluster = draw(where)
    return placed_plan(cluster, draw(st.permutations(sorted(cluster.places))))


@st.composite
def node_orders(draw: st.DrawFn) -> PlacedPlan:
    """Ranks in blocks of a host each, hosts and the devices of each in any order."""
    cluster = draw(clusters())
    assert cluster.hosts is not None
    each = cluster.devices_under(cluster.node_level)
    slots = draw(st.permutations(cluster.hosts.slots))
    ranks = [slot * each + i for slot in slots for i in draw(st.permutations(range(each)))]
    return placed_plan(cluster, ranks)
