"""Writes the page of the study from ``results.json`` and ``README.in.md``.

python -m experiments.crossings.page
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from experiments.crossings import summary
from experiments.crossings.settings import MOST
from experiments.crossings.store import HERE, Row, read
from experiments.testbed.script import ended
from experiments.testbed.written.timings import read as read_times
from p2smt.errors import InputError

PAGE, TEMPLATE = HERE / "README.md", HERE / "README.in.md"


def page(data: Mapping[str, list[Row]]) -> str:
    """The page."""
    two, three, four = (data.get(levels, []) for levels in "234")
    asked = [row for row in two if row["large"] is not None]
    reductions = [row for row in asked if row["kind"] == "all-reduce"]
    every = [row for row in (*two, *three, *four) if summary.needs_no_calls(row)]
    return TEMPLATE.read_text(encoding="utf-8").format(
        most=MOST,
        two=len(two),
        sizes=len({(*row["factors"], row["ports"][0]) for row in two}),
        two_proved=sum(map(summary.proved, two)),
        two_table=summary.theorem_table(two),
        closed_text=_kept(reductions, summary.off(reductions, summary.follows_closed_form)),
        agree=sum(row["agree"] for row in asked),
        asked=len(asked),
        confirmed=sum(row["confirmed"] for row in asked),
        three=len(three),
        three_proved=sum(map(summary.proved, three)),
        three_table=summary.theorem_table(three),
        calls_text=summary.counts([row for row in three if not summary.needs_no_calls(row)]),
        four=len(four),
        four_proved=sum(map(summary.proved, four)),
        four_table=summary.theorem_table(four),
        four_s=round(read_times(HERE).get("4", {"longest_s": 0.0})["longest_s"]),
        count_text=_kept(every, summary.off(every, summary.has_expected_count)),
    )


def _kept(rows: list[Row], exceptions: list[Row]) -> str:
    """For how many of the settings a statement holds, and which it does not hold for."""
    if not exceptions:
        return f"This holds for all {len(rows)} settings."
    some = "; ".join(_setting(row) for row in exceptions[:8])
    more = f"; and {len(exceptions) - 8} more" if len(exceptions) > 8 else ""
    kept = f"{len(rows) - len(exceptions)} of {len(rows)} settings"
    return f"This holds for {kept}, not for: {some}{more}."


def _setting(row: Row) -> str:
    size = " x ".join(map(str, row["factors"]))
    ports = ",".join(map(str, row["ports"]))
    return f"{row['kind']} over {size}, ports {ports}{', with calls' if row['calls'] else ''}"


def main(arguments: Sequence[str]) -> None:
    """Write the page.

    Raises:
        InputError: arguments are given.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    PAGE.write_text(page(read()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
