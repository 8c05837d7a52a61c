"""What is proved before any search: steps and rates that no schedule is below."""

from __future__ import annotations

from p2smt.cluster.fabric.maps.generators import fabric_symmetries
from p2smt.cluster.fabric.maps.search import Effort
from p2smt.result import StopWatch
from p2smt.search.schedule.bounds.rate import RateBound, distance_bound, rate_bound
from p2smt.search.schedule.synthesis.question import SynthesisSetting

LARGE_EDGES = 20_000
"""A fabric of more: once the time is over its rates are not bounded, as that takes seconds."""


def too_late(setting: SynthesisSetting, watch: StopWatch) -> bool:
    """Whether there is no time for a bound on the rate."""
    return watch.expired() and len(setting.fabric.edges) > LARGE_EDGES


def fewest_steps(setting: SynthesisSetting) -> RateBound:
    """The least steps of any schedule: the longest way that some data has to go."""
    return distance_bound(setting.fabric, setting.collective, setting.root)


def least_rate(setting: SynthesisSetting, steps: int | None, watch: StopWatch) -> RateBound:
    """Rounds a chunk that every schedule in so many steps needs (None: in any number).

    When the watch's time is over, a weaker bound than there could be.  Symmetries of the fabric
    make the question smaller, and change nothing else, whether schedules may have them or not.
    """
    fixed = [setting.root] if setting.rooted else []
    symmetries = fabric_symmetries(setting.fabric, fixed=fixed, effort=Effort(watch=watch))
    return rate_bound(setting.fabric, setting.collective, steps, setting.root, symmetries, watch)
