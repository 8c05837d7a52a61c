"""Strategies of published runs, without their times: what an answer is near to, or outside of."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from p2smt.workload.efficiency import Efficiency
from p2smt.workload.measured.run import MeasuredRun
from p2smt.workload.search.answer import StrategyRun
from p2smt.workload.strategy_text import parse_strategy, strategy_text

FOLDER = "p2smt.workload.measured"
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
