"""Redistributions planned here, by DTensor and by Shardy, at the same prices: ``results.json``.

    python -m experiments.redistribution.study [--times] [--shardy FILE] [GROUP ..]

FILE is shardy/dialect/sdy/transforms/export/test/reshard_to_collectives.mlir of openxla/shardy at
a0277a83; without it the committed rows of Shardy stay.  With groups, only these are planned again.
``--times`` renews what planning took, too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.redistribution.cases import groups
from experiments.redistribution.planned import LIMITS, entry
from experiments.testbed.script import ended
from experiments.testbed.written import results, timings
from p2smt import __version__
from p2smt.errors import InputError
from p2smt.files.yaml_text import read_text
from p2smt.interop.arrays.peers.compare_peers import ShardyCase, read_shardy
from p2smt.report.progress import counted

RESULTS = Path(__file__).resolve().parent / "results.json"
FIELD = "planning_s"


def shardy_functions(arguments: list[str]) -> tuple[ShardyCase, ...]:
    """Those of the file that ``--shardy`` names, which is taken from the arguments."""
    if "--shardy" not in arguments:
        return ()
    place = arguments.index("--shardy")
    if place + 1 == len(arguments):
        raise InputError("--shardy", "needs a file", "give reshard_to_collectives.mlir")
    path = arguments[place + 1]
    del arguments[place : place + 2]
    return read_shardy(read_text(path, "MLIR file"), path).cases


def key(case: dict[str, Any], prices: str) -> str:
    """A case at one kind of prices, as the time of its planning is kept."""
    return f"{case['group']}: {case['name']}: {prices}"


def _apart(case: dict[str, Any], anew: bool) -> dict[str, Any]:
    """A case without its times, which are kept."""
    plans = case["plans"]
    found = {key(case, prices): {FIELD: plan.pop(FIELD)} for prices, plan in plans.items()}
    timings.keep(RESULTS.parent, found, anew)
    return case


def committed() -> dict[str, Any]:
    """The results as they are; none before the first run."""
    return results.read(RESULTS) if RESULTS.exists() else {"cases": []}


def main(given: Sequence[str]) -> None:
    """Plan, and write after every group.

    Raises:
        InputError: an argument is no group, or the file cannot be read.
    """
    arguments, anew = timings.taken(given)
    all_groups = groups(shardy_functions(arguments))
    if unknown := set(arguments) - set(all_groups):
        raise InputError(f"groups {sorted(unknown)}", f"are none of {', '.join(all_groups)}")
    header = {"p2smt": __version__, "time_limit_s": LIMITS.time_limit_s, "seed": LIMITS.seed}
    for group in arguments or all_groups:
        found = [_apart(entry(case), anew) for case in counted(all_groups[group], group)]
        rest = [one for one in committed()["cases"] if one["group"] != group]
        cases = sorted([*rest, *found], key=lambda one: _place(one["group"], list(all_groups)))
        results.write(RESULTS, {"header": header, "cases": cases})
        sys.stdout.write(f"{group}: {len(found)} cases\n")


def _place(group: str, known: Sequence[str]) -> int:
    """Groups stay in their order; those that are not known now come last."""
    return known.index(group) if group in known else len(known)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
