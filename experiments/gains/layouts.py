"""Placements against the default layout: training steps with several axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from experiments.gains.asking import Ask, Programs, seconds, solved, worst
from experiments.gains.clusters import Cluster, has_leaves, leafy
from experiments.gains.store import positive, rounded
from p2smt.cluster.file import load_topology, preset_names
from p2smt.parallelism.request import Request, all_gather, all_to_all, reduce, reduce_scatter, send
from p2smt.plans.solution import Solution

GRADIENTS = ("256MiB", "4GiB")
NODES = 4
MATRIX = list[list[int]]
COLUMNS = (
    *("preset", "spec", "layout", "axes", "gradients", "default_s", "programs_s", "placement_s"),
    *("best_s", "placement_gain", "placement_measurable", "gain", "measurable", "status"),
    *("default_matrix", "placement_matrix", "best_matrix", "programs"),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Axes outermost first, as frameworks lay ranks out, and what they exchange."""

    name: str
    axes: str
    requests: tuple[Request, ...]

    def ask(self, cluster: Cluster) -> Ask:
        """The question on a cluster."""
        return Ask(cluster.spec, self.axes, self.requests)


def layouts(cluster: Cluster, gradients: str) -> Iterator[Layout]:
    """Layouts of training steps; ``gradients``: bytes per device that data parallelism reduces."""
    devices, node = cluster.topology.devices, cluster.node_devices
    full = min(8, node)
    half, stages = full // 2, min(4, cluster.nodes)
    grads, tensor = reduce(f"dp={gradients}"), reduce("tp=64MiB*64")
    stage = send("pp=64MiB*32")
    yield Layout("dp, tp 8", _axes(devices, tp=full), (grads, tensor))
    yield Layout("dp, tp 4", _axes(devices, tp=half), (grads, tensor))
    yield Layout("dp, tp 2", _axes(devices, tp=2), (grads, tensor))
    yield Layout(
        "pp, dp, tp 4", f"pp={stages},{_axes(devices // stages, tp=half)}", (grads, tensor, stage)
    )
    yield Layout("dp, pp, tp 4", _axes(devices, pp=stages, tp=half), (grads, tensor, stage))
    context = (all_gather("cp=64MiB*32"), reduce_scatter("cp=64MiB*32"))
    yield Layout("dp, cp 2, tp 4", _axes(devices, cp=2, tp=half), (grads, tensor, *context))
    yield Layout("dp, ep 8", _axes(devices, ep=full), (grads, all_to_all("ep=64MiB*64")))
    sharded = (
        all_gather(f"shard={gradients}*2"),
        reduce_scatter(f"shard={gradients}"),
        Request(grads.kind, ("rep",), max(1, grads.payload_bytes // node)),
    )
    yield Layout("replicas of shards", f"rep={cluster.nodes},shard={node}", sharded)


def _axes(devices: int, **inner: int) -> str:
    """Data parallelism outermost, with all that the others leave."""
    for size in inner.values():
        devices //= size
    return ",".join((f"dp={devices}", *(f"{name}={size}" for name, size in inner.items())))


def layout_clusters() -> Iterator[Cluster]:
    """Every preset with a few nodes, and with leaf switches."""
    for preset in preset_names():
        base = load_topology(preset)
        yield Cluster(preset, f"{preset}:{NODES}", base.with_outermost(NODES), NODES)
        if has_leaves(base):
            yield leafy(preset, 4)


def answer(ask: Ask, programs: Programs) -> dict[str, Any]:
    """The default layout, with programs, another placement, and both; all in seconds.

    ``placement``: one collective for each request on the best placement for that.
    """
    problem = ask.problem()
    on_default = programs.on_default(problem)
    best = solved(ask)
    if best.best is None or best.default is None:
        raise RuntimeError(f"{ask.command()}: {best.status.value}")
    default_s = best.default.objective_s
    gain = default_s / best.best.objective_s - 1
    singles = solved(ask, 1) if positive(gain) else best  # else no placement alone gains either
    if singles.best is None:
        raise RuntimeError(f"{ask.command()}: {singles.status.value}")
    alone = default_s / singles.best.objective_s - 1
    return {
        "default_s": rounded(default_s),
        "programs_s": on_default and rounded(seconds(problem, on_default)),
        "placement_s": rounded(singles.best.objective_s),
        "best_s": rounded(best.best.objective_s),
        "placement_gain": positive(alone),
        "placement_measurable": _measurable(singles),
        "gain": positive(gain),
        "measurable": _measurable(best),
        "status": _status(best, singles, worst(on_default or ()).value),
        "default_matrix": best.default.matrix,
        "placement_matrix": singles.best.matrix,
        "best_matrix": best.best.matrix,
        "programs": [str(answer.program) for answer in best.best.requests],
    }


def _measurable(found: Solution) -> bool | None:
    """What the answer says of its gain."""
    return None if found.gain is None else found.gain.measurable


def _status(best: Solution, singles: Solution, on_default: str) -> str:
    """``optimal`` if every part is."""
    parts = (best.status.value, singles.status.value, on_default)
    return next((part for part in parts if part != "optimal"), "optimal")


def rows(cluster: Cluster, programs: Programs) -> Iterator[list[Any]]:
    """All answers of a cluster, in the order of ``COLUMNS``."""
    for gradients in GRADIENTS:
        for layout in layouts(cluster, gradients):
            where = (cluster.preset, cluster.spec, layout.name, layout.axes, gradients)
            yield [*where, *answer(layout.ask(cluster), programs).values()]
