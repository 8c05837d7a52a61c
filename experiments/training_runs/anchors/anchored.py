"""What one measured run tells of the others of its group.  Writes the page.

Every group of runs was left out of the fit that predicts it.  Then each of its runs in turn is the
one that was measured: the group's other predictions are scaled by its error.

Usage: python -m experiments.training_runs.anchors.anchored
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.testbed.script import ended
from experiments.testbed.written import results
from experiments.training_runs import mixtures, store
from p2smt.errors import InputError
from p2smt.result import SAME
from p2smt.training.measured.prediction_errors import spread

PAGE = Path(__file__).parent / "anchored.md"
DENSE, MIXTURES = "dense models in 16 bits", "mixtures, hybrids and low precision"
HEAD = ("set", "groups", "runs", "before", "after", "groups that get worse", "anchored spread")
PARTS = ("part of the factor", "median error", "mean error", *HEAD[-2:])
TAKEN = (0, 0.5, 1)
_TELLING = 10
"""Groups that are named, those that anchoring makes worst."""


@dataclass(frozen=True, slots=True)
class AnchoredGroup:
    """Runs of one model by one framework on one device, with errors of the fit without them.

    ``errors``: predicted / measured - 1, two at least.
    """

    part: str
    set: str
    name: str
    errors: tuple[float, ...]

    def pairs(self, part: float = 1.0) -> Iterator[tuple[float, float]]:
        """Errors before and after, of each run by each other one, of whose factor a part is taken:
        1 the whole, 0.5 its square root."""
        for i, anchor in enumerate(self.errors):
            for j, other in enumerate(self.errors):
                if i != j:
                    yield other, (1 + other) / (1 + anchor) ** part - 1

    def before(self) -> float:
        """The median error of all of them."""
        return statistics.median(abs(before) for before, _ in self.pairs())

    def after(self, part: float = 1.0) -> float:
        """The same, anchored."""
        return statistics.median(abs(after) for _, after in self.pairs(part))

    def worse(self, part: float = 1.0) -> bool:
        """Whether anchoring takes it further off."""
        return self.after(part) > self.before() * (1 + SAME)


def groups() -> list[AnchoredGroup]:
    """Those of both studies that have several runs."""
    dense = ((DENSE, row["name"], row["group"], row["error"]) for row in store.read()["each"])
    mixed = (
        (MIXTURES, row["set"], f"{row['model']} {row['precision']}", row["left_out"])
        for row in results.read(mixtures.RESULTS)["runs"]
    )
    found: dict[tuple[str, str, str], list[float]] = {}
    for *key, error in (*dense, *mixed):
        found.setdefault((key[0], key[1], key[2]), []).append(error)
    return [AnchoredGroup(*key, tuple(own)) for key, own in found.items() if len(own) > 1]


def left(found: Iterable[AnchoredGroup], part: float = 1.0) -> float:
    """How far off four of five runs of four of five groups are after anchoring by one run, as a
    distance of logarithms."""
    return spread(
        (f"{one.set} {one.name}", abs(math.log1p(after)))
        for one in found
        for _, after in one.pairs(part)
    )


def page(found: Sequence[AnchoredGroup]) -> str:
    """The page."""
    worst = sorted(found, key=lambda one: one.before() - one.after())[:_TELLING]
    named = (
        (one.set, one.name, len(one.errors), _percent(one.before()), _percent(one.after()))
        for one in worst
    )
    return TEXT.format(
        tables=_table((HEAD, *_rows(found))),
        worst=_table((("set", "group", "runs", "before", "after"), *named)),
        parts=_table((PARTS, *(_part_row(found, part) for part in TAKEN))),
        spread=f"{100 * math.expm1(left(found)):.1f}",
    )


def _rows(found: Sequence[AnchoredGroup]) -> Iterator[Sequence[object]]:
    for part in (DENSE, MIXTURES):
        mine = [one for one in found if one.part == part]
        for name in dict.fromkeys(one.set for one in mine):
            yield _row(name, [one for one in mine if one.set == name])
        yield _row(f"**{part}**", mine)
    yield _row("**all**", found)


def _row(name: str, mine: Sequence[AnchoredGroup]) -> Sequence[object]:
    pairs = [pair for one in mine for pair in one.pairs()]
    worse = sum(one.worse() for one in mine)
    return (
        name,
        len(mine),
        sum(len(one.errors) for one in mine),
        *(_percent(statistics.median(map(abs, side))) for side in zip(*pairs, strict=True)),
        f"{worse} of {len(mine)} ({worse / len(mine):.0%})",
        _percent(math.expm1(left(mine))),
    )


def _part_row(found: Sequence[AnchoredGroup], part: float) -> Sequence[object]:
    errors = [abs(after) for one in found for _, after in one.pairs(part)]
    worse = sum(one.worse(part) for one in found)
    return (
        f"{part:g}",
        *(_percent(of(errors)) for of in (statistics.median, statistics.fmean)),
        f"{worse} of {len(found)} ({worse / len(found):.0%})",
        _percent(math.expm1(left(found, part))),
    )


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _table(rows: Iterable[Sequence[object]]) -> str:
    lines = [" | ".join(map(str, row)) for row in rows]
    columns = lines[0].count(" | ") + 1
    return "\n".join(
        f"| {line} |" for line in (lines[0], " | ".join(["---"] * columns), *lines[1:])
    )


TEXT = """# What one measured run tells of the others

`plan --measured` scales the model by iterations of one's own cluster. How much closer is it then?
Here every group of several published runs (one model, framework, device and precision) is predicted
by constants that were fitted without it; each of its runs in turn is the anchor, and the *other*
runs are scaled by that one's error. `make training-anchors` writes this page from the results of
the other studies of this folder.

`before` and `after`: median error of those other runs. A group gets worse where its own median
does. `anchored spread`: what four of five runs of four of five groups are off by after anchoring.

{tables}

After one run the band of `plan --measured` is that of the last line, {spread} % to the slow side.

The constants of most sets were fitted to groups like these, so that there is little left to scale,
and one run has an error of its own. A part of its factor (0.5: the square root) would be nearer:

{parts}

Anchoring helps where a whole group is off to one side, as by a network or a version of a framework
that the constants do not know. Where a group's runs lie to both sides, one run carries its own
error to all:

{worst}
"""


def main(arguments: Sequence[str]) -> None:
    """Write the page.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    PAGE.write_text(page(groups()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
