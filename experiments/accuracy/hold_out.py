"""Tables left out: calibrated on some tables of a system, how well is another predicted?

A system with several tables is calibrated without the largest one, and the reverse, from a preset
whose constants were fitted without that table too.  Every system is also calibrated on all its
tables, which says how well the model's structure can fit them (*in sample*).  Errors are
abs(predicted / measured - 1), outliers stay in.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from experiments.accuracy.cells import operation_of, predictor
from experiments.accuracy.fitting.constants import (
    committed_without,
    fitted_library,
    fitted_topology,
)
from experiments.accuracy.systems import has_preset, library_of_version, topology_of
from experiments.tables.tables import Published, tables
from p2smt.calibration.build import calibrate
from p2smt.calibration.samples import Sample
from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.programs.program import Grouping
from p2smt.report.progress import counted

LARGER_TARGET, WORST_TARGET, IN_SAMPLE_TARGET = 0.20, 0.30, 0.08
LARGER, SMALLER, IN_SAMPLE, ONE_TABLE = "larger", "smaller", "in sample", "in sample, one table"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The errors of one table after a calibration on ``seen``.

    ``what`` says whether it was left out as the larger or the smaller, or was in the sample.
    ``ratios``: each size of the table in bytes, with measured over predicted.
    """

    topology: str
    seen: tuple[str, ...]
    predicted: str
    what: str
    median: float
    largest: float
    ratios: tuple[tuple[int, float], ...] = ()

    @property
    def target(self) -> float | None:
        """Most that the median may be; None where it is only reported."""
        return {LARGER: WORST_TARGET, IN_SAMPLE: IN_SAMPLE_TARGET}.get(self.what)

    def as_data(self) -> dict[str, object]:
        """Its entry of ``results.json``."""
        errors = {"median": float(f"{self.median:.3g}"), "largest": float(f"{self.largest:.3g}")}
        names = {"topology": self.topology, "seen": self.seen, "predicted": self.predicted}
        return {**names, "what": self.what, **errors}

    def as_row(self) -> tuple[str, ...]:
        """Its row of the page."""
        met = "" if self.target is None else "yes" if self.median <= self.target else "**no**"
        errors = (f"{100 * value:.1f} %" for value in (self.median, self.largest))
        return (self.topology, ", ".join(self.seen), self.predicted, self.what, *errors, met)


@dataclass(frozen=True, slots=True)
class Family:
    """Tables of one system (and of one like its node), smallest first, on one topology."""

    topology: str
    names: tuple[str, ...]


FAMILIES = (
    Family("aws-p5:2", ("aws-p5-1x8", "aws-p5-2x8")),
    Family(
        "dgx-h100:4",
        (
            "aws-p5-1x8",
            "dell-xe9680-h100-8xNDR400-2x8",
            "dell-xe9680-h100-8xNDR400-4x8",
        ),
    ),
    Family("gcp-a4:2", ("gcp-a4-1x8", "gcp-a4-2x8")),
    *(
        Family("dgx-b200:2", (f"b200-vultr-1x8-{name}", f"b200-vultr-2x8-{name}"))
        for name in ("all-gather", "reduce-scatter", "all-to-all")
    ),
    Family("mi300x:2", ("mi300x-1x8", "mi300x-2x8")),
    Family("gb300-nvl72:1", ("gb300-1x4", "gb300-2x4")),
    Family("gb300-nvl72:1", ("gb300-1x4-all-to-all", "gb300-2x4-all-to-all")),
)


LEFT_OUT = tuple(name for family in FAMILIES for name in family.names[-2:])
"""The tables that are predicted unseen: the largest and the second largest of each family."""


def not_having_seen(table: str, topology: Topology) -> Topology:
    """A topology whose constants, and its library's, were fitted without a table."""
    constants = committed_without(table)
    library = topology.known_library
    other = fitted_library(library, constants, f"{library.name}-{LEFT_OUT.index(table)}")
    return fitted_topology(topology, constants).under(other)


def held_out() -> list[HeldOut]:
    """Every calibration with what it left out, then those in sample."""
    known = {name: table for name, table in tables().items() if has_preset(table)}
    found = [
        one
        for family in counted(FAMILIES, "calibrations")
        if set(family.names) <= set(known)
        for one in _family(family, known)
    ]
    in_families = {name for family in FAMILIES for name in family.names}
    alone = [
        table for name, table in known.items() if name not in in_families and len(table.rows) > 1
    ]
    return [*found, *(one for table in alone for one in _alone(table))]


def larger_median(found: Sequence[HeldOut]) -> float:
    """The median over the larger tables left out of their median errors."""
    return statistics.median(one.median for one in found if one.what == LARGER)


def _family(family: Family, known: dict[str, Published]) -> Iterator[HeldOut]:
    every = [known[name] for name in family.names]
    start = cut(_with_library(load_topology(family.topology), every), every)
    for what, out in ((LARGER, every[-1]), (SMALLER, every[-2])):
        seen = [table for table in every if table is not out]
        yield from _errors(not_having_seen(out.name, start), seen, [out], what)
    yield from _errors(start, every, every, IN_SAMPLE)


def _alone(table: Published) -> Iterator[HeldOut]:
    start = cut(topology_of(table, profile=False), [table])
    yield from _errors(start, [table], [table], ONE_TABLE)


def _with_library(topology: Topology, every: Sequence[Published]) -> Topology:
    """The preset with the library of the version that a table names, if one does."""
    named = [library_of_version(table.library) for table in every]
    return next((topology.under(name) for name in named if name), topology)


def cut(topology: Topology, every: Sequence[Published]) -> Topology:
    """A rack of which only some GPUs were measured, as the GPUs that were: one level of them."""
    most = max(table.ranks for table in every)
    if topology.sizes[0] > 1 or most == topology.devices:
        return topology
    return replace(topology, levels=(replace(topology.levels[-1], size=most),))


def _errors(
    start: Topology, seen: Sequence[Published], asked: Sequence[Published], what: str
) -> Iterator[HeldOut]:
    fitted = calibrated(start, [sample for table in seen for sample in samples_of(table, start)])
    for table in asked:
        predict = predictor(fitted, table.ranks, RequestKind(table.collective))
        ratios = tuple((n, seconds / predict(n).seconds) for n, seconds in table.rows)
        errors = [abs(1 / ratio - 1) for _, ratio in ratios]
        median, most = statistics.median(errors), max(errors)
        names = tuple(one.name for one in seen)
        yield HeldOut(start.name, names, table.name, what, median, most, ratios)


def calibrated(topology: Topology, samples: Sequence[Sample]) -> Topology:
    """The topology fitted to some samples, as ``p2smt calibrate --allow-above-nominal`` does."""
    return calibrate(topology, samples, allow_above_nominal=True).topology


def samples_of(table: Published, topology: Topology) -> list[Sample]:
    """The rows of a table as measurements of a topology."""
    levels = sum(size > 1 for size in topology.sizes)
    inside = topology.sizes[0] > 1 and table.ranks <= topology.devices_under(0)
    where = Grouping(1, levels) if inside else Grouping(0, levels)
    entities = None if inside else max(1, table.ranks // topology.devices_under(0))
    operation = operation_of(RequestKind(table.collective))
    return [
        Sample(operation, where, *row, outermost=entities, source=table.name) for row in table.rows
    ]
