"""Errors by table: of the times that a fit saw, and of a table that it did not see.

A table is what one run measured: the rows of a file with one operation on groups of one shape.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from p2smt.calibration.samples import Sample, footprint_of, shape_of
from p2smt.cluster.error_class import MAX_ERROR, Basis, ErrorClass, kept_error
from p2smt.cluster.topology import Topology
from p2smt.cost.algorithms import Operation

Rows = tuple[int, ...]
Predictions = tuple[tuple[Sample, float], ...]
"""Samples with the seconds that are predicted for them."""
Again = Callable[[list[Sample], list[Sample]], "NDArray[np.float64] | None"]
"""Predicted times of the second samples by a fit to the first; None: it would say nothing."""

MOST_LEFT_OUT = 24
"""Tables that are left out in turn; of more, the first."""


@dataclass(frozen=True, slots=True)
class TableFit:
    """How well one table is met.

    Errors are medians of max(predicted / measured, measured / predicted) - 1 over all its times:
    1 is a factor of two either way.  ``left_out_error`` is that of a fit to the other tables;
    None where there is no such fit.  ``seen`` and ``unseen`` have what is predicted for each time,
    by the fit and by one that it was left out of.
    """

    source: str
    operation: Operation
    times: int
    median_error: float
    max_error: float
    left_out_error: float | None
    seen: Predictions
    unseen: Predictions = ()

    @property
    def judged_error(self) -> float:
        """What the fit is judged by: the larger of the two medians."""
        return max(self.median_error, self.left_out_error or 0.0)


def table_fits(
    samples: Sequence[Sample], predicted_s: Sequence[float], again: Again
) -> tuple[TableFit, ...]:
    """The errors of each table, in the order of their first rows."""
    tables = _tables(samples)
    return tuple(
        _table_fit(
            samples, predicted_s, rows, again if len(tables) > 1 and i < MOST_LEFT_OUT else None
        )
        for i, rows in enumerate(tables)
    )


def _tables(samples: Sequence[Sample]) -> list[Rows]:
    """The indices of the samples of each table."""
    found: dict[object, list[int]] = {}
    for i, sample in enumerate(samples):
        name, line, _ = sample.source.rpartition(":")
        place = (name, shape_of(sample))
        found.setdefault(place if line else sample.source, []).append(i)
    return [tuple(rows) for rows in found.values()]


def _table_fit(
    samples: Sequence[Sample], predicted_s: Sequence[float], rows: Rows, again: Again | None
) -> TableFit:
    mine = [samples[i] for i in rows]
    errors = _errors(mine, np.array([predicted_s[i] for i in rows]))
    unseen = None
    if again is not None:
        unseen = again([sample for i, sample in enumerate(samples) if i not in set(rows)], mine)
    left_out = None if unseen is None else float(np.median(_errors(mine, unseen)))
    name = mine[0].source.rpartition(":")[0] or mine[0].source
    return TableFit(
        name,
        mine[0].operation,
        len(mine),
        float(np.median(errors)),
        float(errors.max()),
        left_out,
        tuple(zip(mine, (float(predicted_s[i]) for i in rows), strict=True)),
        () if unseen is None else tuple(zip(mine, unseen.tolist(), strict=True)),
    )


LEAST_DISAGREEMENT = 0.1
"""Tables whose times differ by less are not said to disagree: runs do from day to day."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two tables of the same groups whose times differ by more than either is off by.

    ``difference`` is the median of max(t1 / t2, t2 / t1) - 1 over the ``sizes`` that both have.
    """

    first: TableFit
    second: TableFit
    difference: float
    sizes: int


def disagreements(tables: Sequence[TableFit]) -> Iterator[Disagreement]:
    """The pairs of tables that cannot both be of one cluster as it is, in their order."""
    for first, second in combinations(tables, 2):
        (one, _), (other, _) = first.seen[0], second.seen[0]
        if shape_of(one) != shape_of(other):
            continue
        times, others = _median_times(first), _median_times(second)
        both = sorted(times.keys() & others.keys())
        if not both:
            continue
        off = float(np.expm1(np.median([abs(math.log(times[n] / others[n])) for n in both])))
        if off > max(first.median_error, second.median_error, LEAST_DISAGREEMENT):
            yield Disagreement(first, second, off, len(both))


def _median_times(table: TableFit) -> dict[int, float]:
    """Of each payload the median time."""
    found: dict[int, list[float]] = defaultdict(list)
    for one, _ in table.seen:
        found[one.payload_bytes].append(one.seconds)
    return {size: float(np.median(times)) for size, times in found.items()}


def table_errors(
    topology: Topology, tables: Sequence[TableFit]
) -> tuple[tuple[str, ErrorClass], ...]:
    """What predictions are off by, by the outermost level that the groups cross."""
    seen, unseen = (
        _by_level(topology, [(one, abs(s / one.seconds - 1)) for one, s in found])
        for found in (
            [one for table in tables for one in table.seen],
            [one for table in tables for one in table.unseen],
        )
    )
    return tuple(
        (topology.names[level], one)
        for level, operation in sorted(seen)
        for one in error_classes(operation, seen[level, operation], unseen[level, operation])
    )


def _by_level(
    topology: Topology, errors: Sequence[tuple[Sample, float]]
) -> dict[tuple[int, str], list[tuple[int, float]]]:
    """Payloads and errors by the outermost level that the groups cross, and by operation."""
    levels = {place: _level(topology, place) for place in {shape_of(one) for one, _ in errors}}
    found: dict[tuple[int, str], list[tuple[int, float]]] = defaultdict(list)
    for one, error in errors:
        found[levels[shape_of(one)], one.operation.value].append((one.payload_bytes, error))
    return found


def _level(topology: Topology, place: Sample) -> int:
    """Index of the outermost level that a sample's groups cross."""
    profile = max(footprint_of(place.cluster(topology), place.grouping, place.operation).profiles)
    return next(j for j, entities in enumerate(profile) if entities > 1)


