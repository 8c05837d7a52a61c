"""A training run whose iteration somebody measured and published."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.search.answer import StrategyRun
from p2smt.training.strategy import MIXTURE_FIELDS, Strategy, parse_strategy, strategy_text


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What ran, where, and the seconds of an iteration.

    ``group``: runs of one model from one source, which are left out together; ``sweep``: runs
    that differ in the strategy only, or empty.  ``framework`` and ``hardware`` are names.
    ``assumed``: what the source does not say.  ``counted``: whether the strategy is published
    well enough to judge a prediction by the run; ``names_framework``: whether the file says what
    trained it, or its group is one of published runs.
    """

    name: str
    group: str
    sweep: str
    framework: str
    hardware: str
    training: TrainingRun
    step_s: float
    assumed: str = ""
    counted: bool = True
    names_framework: bool = True


@dataclass(frozen=True, slots=True)
class MeasuredRuns:
    """The runs of a file, and what of it is no run that can be predicted: (row, why)."""

    runs: tuple[MeasuredRun, ...]
    refused: tuple[tuple[str, str], ...]

    @property
    def counted(self) -> tuple[MeasuredRun, ...]:
        """The runs that predictions are judged by."""
        return tuple(run for run in self.runs if run.counted)


# Strategies of published runs, without their times: what an answer is near to, or outside of.


FOLDER = "p2smt.training.measured"
FILE = "strategies.csv"
COLUMNS = ("family", "framework", "efficiencies", "run", "strategy")


def strategies_text(rows: Sequence[tuple[MeasuredRun, str, Sequence[str]]]) -> str:
    """The file of the strategies of runs, each with the family of its devices and the names of the
    efficiencies that were fitted to it.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run, family, fitted in rows:
        training = run.training
        where = f"{training.strategy.devices} {run.hardware}"
        name = f"{training.model.name} on {where} ({run.framework}, {run.name})"
        text = strategy_text(training.strategy)
        writer.writerow((family, run.framework, " ".join(fitted), name, text))
    return out.getvalue()


@cache
def measured_strategies(efficiency: Efficiency) -> tuple[StrategyRun, ...]:
    """Those of the runs that an efficiency was fitted to; of one that does not come with the
    package, those of its framework on its devices.

    What another framework ran says nothing of this one's constants.
    """
    text = files(FOLDER).joinpath(FILE).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    fitted = [row for row in rows if efficiency.name in row["efficiencies"].split()]
    alike = (efficiency.device, efficiency.framework.name)
    mine = fitted or [row for row in rows if (row["family"], row["framework"]) == alike]
    return tuple(StrategyRun(row["run"], parse_strategy(row["strategy"])) for row in mine)


def searched_strategies(
    efficiency: Efficiency, *, experts: bool = False
) -> tuple[StrategyRun, ...]:
    """Those of :func:`measured_strategies` that a search of dense models could choose, or of models
    with ``experts``: how these are spread says nothing of the others."""
    says = _spread if experts else _dense
    return tuple(one for one in measured_strategies(efficiency) if says(one.strategy))


def _spread(strategy: Strategy) -> bool:
    return strategy.ep > 1


def runs_beside(run: TrainingRun, efficiency: Efficiency) -> tuple[StrategyRun, ...]:
    """The fitted runs that say something of a run: of a dense model's only such, of a mixture's
    those of mixtures."""
    if run.model.experts:
        return searched_strategies(efficiency, experts=True)
    dense = run.model.seen(run.batch.tokens).dense and _dense(run.strategy)
    return searched_strategies(efficiency) if dense else measured_strategies(efficiency)


def _dense(strategy: Strategy) -> bool:
    usual = Strategy()
    return all(getattr(strategy, name) == getattr(usual, name) for name in MIXTURE_FIELDS)
