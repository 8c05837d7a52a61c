"""Whether the model finds the best strategy of a sweep, beside rules of thumb and chance."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.training_runs.fitting import errors, flops_s
from experiments.training_runs.store import rounded
from p2smt.cluster.topology import Topology
from p2smt.training.efficiencies.frameworks import topology_of
from p2smt.training.efficiency import Efficiency
from p2smt.training.iteration import predict
from p2smt.training.measured.efficiency_fit import (
    kendall_tau,
    place_of_best,
    ranked,
    regret,
    step_s,
)
from p2smt.training.measured.measured_runs import MeasuredRun
from p2smt.training.strategy import Strategy

SHUFFLES, SEED = 2000, 16
TOP = 3
PORTS = 4
"""Ports of a node by vTrain's configuration files (200 Gb/s each); a DGX A100 has 8."""

_RULES: Mapping[str, Callable[[Strategy], tuple[int, ...]]] = {
    "rule: mbs, tp, pp small": lambda one: (one.micro_batch, one.tp, one.pp),
    "rule: tp * pp small, mbs large": lambda one: (one.tp * one.pp, -one.micro_batch),
}


def ranking_rows(
    runs: Sequence[MeasuredRun], efficiency: Efficiency
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """For each sweep how each way to choose does; and how shuffled times do."""
    sweeps: dict[str, list[MeasuredRun]] = {}
    for run in runs:
        if run.sweep:
            sweeps.setdefault(run.sweep, []).append(run)
    rows = [row for name, sweep in sweeps.items() for row in _ways(name, sweep, efficiency)]
    chance = [_shuffled(name, sweep, efficiency) for name, sweep in sweeps.items()]
    return rows, chance


def sweep_rows(runs: Sequence[MeasuredRun], efficiency: Efficiency) -> list[dict[str, Any]]:
    """Every run of the sweeps in the order of measured times, with its predictions."""
    found = [
        {
            "sweep": run.sweep,
            "strategy": _strategy_text(run.training.strategy),
            "measured_s": run.step_s,
            "predicted_s": rounded(step_s(run, efficiency)),
            "four_ports_s": rounded(_on_four_ports(run, efficiency)),
        }
        for run in runs
        if run.sweep
    ]
    return sorted(found, key=lambda row: (row["sweep"], row["measured_s"]))


def _ways(name: str, sweep: Sequence[MeasuredRun], efficiency: Efficiency) -> list[dict[str, Any]]:
    measured = [run.step_s for run in sweep]
    model = [step_s(run, efficiency) for run in sweep]
    ports = [_on_four_ports(run, efficiency) for run in sweep]
    plain = [flops_s(run, efficiency) for run in sweep]
    found = [
        _row(name, "model", measured, model, timed=True),
        _row(name, f"model, {PORTS} ports a node", measured, ports, timed=True),
        _row(name, "6 operations a parameter and token", measured, plain, timed=True),
    ]
    for way, rule in _RULES.items():
        keys = [rule(run.training.strategy) for run in sweep]
        order = sorted(set(keys))
        found.append(_row(name, way, measured, [float(order.index(key)) for key in keys]))
    return found


def _row(
    name: str, way: str, measured: Sequence[float], scores: Sequence[float], timed: bool = False
) -> dict[str, Any]:
    """Ties are told by the worst that may be chosen among the first."""
    wary = _worst_first(measured, scores)
    own = errors([b / a - 1 for a, b in zip(measured, scores, strict=True)]) if timed else {}
    return {
        "sweep": name,
        "way": way,
        "runs": len(measured),
        "tau": rounded(kendall_tau(measured, scores)),
        "regret": rounded(regret(measured, wary)),
        "top_regret": rounded(regret(measured, wary, TOP)),
        "place": place_of_best(measured, wary),
        **own,
    }


def _worst_first(measured: Sequence[float], scores: Sequence[float]) -> list[float]:
    """Scores without ties: of equal ones the run that took longest comes first."""
    order = sorted(range(len(scores)), key=lambda i: (scores[i], -measured[i]))
    places = ranked([float(place) for place in order])
    return [float(place) for place in places]


def _shuffled(name: str, sweep: Sequence[MeasuredRun], efficiency: Efficiency) -> dict[str, Any]:
    """Tau of the model against measured times in random order: what chance gives."""
    source = random.Random(SEED)
    model = [step_s(run, efficiency) for run in sweep]
    measured = [run.step_s for run in sweep]
    own = kendall_tau(measured, model)
    taus = []
    for _ in range(SHUFFLES):
        source.shuffle(measured)
        taus.append(kendall_tau(measured, model))
    return {
        "sweep": name,
        "tau": rounded(own),
        "shuffles": SHUFFLES,
        "mean": round(sum(taus) / len(taus), 3),
        "below": rounded(sorted(taus)[int(0.95 * len(taus))]),
        "as_good": sum(tau >= own for tau in taus),
    }


def _on_four_ports(run: MeasuredRun, efficiency: Efficiency) -> float:
    topology = topology_of(run.hardware, run.training.strategy.devices)
    return predict(run.training, _with_ports(topology), efficiency).time.iteration_s


def _with_ports(topology: Topology) -> Topology:
    outer = topology.levels[0]
    outer = replace(outer, link=replace(outer.link, ports=PORTS))
    return replace(topology, levels=(outer, *topology.levels[1:]))


def _strategy_text(strategy: Strategy) -> str:
    return f"tp={strategy.tp} pp={strategy.pp} dp={strategy.dp} mbs={strategy.micro_batch}"
