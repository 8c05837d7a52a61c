"""How far a set of constants is from the tables, and the search for a better one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from experiments.accuracy.cells import Floats, step_model_of
from experiments.accuracy.constants import NCCL, RCCL, fitted_library, fitted_topology
from experiments.accuracy.systems import topology_of
from experiments.tables.tables import Published
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.library.registry import library_of, register_library

FAR = math.log(2.2)
"""Log of a factor from which a cell counts three times."""
TWO_NODES, TOO_LONG = math.log(1.22), 10
"""Log of predicted / measured on two nodes from which a cell counts more, and so many times."""
PRIOR, PRIOR_EFFICIENCY = 0.02, 0.3
"""Weights of a constant's distance from where the search starts: what no table tells stays."""
STEPS = (0.3, 0.15, 0.08, 0.04, 0.02, 0.02)
"""Steps of the search in the log of a constant."""
TRIAL = 0.93
"""How far a constant is moved to see which tables it matters to."""
_numbers = count()


@dataclass(slots=True)
class Losses:
    """The tables, and the loss of each under some constants."""

    tables: Mapping[str, Published]
    _topologies: dict[str, Topology] = field(default_factory=dict)
    _picks: dict[str, list[int]] = field(default_factory=dict)

    def of(
        self, constants: Mapping[str, float], names: Iterable[str] | None = None
    ) -> dict[str, float]:
        """The loss of each table (or of those named), by name."""
        libraries = {}
        for name in (*NCCL, *RCCL):
            found = fitted_library(library_of(name), constants, f"fit-{next(_numbers)}")
            register_library(found)
            libraries[name] = found.name
        return {
            name: self._loss(self.tables[name], constants, libraries)
            for name in (self.tables if names is None else names)
        }

    def _loss(
        self, table: Published, constants: Mapping[str, float], libraries: Mapping[str, str]
    ) -> float:
        """Mean and half the median of abs(log(predicted / measured)), and more for far cells."""
        if table.name not in self._topologies:
            self._topologies[table.name] = topology_of(table)
        start = self._topologies[table.name]
        topology = fitted_topology(start, constants).under(libraries[start.library])
        model = step_model_of(topology, table.ranks, RequestKind(table.collective))
        if table.name not in self._picks:  # no constant here changes what a library chooses
            chooser = model.chooser
            assert chooser is not None
            self._picks[table.name] = [chooser.pick(size) for size, _ in table.rows]
        picked = zip(self._picks[table.name], table.rows, strict=True)
        logs = np.log([model.ways[i].seconds(size) / real for i, (size, real) in picked])
        return loss_of(logs, two_nodes=table.nodes == 2)


def loss_of(logs: Floats, *, two_nodes: bool) -> float:
    """The loss of cells whose log(predicted / measured) is known."""
    off = np.abs(logs)
    found = off.mean() + 0.5 * np.median(off) + 2 * np.clip(off - FAR, 0, None).mean()
    if two_nodes:
        found += TOO_LONG * np.clip(logs - TWO_NODES, 0, None).mean()
    return float(found)


def fitted(
    start: Mapping[str, float],
    losses: Losses,
    say: Callable[[str], None] = lambda _: None,
    names: Iterable[str] | None = None,
) -> dict[str, float]:
    """Constants of less loss, one after the other, by smaller and smaller steps.

    ``names``: only these move.
    """
    current, moving = dict(start), list(start if names is None else names)
    known = losses.of(current)
    for step in STEPS:
        for name in moving:
            _improve(name, step, start, current, known, losses)
        say(f"step {step:g}: {sum(known.values()):.4f}")
    return {name: float(f"{value:.3g}") for name, value in current.items()}


def concerned(constants: Mapping[str, float], losses: Losses) -> list[str]:
    """The constants that matter to any of the tables."""
    known = losses.of(constants)
    return [
        name
        for name, value in constants.items()
        if losses.of({**constants, name: value * TRIAL}) != known
    ]


def _improve(
    name: str,
    step: float,
    start: Mapping[str, float],
    current: dict[str, float],
    known: dict[str, float],
    losses: Losses,
) -> None:
    """Move one constant as long as that is better; ``current`` and ``known`` change."""
    moved = losses.of({**current, name: current[name] * TRIAL})
    told = [one for one in moved if abs(moved[one] - known[one]) > 1e-12]
    if not told:
        return
    least = sum(known[one] for one in told) + _prior(name, current[name], start)
    for factor in (math.exp(step), math.exp(-step)):
        while True:
            value = current[name] * factor
            if name.startswith("efficiency") and value > 1:
                break
            found = losses.of({**current, name: value}, told)
            total = sum(found.values()) + _prior(name, value, start)
            if total >= least - 1e-6:
                break
            current[name], least = value, total
            known.update(found)


def _prior(name: str, value: float, start: Mapping[str, float]) -> float:
    weight = PRIOR_EFFICIENCY if name.startswith("efficiency") else PRIOR
    return weight * math.log(value / start[name]) ** 2
