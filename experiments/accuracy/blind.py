"""Blind: every table predicted from constants that no table of its system was fitted to.

A system is left out whole, so what is its own alone (a network that no other has) is where the
search of a fit starts: what its sources say, or a guess.  This is how far off the prices of a
system are that nobody measured.  Ratios here are measured / predicted, so that a predicted time
times a ratio is a time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from experiments.accuracy.cells import Cell, cells_of
from experiments.accuracy.error_classes import system_of
from experiments.accuracy.fitting.constants import (
    HERE,
    committed,
    fitted_library,
    fitted_topology,
)
from experiments.accuracy.launches import launched
from experiments.accuracy.summary import Result
from experiments.accuracy.systems import has_preset, topology_name, topology_of
from experiments.tables.tables import Published, tables
from p2smt.cost.accuracy import BLIND as ACCURACY_KEY

BLIND = HERE / "constants_blind.json"
"""By the name of a system the constants that matter to it, fitted without it."""
QUANTILES = (0.1, 0.5, 0.9)
ANY = "*"
SIZE_CLASSES = (
    ("below 64 KiB", 2**16),
    ("to 1 MiB", 2**20),
    ("to 64 MiB", 2**26),
    ("above", 2**63),
)
"""Classes of payloads by name, each with the bytes below which its payloads are."""


def size_class(size_bytes: int) -> str:
    """The class of a payload."""
    return next(name for name, least in SIZE_CLASSES if size_bytes < least)


def systems() -> dict[str, list[Published]]:
    """The tables of each system that has a preset."""
    found: dict[str, list[Published]] = defaultdict(list)
    for table in tables().values():
        if has_preset(table):
            found[table.system].append(table)
    return dict(found)


def blind_results() -> list[Result]:
    """Every table as in :func:`.accuracy.results`, by constants that have not seen its system."""
    unseen = json.loads(BLIND.read_text(encoding="utf-8"))
    found = []
    for number, (system, mine) in enumerate(systems().items()):
        constants = {**committed(), **unseen.get(system, {})}
        for table in mine:
            start = topology_of(table, profile=False)
            library = start.known_library
            other = fitted_library(library, constants, f"{library.name}-blind-{number}")
            topology = fitted_topology(start, constants).under(other)
            cells = cells_of(table, launched(topology, table, constants))
            found.append(Result(table, topology_name(table, profile=False), library.name, cells))
    return found


@dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles (10, 50 and 90 %) of measured / predicted over ``count`` cells."""

    count: int
    low: float
    median: float
    high: float


def spread(ratios: Sequence[float]) -> Spread:
    """The quantiles of some ratios, those between two of them in the log."""
    found = np.exp(np.quantile(np.log(ratios), QUANTILES))
    return Spread(len(ratios), *(float(f"{value:.3g}") for value in found))


Keyed = Iterable[tuple[tuple[str, ...], Cell]]


def spreads(keyed: Keyed) -> Iterator[tuple[tuple[str, ...], Spread]]:
    """The spread of the cells of every key and class of sizes, in the order of the keys."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, cell in keyed:
        found[key][size_class(cell.size_bytes)].append(1 / cell.ratio)
    for key in sorted(found):
        for name, _ in SIZE_CLASSES:
            if name in found[key]:
                yield (*key, name), spread(found[key][name])


FITTED, LIKE, ASSUMED = "fitted", "like", "assumed"
"""Whether tables of a system were fitted, or of one with the same fabrics, or of none."""


def blind_rows(results: Sequence[Result]) -> Iterator[dict[str, object]]:
    """The rows of ``accuracy.yaml``: first those of systems, then of any other (``*``)."""
    keyed = [
        ((system_of(one.table), one.library, FITTED, one.table.collective), cell)
        for one in results
        for cell in one.cells
    ]
    every = [
        ((ANY, library, ASSUMED, collective), cell)
        for (_, its_library, _, its_collective), cell in keyed
        for library in (its_library, ANY)
        for collective in (its_collective, ANY)
    ]
    keys = ("system", "library", "basis", "collective", "size_class")
    for key, found in (*spreads(keyed), *spreads(every)):
        yield {**dict(zip(keys, key, strict=True)), **asdict(found)}


def blind_text(results: Sequence[Result]) -> str:
    """The part of ``accuracy.yaml`` that has these rows, a line each."""
    lines = (
        ", ".join(f"{key}: {_quoted(value)}" for key, value in row.items())
        for row in blind_rows(results)
    )
    return f"{ACCURACY_KEY}:\n" + "".join(f"  - {{{line}}}\n" for line in lines)


def _quoted(value: object) -> str:
    return f'"{value}"' if value == ANY or "," in str(value) else str(value)