def _errors(samples: Sequence[Sample], predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    off = np.abs(np.log(predicted / np.array([sample.seconds for sample in samples])))
    return np.asarray(np.expm1(off))


# Classes of errors: what measured payloads say of those between them.


BOUNDS = (0, 2**16, 2**20, 2**26, 2**62)
"""Classes of payloads: above one bound, up to the next."""
OPEN_FROM = 2**26
"""A measurement this large says what larger payloads take: bandwidth alone decides."""

Errors = Sequence[tuple[int, float]]
"""Payloads in bytes, with abs(predicted / measured - 1)."""


def error_classes(operation: str, seen: Errors, unseen: Errors) -> Iterator[ErrorClass]:
    """The classes of an operation, smallest first, from where to where it was measured.

    Of each, the error is the larger of what measurements keep to that the constants were fitted to
    (``seen``), and of those that a fit without them predicted (``unseen``).
    """
    sizes = sorted({size for size, _ in (*seen, *unseen)})
    for above, most in pairwise(BOUNDS):
        here = [size for size in sizes if above < size <= most]
        if here:
            error, basis = max(_kept(seen, here), _kept(unseen, here, Basis.LEFT_OUT), key=_first)
            first = above if any(size <= above for size in sizes) else here[0]
            yield ErrorClass(operation, error, basis, first, _last(sizes, here[-1], most))


def _first(found: tuple[float, Basis]) -> float:
    return found[0]


def _kept(
    errors: Errors, sizes: Sequence[int], basis: Basis = Basis.IN_SAMPLE
) -> tuple[float, Basis]:
    """What errors at these sizes keep to, to two digits; below all where there is none."""
    found = [error for size, error in errors if size in sizes]
    return (float(f"{min(kept_error(found), MAX_ERROR):.2g}") if found else -1.0, basis)


def _last(sizes: Sequence[int], largest: int, most: int) -> int | None:
    """Where a class ends whose largest payload is given: at the next one, or where nothing is."""
    if sizes[-1] > most:
        return most
    return None if largest >= OPEN_FROM else largest
