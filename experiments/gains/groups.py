"""Programs against the library's single collective: groups on the default layout, by payload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from experiments.gains.asking import Ask, Programs, cheapest_s, default_matrix, measurable
from experiments.gains.clusters import Cluster, clusters
from experiments.gains.store import positive, rounded
from p2smt.collectives.names import RequestKind
from p2smt.parallelism.request import Request

PAYLOADS = tuple(2**n for n in (16, 19, 22, 25, 28, 31, 33))
"""Of all-reduces; 64 KiB to 8 GiB."""
FEWER = tuple(2**n for n in (22, 28, 33))
"""Of reduce-scatters; all-gathers cost as much."""
WHOLE, SHARED, SPREAD, INSIDE = "whole system", "two share nodes", "one per node", "inside a node"
COLUMNS = (
    *("preset", "spec", "nodes", "leaves", "group", "collective", "payload", "single_s", "best_s"),
    *("cheapest_s", "links_s", "gain", "measurable", "status", "program"),
)


@dataclass(frozen=True, slots=True)
class Groups:
    """Axes on a cluster, and the one that is reduced."""

    name: str
    axes: str
    axis: str


def groups(cluster: Cluster) -> Iterator[Groups]:
    """The groups of the study on a cluster."""
    devices, node = cluster.topology.devices, cluster.node_devices
    split = f"dp={cluster.nodes},tp={node}"
    yield Groups(WHOLE, f"dp={devices}", "dp")
    yield Groups(SHARED, f"dp={devices // 2},tp=2", "dp")
    yield Groups(SPREAD, split, "dp")
    yield Groups(INSIDE, split, "tp")


def asks(cluster: Cluster) -> Iterator[tuple[Groups, Ask]]:
    """Every question of a cluster."""
    for one in groups(cluster):
        kinds = [(RequestKind.ALL_REDUCE, PAYLOADS)]
        if one.name != INSIDE:
            kinds.append((RequestKind.REDUCE_SCATTER, FEWER))
        for kind, payloads in kinds:
            for payload in payloads:
                yield one, Ask(cluster.spec, one.axes, (Request(kind, (one.axis,), payload),))


def row(cluster: Cluster, group: Groups, ask: Ask, programs: Programs) -> list[Any]:
    """The answer in the order of ``COLUMNS``."""
    problem = ask.problem()
    matrix, answers = default_matrix(problem), programs.on_default(problem)
    if matrix is None or answers is None:
        raise ValueError(f"{ask.command()}: no matrix is the default layout")
    found = answers[0]
    gain = found.single_s / found.seconds - 1
    cheap_s = cheapest_s(problem, found.request, matrix)
    return [
        *(cluster.preset, cluster.spec, cluster.nodes, cluster.leaves, group.name),
        *(found.request.kind.value, found.request.payload_bytes),
        *(rounded(found.single_s), rounded(found.seconds), rounded(cheap_s)),
        *(rounded(found.physical_bound_s), positive(gain)),
        measurable(problem, matrix, answers),
        *(found.status.value, str(found.program)),
    ]


def rows(cluster: Cluster, programs: Programs) -> list[list[Any]]:
    """All answers of a cluster."""
    return [row(cluster, group, ask, programs) for group, ask in asks(cluster)]


def ask_of(entry: dict[str, Any]) -> Ask:
    """The question that a committed row answers."""
    cluster = next(c for c in clusters(entry["preset"]) if c.spec == entry["spec"])
    one = next(g for g in groups(cluster) if g.name == entry["group"])
    request = Request(RequestKind(entry["collective"]), (one.axis,), entry["payload"])
    return Ask(cluster.spec, one.axes, (request,))
