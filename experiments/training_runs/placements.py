"""What placement adds to published strategies: on the clusters that ran them, and elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.training_runs.store import rounded
from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Level, Topology
from p2smt.parallelism.matrices import matrices
from p2smt.parallelism.placement import Placement
from p2smt.training.efficiencies.frameworks import named_hardware, topology_of
from p2smt.training.efficiency import Efficiency
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.measured.measured_runs import MeasuredRun
from p2smt.training.pipeline import (
    StrategyWork,
    axis_requests,
    call_seconds,
    combine,
    default_placement,
    work,
)

ELSEWHERE = {"a100": ("aws-p4d", "gcp-a2-highgpu-16g"), "h100": ("gcp-a3-high", "gcp-a3-mega")}
"""Presets whose nodes share their ports, by family of devices; their devices are the runs' own."""
LEAF, OVERSUBSCRIBED = 4, 4
"""Nodes under a leaf switch, and how much more their ports carry than its uplinks."""
LEAST = 1e-6
"""A gain below this part is rounding."""


def placement_rows(
    runs: Sequence[MeasuredRun], efficiencies: Mapping[tuple[str, str], Efficiency]
) -> list[dict[str, Any]]:
    """Each published strategy on each cluster: the default placement against the best of all."""
    rows = []
    for run in _distinct(runs, efficiencies):
        for name, topology in _clusters(run):
            family = named_hardware(run.hardware).family
            row = _row(run, topology, efficiencies[run.framework, family])
            if row is not None:
                rows.append({"run": run.name, "group": run.group, "cluster": name, **row})
    return rows


def _distinct(
    runs: Sequence[MeasuredRun], efficiencies: Mapping[tuple[str, str], Efficiency]
) -> Iterator[MeasuredRun]:
    """Counted runs with an efficiency, on two nodes or more and with two axes or more."""
    met = set()
    for run in runs:
        key = (run.framework, named_hardware(run.hardware).family)
        axes = sum(size > 1 for size in run.training.strategy.sizes)
        big = len(topology_of(run.hardware, run.training.strategy.devices).levels) > 1
        if run.counted and key in efficiencies and axes > 1 and big and run.training not in met:
            met.add(run.training)
            yield run


def _clusters(run: MeasuredRun) -> Iterator[tuple[str, Topology]]:
    hardware, devices = named_hardware(run.hardware), run.training.strategy.devices
    own = topology_of(run.hardware, devices)
    yield hardware.topology, own
    if own.levels[0].size % LEAF == 0 and own.levels[0].size > LEAF:
        yield f"{hardware.topology}, leaves {OVERSUBSCRIBED}:1", _under_leaves(own)
    for preset in ELSEWHERE[hardware.family]:
        node = load_topology(f"{preset}:1").devices
        if devices % node == 0:
            yield preset, replace(load_topology(f"{preset}:{devices // node}"), device=own.device)


def _under_leaves(topology: Topology) -> Topology:
    """The same nodes under leaf switches with fewer uplinks than ports below."""
    nodes = topology.levels[0]
    uplinks = replace(nodes.link, ports=LEAF * nodes.link.ports // OVERSUBSCRIBED)
    leaves = Level("leaf", nodes.size // LEAF, uplinks)
    return replace(topology, levels=(leaves, replace(nodes, size=LEAF), *topology.levels[1:]))


def _row(run: MeasuredRun, topology: Topology, efficiency: Efficiency) -> dict[str, Any] | None:
    """Seconds of the default placement and of the best; None where no matrix is the default."""
    training = run.training
    default = default_placement(topology, training.strategy)
    if default is None:
        return None
    columns = StrategyColumns.of((training.strategy,))
    done = work(training.model, training.batch, columns, topology.known_device, efficiency)
    every = [
        Placement(tuple(tuple(map(int, row)) for row in matrix))
        for matrix in matrices(topology.sizes, training.strategy.sizes)
    ]
    seconds = {one: _seconds(run, done, efficiency, topology, one) for one in every}
    best = min(seconds, key=lambda one: seconds[one])
    default_s, best_s = seconds[default], seconds[best]
    optimal = default_s <= best_s * (1 + LEAST)
    return {
        "placements": len(every),
        "default_s": rounded(default_s),
        "best_s": rounded(best_s),
        "gain": 0.0 if optimal else rounded(default_s / best_s - 1),
        "best": str([list(row) for row in (default if optimal else best).matrix]),
    }


def _seconds(
    run: MeasuredRun,
    done: StrategyWork,
    efficiency: Efficiency,
    topology: Topology,
    placement: Placement,
) -> float:
    model, batch, strategy = run.training.model, run.training.batch, run.training.strategy
    requests = axis_requests(model, batch, strategy, efficiency.framework)
    call_s = {one.name: call_seconds(topology, strategy, one, placement) for one in requests}
    return float(combine(done, call_s)[0])
