"""How far off an iteration may be: errors on what was left out of the fit, with those of links.

The file beside this one has the relative errors of measured runs where their model was left out of
the fit of an efficiency, and where their device was: by the constants that would then be taken.
What is said of a run that is not among them is what holds of groups that were left out, as of any
group that is exchangeable with them: four of five runs of four of five groups lie within it (split
conformal prediction over groups, arXiv 1904.06019).
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cache
from importlib.resources import files

import numpy as np

from p2smt.cost.accuracy import FIRMEST_FIRST, PriceBasis, PriceRange
from p2smt.training.efficiencies.efficiency_files import (
    packaged_efficiencies,
    same_chip,
    same_device,
)
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.iteration import EstimateRange
from p2smt.training.measured.measured_runs import runs_beside
from p2smt.training.prediction import RunEstimate

FOLDER, FILE = "p2smt.training.measured", "left_out.csv"
MODEL, DEVICE = "model", "device"
SHARE = 0.8
"""The part of runs, and of groups, that a range is to hold: as of a price, four of five."""


@dataclass(frozen=True, slots=True)
class LeftOutRun:
    """A run whose model, or whose device (``kind``), was left out.

    ``efficiency`` was fitted without it; ``group``: the model or the device.  ``error``: predicted
    / measured - 1; ``operations``: the same by a plain count of operations at one utilisation.
    """

    kind: str
    efficiency: str
    group: str
    run: str
    error: float
    operations: float

    @property
    def off(self) -> float:
        """The error as a distance of logarithms, the same to both sides."""
        return abs(math.log1p(self.error))


def left_out_text(rows: Sequence[LeftOutRun]) -> str:
    """The file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(one.name for one in fields(LeftOutRun))
    writer.writerows(astuple(row) for row in rows)
    return out.getvalue()


@cache
def left_out_rows() -> tuple[LeftOutRun, ...]:
    """The rows of the file."""
    lines = csv.DictReader(io.StringIO(files(FOLDER).joinpath(FILE).read_text(encoding="utf-8")))
    return tuple(
        LeftOutRun(
            *(row["kind"], row["efficiency"], row["group"], row["run"]),
            *(float(row["error"]), float(row["operations"])),
        )
        for row in lines
    )


def rows_of(efficiency: Efficiency) -> tuple[LeftOutRun, ...]:
    """The runs that an efficiency was fitted to, each with its model left out; of others none.

    One's own fit may have the name of one that comes with the package: these are not its runs.
    """
    known = packaged_efficiencies().get(efficiency.name)
    if known is None or (known.fraction, known.runs) != (efficiency.fraction, efficiency.runs):
        return ()
    mine = (one for one in left_out_rows() if one.kind == MODEL)
    return tuple(one for one in mine if one.efficiency == efficiency.name)


def errors_by_run(efficiency: Efficiency) -> dict[str, float]:
    """The same errors by the runs' ids."""
    return {one.run: one.error for one in rows_of(efficiency)}


def spread(offs: Iterable[tuple[str, float]]) -> float:
    """What four of five runs of four of five groups are off by at most, of (group, off).

    Of n groups, the one at place ceil(0.8 (n + 1)) of their own shares; the last at most.
    """
    groups: dict[str, list[float]] = {}
    for group, off in offs:
        groups.setdefault(group, []).append(off)
    each = sorted(float(np.quantile(found, SHARE)) for found in groups.values())
    return each[min(len(each), math.ceil(SHARE * (len(each) + 1))) - 1]


@dataclass(frozen=True, slots=True)
class FitError:
    """How far off times by some constants may be: a factor of exp(``spread``) to both sides."""

    spread: float
    basis: PriceBasis
    why: str


