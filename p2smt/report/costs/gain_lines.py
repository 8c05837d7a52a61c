"""What an answer gains, for people: how much, whether it would be measured, and by what."""

from __future__ import annotations

from collections.abc import Iterator

from p2smt.cost.by_choice import NamedWay
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.request import Request
from p2smt.plans.solution import SAME, Gain, ProgramGain, Solution

WORTH_NAMING = 0.01
"""A smaller part of the programs' gain is not said to be the library's choice."""


def gain_lines(solution: Solution) -> Iterator[str]:
    """The gain over the default layout, and how much of it naming an algorithm would give."""
    gain = solution.gain
    if gain is None:
        return
    topology = solution.problem.topology
    where = f"for {topology.library} on this system"
    yield from _over_default(gain, "of this calibration" if topology.calibrated else where)
    if gain.programs is not None:
        yield from choice_lines(gain.programs, len(solution.problem.requests))


def _over_default(gain: Gain, where: str) -> Iterator[str]:
    over, known = gain.over_default, gain.accuracy
    if over < -SAME:
        yield f"no gain: {_percent(1 / (1 + over) - 1)} slower than the default layout"
        return
    if over <= SAME:
        yield "no gain: the default layout takes no longer"
        return
    shown = f"{_percent(over)} over the default layout"
    if known.error is None or known.basis is None:
        if known.unknown:
            yield f"gain {shown}; not known whether you would measure it: {known.unknown}"
        return
    off = f"predictions {where} are off by {_percent(known.error)} ({known.basis.value})"
    if gain.measurable:
        yield f"gain {shown}, while {off}"
    else:
        yield f"no gain you would measure: {shown}, while {off}"


def choice_lines(programs: ProgramGain, requests: int = 1) -> Iterator[str]:
    """Which part of what programs of so many requests gain is the library's choice, and how to
    make it."""
    if programs.part_by_choice < WORTH_NAMING:
        return
    part, gained = _percent(programs.part_by_choice), _percent(programs.over_singles)
    each = "the single collective" if requests == 1 else "single collectives"
    ways = "; ".join(_way(*named) for named in programs.named)
    yield f"{part} of the programs' gain ({gained} over {each}) {ways}"


def _way(request: Request, way: NamedWay) -> str:
    return f"{named_text(way)} for {request}"


def named_text(way: NamedWay) -> str:
    """What to name, and what the library's rule takes instead."""
    settings = f" ({way.settings})" if way.settings else ""
    return (
        f"by the library's own {_name(way.cheapest)}{settings}: "
        f"its rule chooses {_name(way.chosen)}"
    )


def _name(step: StepTime) -> str:
    return f"{step.algorithm} {step.protocol}".strip()


def _percent(part: float) -> str:
    """A part as a percentage; what is rounding alone is nothing."""
    if abs(part) < SAME:
        return "0 %"
    return f"{100 * part:.3g} %" if abs(part) < 9.995 else f"{100 * part:.0f} %"
