"""How far a set of constants is from the tables, and the search for a better one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from experiments.accuracy.cells import Floats, footprint_of, operation_of
from experiments.accuracy.fitting.constants import NCCL, RCCL, fitted_library, fitted_topology
from experiments.accuracy.launches import launched
from experiments.accuracy.systems import topology_of
from experiments.tables.tables import Published
from p2smt.cluster.library.model import Library
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import step_model
from p2smt.cost.loads.level_use import Footprint

FAR = math.log(2.2)
"""Log of a factor from which a cell counts three times."""
FEW_ROWS = 30
"""Rows from which a table counts whole: one row of a page says less than a table of thirty."""
PRIOR, PRIORS = 0.02, {"times": 0.15, "efficiency": 0.3, "pace": 0.5}
"""Weights of a constant's distance from where the search starts, by its kind: what no table tells
stays, and what a library's own source says of its steps counts for more than what is guessed."""
STEPS = (0.3, 0.15, 0.08, 0.04, 0.02, 0.02)
"""Steps of the search in the log of a constant."""
TRIAL = 0.93
"""How far a constant is moved to see which tables it matters to."""
_numbers = count()
Direction = Mapping[str, float]
"""Constants that move together: by a factor, to these powers."""


@dataclass(slots=True)
class Losses:
    """The tables, and the loss of each under some constants."""

    tables: Mapping[str, Published]
    _topologies: dict[str, Topology] = field(default_factory=dict)
    _footprints: dict[str, Footprint] = field(default_factory=dict)
    _picks: dict[str, list[int]] = field(default_factory=dict)

    def of(
        self, constants: Mapping[str, float], names: Iterable[str] | None = None
    ) -> dict[str, float]:
        """The loss of each table (or of those named), by name."""
        libraries = {}
        for name in (*NCCL, *RCCL):
            found = fitted_library(library_of(name), constants, f"fit-{next(_numbers)}")
            libraries[name] = found
        return {
            name: self._loss(self.tables[name], constants, libraries)
            for name in (self.tables if names is None else names)
        }

    def _loss(
        self, table: Published, constants: Mapping[str, float], libraries: Mapping[str, Library]
    ) -> float:
        """Mean and half the median of abs(log(predicted / measured)), and more for far cells."""
        if table.name not in self._topologies:
            self._topologies[table.name] = topology_of(table)
        start = self._topologies[table.name]
        topology = fitted_topology(start, constants).under(libraries[start.library_name])
        topology = launched(topology, table, constants)
        kind = RequestKind(table.collective)
        if table.name not in self._footprints:
            self._footprints[table.name] = footprint_of(start, table.ranks, kind)
        model = step_model(topology, self._footprints[table.name], operation_of(kind))
        if table.name not in self._picks:  # no constant here changes what a library chooses
            chooser = model.chooser
            assert chooser is not None
            self._picks[table.name] = [chooser.pick(size) for size, _ in table.rows]
        picked = zip(self._picks[table.name], table.rows, strict=True)
        logs = np.log([model.ways[i].seconds(size) / real for i, (size, real) in picked])
        return loss_of(logs) * min(1.0, len(table.rows) / FEW_ROWS)


def loss_of(logs: Floats) -> float:
    """The loss of cells whose log(predicted / measured) is known: as much for too long as for too
    short, or the constants lie to one side."""
    off = np.abs(logs)
    return float(off.mean() + 0.5 * np.median(off) + 2 * np.clip(off - FAR, 0, None).mean())


def fitted(
    start: Mapping[str, float],
    losses: Losses,
    say: Callable[[str], None] = lambda _: None,
    names: Iterable[str] | None = None,
) -> dict[str, float]:
    """Constants of less loss, one direction after the other, by smaller and smaller steps.

    ``names``: only these move.
    """
    current, moving = dict(start), list(start if names is None else names)
    known = losses.of(current)
    for step in STEPS:
        for along in directions(moving):
            _improve(along, step, start, current, known, losses)
        say(f"step {step:g}: {sum(known.values()):.4f}")
    return {name: float(f"{value:.3g}") for name, value in current.items()}


def directions(names: Sequence[str]) -> Iterator[Direction]:
    """Each constant alone, and what spanning nodes costs a call against what it costs a step.

    Two nodes alone hardly tell these two apart: one search after the other would stay in between.
    """
    for name in names:
        yield {name: 1.0}
    for name in names:
        other = name.replace("across", "driver", 1)
        if other != name and other in names:
            yield from ({name: 1.0, other: -1.0}, {name: 2.0, other: -1.0})


def concerned(constants: Mapping[str, float], losses: Losses) -> list[str]:
    """The constants that matter to any of the tables."""
    known = losses.of(constants)
    return [
        name
        for name, value in constants.items()
        if losses.of({**constants, name: value * TRIAL}) != known
    ]


def _improve(
    along: Direction,
    step: float,
    start: Mapping[str, float],
    current: dict[str, float],
    known: dict[str, float],
    losses: Losses,
) -> None:
    """Move constants as long as that is better; ``current`` and ``known`` change."""
    moved = losses.of({**current, **_moved(current, along, TRIAL)})
    told = [one for one in moved if abs(moved[one] - known[one]) > 1e-12]
    if not told:
        return
    least = sum(known[one] for one in told) + _prior({n: current[n] for n in along}, start)
    for factor in (math.exp(step), math.exp(-step)):
        while True:
            values = _moved(current, along, factor)
            if not all(_possible(name, value) for name, value in values.items()):
                break
            found = losses.of({**current, **values}, told)
            total = sum(found.values()) + _prior(values, start)
            if total >= least - 1e-6:
                break
            current.update(values)
            least = total
            known.update(found)


def _possible(name: str, value: float) -> bool:
    return value >= 1 if name == "pace" else value <= 1 or not name.startswith("efficiency")


def _moved(constants: Mapping[str, float], along: Direction, factor: float) -> dict[str, float]:
    return {name: constants[name] * factor**power for name, power in along.items()}


def _prior(values: Mapping[str, float], start: Mapping[str, float]) -> float:
    return sum(
        PRIORS.get(name.partition(" ")[0], PRIOR) * math.log(value / start[name]) ** 2
        for name, value in values.items()
    )