def fit_error(efficiency: Efficiency, device: str, run: TrainingRun | None = None) -> FitError:
    """How far off the constants of an efficiency may be on a device, for a run.

    Those of dense models say as little of a mixture as those of another device; so do those of runs
    that all sharded less by ZeRO: what it then fetches may be hidden, or not.
    """
    if not efficiency.runs:
        return FitError(_of_devices(), PriceBasis.ASSUMED, "constants fitted to no run")
    own = _of_models(efficiency)
    plural = "s" * (efficiency.runs != 1)
    why = f"constants of {efficiency.runs} run{plural} on {efficiency.device}"
    if run is not None and rows_of(efficiency) and (lacks := _lacking(run, efficiency)):
        return FitError(max(own, _of_devices()), PriceBasis.ASSUMED, f"{why}, none {lacks}")
    if same_device(device, efficiency.device):
        return FitError(own, PriceBasis.FITTED, why)
    basis = PriceBasis.LIKE if same_chip(device, efficiency.device) else PriceBasis.ASSUMED
    return FitError(max(own, _of_devices()), basis, f"constants are of {efficiency.device}")


def _lacking(run: TrainingRun, efficiency: Efficiency) -> str:
    """What of a run none of the fitted ones had, so that they say little of it; empty: nothing."""
    beside = runs_beside(run, efficiency)
    if not beside:
        return "of such a model"
    zero = run.strategy.zero
    return f"with zero={zero}" if zero > max(1, *(one.strategy.zero for one in beside)) else ""


def _of_models(efficiency: Efficiency) -> float:
    """By the errors where models were left out; of one's own fit by its mean error, and how those
    that come with the package are spread about theirs."""
    if rows := rows_of(efficiency):
        return spread((one.group, one.off) for one in rows)
    return _per_mean() * efficiency.error


def _of_devices() -> float:
    return spread((one.group, one.off) for one in left_out_rows() if one.kind == DEVICE)


def error_of_other_models() -> float:
    """The mean relative error of published runs whose model was left out of every fit."""
    return statistics.fmean(abs(one.error) for one in left_out_rows() if one.kind == MODEL)


def _per_mean() -> float:
    rows = [one for one in left_out_rows() if one.kind == MODEL]
    names = {one.efficiency for one in rows}
    offs = {name: [one.off for one in rows if one.efficiency == name] for name in names}
    means = {name: statistics.fmean(found) for name, found in offs.items()}
    return spread((name, off / means[name]) for name, found in offs.items() for off in found)


def iteration_range(
    found: RunEstimate, links: EstimateRange, *, shared_zero: bool = False
) -> PriceRange:
    """The range of an iteration: errors of constants and of links, as independent of each other.

    It is as firm as the weaker of both.  ``shared_zero``: what is not known of its stage of ZeRO
    does not count, as for strategies that are told apart by the same constants.
    """
    device, run = found.topology.known_device.name, found.run
    if shared_zero:
        run = replace(run, strategy=replace(run.strategy, zero=0))
    fit, seconds = fit_error(found.efficiency, device, run), found.iteration_s
    low, high = seconds * -math.expm1(-fit.spread), seconds * math.expm1(fit.spread)
    if links.iteration is None:
        return PriceRange(seconds, seconds - low, seconds + high, fit.basis, fit.why)
    priced = links.iteration
    low_s = seconds - math.hypot(low, max(0.0, seconds - priced.low_s))
    high_s = seconds + math.hypot(high, max(0.0, priced.high_s - seconds))
    basis = max(fit.basis, priced.basis, key=FIRMEST_FIRST.index)
    why = f"{fit.why}; links {priced.known}"
    return PriceRange(seconds, max(low_s, 0.0), high_s, basis, why)


# Whether the runs of a fit tell strategies apart.


TELLS = 2.0
"""A count of operations must be off by so many times as much as the model for that."""


@dataclass(frozen=True, slots=True)
class Untold:
    """Mean errors of the model and of a count of operations that does nearly as well."""

    model: float
    operations: float


def untold(efficiency: Efficiency) -> Untold | None:
    """That the runs of an efficiency do not tell strategies apart; None: they do, or it is of
    nobody's runs here.

    Where operations at one utilisation meet them nearly as well, they say nothing of what one
    strategy takes more than another.
    """
    if not (rows := rows_of(efficiency)):
        return None
    model, plain = (
        statistics.fmean(map(abs, found))
        for found in ([one.error for one in rows], [one.operations for one in rows])
    )
    return Untold(model, plain) if plain < TELLS * model else None
