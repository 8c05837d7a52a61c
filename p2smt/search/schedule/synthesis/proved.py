"""What is proved before any search: steps and rates that no schedule is below."""

from __future__ import annotations

from p2smt.cluster.fabric.maps.generators import fabric_symmetries
from p2smt.cluster.fabric.maps.search import Effort
from p2smt.errors import OutOfTimeError
from p2smt.result import StopWatch
from p2smt.search.schedule.bounds.rate import RateBound, distance_bound, rate_bound
from p2smt.search.schedule.synthesis.question import SynthesisSetting


def fewest_steps(setting: SynthesisSetting) -> RateBound:
    """The least steps of any schedule: the longest way that some data has to go."""
    return distance_bound(setting.fabric, setting.collective, setting.root)


def least_rate(
    setting: SynthesisSetting, steps: int | None, watch: StopWatch, whole: StopWatch
) -> RateBound | None:
    """Rounds a chunk that every schedule in so many steps needs (None: in any number).

    When the watch's time is over, a weaker bound than there could be; of a large fabric, when that
    of ``whole`` is over, none.  Symmetries of the fabric
    make the question smaller, and change nothing else, whether schedules may have them or not.
    """
    fixed = [setting.root] if setting.rooted else []
    symmetries = fabric_symmetries(setting.fabric, fixed=fixed, effort=Effort(watch=watch))
    asked = (setting.fabric, setting.collective, steps, setting.root, symmetries, watch, whole)
    try:
        return rate_bound(*asked)
    except OutOfTimeError:
        return None
