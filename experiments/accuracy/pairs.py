"""A whole and its parts: do model and measurement agree on which is faster?

Tables that measure the same collective on more and on fewer GPUs of a system are a whole and its
part.  At every size that both have, one call on the whole is compared with one, two and
three calls on the part: what a program of so many steps inside the part spends there at least, so a
model that is wrong here promises gains that nobody measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from experiments.accuracy.summary import Result, Target
from experiments.accuracy.systems import is_part

CALLS = (1, 2, 3)
TIE = 0.05
"""Times that differ by less, as a part of the smaller, are a tie: runs differ by as much."""
CLEAR = 0.25
"""Times that differ by more, as a part of the smaller, are what such a model must tell apart."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One call on the whole against ``calls`` on the part, at one size; times in seconds."""

    whole: str
    part: str
    size_bytes: int
    calls: int
    whole_measured_s: float
    part_measured_s: float
    whole_predicted_s: float
    part_predicted_s: float

    @property
    def margin(self) -> float:
        """By how much the measured times differ, as a part of the smaller."""
        both = (self.whole_measured_s, self.part_measured_s)
        return max(both) / min(both) - 1

    @property
    def tie(self) -> bool:
        """Whether the measured times are as good as equal."""
        return self.margin <= TIE

    @property
    def agree(self) -> bool:
        """Whether the model calls the same one faster as the measurement."""
        measured = self.whole_measured_s < self.part_measured_s
        return measured == (self.whole_predicted_s < self.part_predicted_s)


def comparisons(results: Sequence[Result]) -> Iterator[Comparison]:
    """Every comparison of a whole with a part of it, by table, size and number of calls."""
    for whole, part in permutations(results, 2):
        if is_part(whole.table, part.table):
            yield from _compare(whole, part)


def _compare(whole: Result, part: Result) -> Iterator[Comparison]:
    parts = {cell.size_bytes: cell for cell in part.cells}
    for cell in whole.cells:
        inside = parts.get(cell.size_bytes)
        for calls in CALLS if inside else ():
            assert inside is not None
            yield Comparison(
                whole.table.name,
                part.table.name,
                cell.size_bytes,
                calls,
                cell.measured_s,
                calls * inside.measured_s,
                cell.predicted_s,
                calls * inside.predicted_s,
            )


def pair_target(found: Sequence[Comparison]) -> Target:
    """No size at which the model calls the wrong one of a whole and its part faster."""
    wrong = sum(one.calls == 1 and not one.tie and not one.agree for one in found)
    return Target(
        "a whole and its part: the wrong one called faster", "none", str(wrong), not wrong
    )
