"""Writes the page of the study from ``results.json`` and ``README.in.md``.

python -m experiments.training_runs.page
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from experiments.testbed.script import ended
from experiments.training_runs import tables
from experiments.training_runs.store import HERE, read
from p2smt.errors import InputError

PAGE, TEMPLATE = HERE / "README.md", HERE / "README.in.md"


def page(data: dict[str, Any]) -> str:
    """The page."""
    misfits = sum(not one["fits"] for one in data["memory"])
    (chance,) = data["chance"]
    (large,) = (one for one in data["groups"] if one["group"] == "dgxc-405b")
    return TEMPLATE.read_text(encoding="utf-8").format(
        runs=data["runs"],
        counted=data["counted"],
        refused="; ".join(f"{name} ({why})" for name, why in data["refused"]),
        table_5_mean=tables.percent(data["table_5"]["mean"]),
        table_5_max=tables.percent(data["table_5"]["max"]),
        carried_mean=tables.percent(data["carried"]["mean"]),
        carried_median=tables.percent(data["carried"]["median"]),
        small_mean=tables.percent(data["small"]["mean"]),
        shuffles=chance["shuffles"],
        chance_mean=f"{round(chance['mean'], 2) + 0.0:.2f}",
        chance_below=f"{chance['below']:.2f}",
        chance_good=chance["as_good"],
        chance_tau=f"{chance['tau']:.2f}",
        large_mean=tables.percent(large["mean"]),
        large_max=tables.percent(large["max"]),
        misfits=misfits,
        misfit_part=tables.percent(misfits / data["runs"]),
        **{name: getattr(tables, name)(data) for name in TABLES},
    )


TABLES = (
    *("sets", "groups", "worst", "launches", "ranking", "sweep", "memory", "placements"),
    *("uncounted", "transfers"),
)
"""Functions of :mod:`tables` that the page shows."""


def main(arguments: Sequence[str]) -> None:
    """Write the page.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    PAGE.write_text(page(read()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
