"""What speaks against a calibration: tables badly met or short, and rates far too low."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p2smt.calibration.build import Calibration
from p2smt.calibration.effective.constants import Quantity
from p2smt.calibration.effective.fit import FittedConstant
from p2smt.calibration.tables import TableFit

DOUBTFUL, USELESS = 0.25, 1.0
"""Errors above which a calibration is warned of, and is none."""
FEW_SIZES = 4
"""A table of fewer message sizes is warned of."""
IMPLAUSIBLE = 0.5
"""A rate below this part of what the topology had is warned of: such links would be others."""


def useless(tables: Sequence[TableFit]) -> bool:
    """Whether a table is off by more than a factor of two."""
    return max((table.judged_error for table in tables), default=0.0) > USELESS


def doubts(calibration: Calibration) -> Iterator[str]:
    """A line about each table that is met badly, the worst first, or is short, and about each
    implausible rate."""
    for table in sorted(calibration.tables, key=lambda table: -table.judged_error):
        if table.judged_error > DOUBTFUL:
            yield _table(table)
    yield from _few_sizes(calibration.tables)
    for found in calibration.constants:
        rate = found.constant.quantity is Quantity.EFFICIENCY
        if rate and found.fitted and found.value < IMPLAUSIBLE * found.before:
            yield _rate(calibration, found)


def _table(table: TableFit) -> str:
    seen = table.judged_error == table.median_error
    how = "in the fit" if seen else "left out of the fit"
    error = f"{100 * table.judged_error:.0f} %"
    return f"{table.source}, {table.operation.value}: {how}, predicted {error} off (median)"


def _few_sizes(tables: Sequence[TableFit]) -> Iterator[str]:
    for table in tables:
        sizes = len({sample.payload_bytes for sample, _ in table.seen})
        if sizes < FEW_SIZES:
            yield (
                f"{table.source}, {table.operation.value}: {sizes} message size{'s' * (sizes > 1)} "
                "tell a rate and a latency badly apart: measure more"
            )


def _rate(calibration: Calibration, found: FittedConstant) -> str:
    topology, constant = calibration.topology, found.constant
    level = topology.names[constant.level or 0]
    value, before = (f"{100 * part:.3g} %" for part in (found.value, found.before))
    return (
        f"level {level}, efficiency of {constant.name}: fitted {value}, less than "
        f"half of the {before} of {topology.name}: measured on another machine, "
        f"or with another library than {topology.library}?"
    )
