"""A search by payload that several tests look at: all-gather over a DGX-1, proved at two rates."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from p2smt.fabric.fabric_file import load_fabric
from p2smt.result import SearchLimits, StopWatch
from p2smt.solvers.ask import Solver
from p2smt.synthesis.best_rate import RateQuestion
from p2smt.synthesis.by_size import RoundPrices, SizedSchedules, SizeSearch
from p2smt.synthesis.setting import SynthesisSetting, tell_nobody

ALPHA_S = Fraction(5, 10**6)
LOW, HIGH = 2**10, 2**30


def search(
    most_steps: int = 6,
    sizes: tuple[int, int] = (LOW, HIGH),
    collective: str = "allgather",
    fabric: str = "dgx1",
) -> SizeSearch:
    """The search, not begun."""
    setting = SynthesisSetting(load_fabric(fabric), collective)
    question = RateQuestion(setting, 24, Solver.CPSAT, tell_nobody)
    prices = RoundPrices.of(setting, ALPHA_S)
    return SizeSearch(question, prices, *sizes, most_steps, StopWatch.start(SearchLimits()))


@cache
def gathered(most_steps: int = 6) -> SizedSchedules:
    """What it finds from 1 KiB to 1 GiB."""
    return search(most_steps).run()
