"""Checks a redistribution's plan file: rules, meaning, groups, memory, times, bounds.

No number of the file is believed: each is computed again from its types and steps.  What only a
search proves is held to what can be known without one: that its bound does not lie above what it
bounds, that "optimal" means equal, and that the plan is one of those that it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p2smt.arrays.ends import Ends, ends_of
from p2smt.arrays.memory import needed_bytes, within
from p2smt.arrays.semantics import check_types
from p2smt.arrays.steps import ArrayStep
from p2smt.cost.redistribution.bounds import physical_bound_s
from p2smt.cost.redistribution.level_cuts import level_splits
from p2smt.cost.step_time import StepTime
from p2smt.plans.check.numbers import bound_notes, differ
from p2smt.plans.redistribution.file_model import ArrayStepModel, RedistributionModel
from p2smt.plans.redistribution.plan import RedistributionPlan
from p2smt.plans.redistribution.stated import (
    StatedRedistribution,
    first_broken,
    stated,
    with_times,
)

CHECKED = ("rules of steps", "meaning", "groups", "memory", "times", "bounds")
"""What is held against the plan, in this order."""
OPTIMALITY = "optimality"


@dataclass(frozen=True, slots=True)
class RedistributionNote:
    """What a plan breaks or misstates.

    ``kind`` is ``rule``, ``meaning``, ``groups``, ``memory``, ``cost`` or ``bound``; ``step``
    counts from 1; ``rank`` and ``chunk`` (dimension and element) say where elements are wrong.
    """

    kind: str
    message: str
    step: int | None = None
    rank: int | None = None
    chunk: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class RedistributionReport:
    """Verdict on a plan; ``plan`` is its value with times computed anew, where its steps are any.

    ``checked`` was held against it, in the order of :data:`CHECKED`; times mean nothing where
    elements end elsewhere, and are not compared then.
    """

    notes: tuple[RedistributionNote, ...]
    plan: RedistributionPlan | None
    checked: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether no rule is broken and nothing is misstated."""
        return not self.notes


def check_redistribution(model: RedistributionModel, source: str) -> RedistributionReport:
    """Check a plan file.  No search is made, so nothing is said of optimality.

    Raises:
        InputError: names ``source``; types, digits or devices that do not exist.
    """
    found = stated(model, source)
    broken = first_broken(found)
    if broken is not None:
        number, error = broken
        text = f"step {number}: {error.rule}"
        return RedistributionReport((RedistributionNote("rule", text, number),), None, CHECKED[:1])
    wrong = tuple(_wrong(found))
    if wrong:
        return RedistributionReport(wrong, None, CHECKED[:2])
    plan = with_times(model, found)
    notes = [*_limits(plan), *_groups(model, found), *_memory(model, plan), *_times(model, plan)]
    return RedistributionReport((*notes, *_bounds(model, plan)), plan, CHECKED)


def _wrong(found: StatedRedistribution) -> Iterator[RedistributionNote]:
    """Where elements do not end as the types say."""
    moves = list(zip(found.steps, found.sources, strict=True))
    ends = found.ends
    for wrong in check_types(found.source, found.target, ends.frame, ends.source, moves):
        number = wrong.step or None
        yield RedistributionNote("meaning", wrong.message, number, wrong.device, wrong.chunk)


def _limits(plan: RedistributionPlan) -> Iterator[RedistributionNote]:
    """Where the plan is none of those among which it says that it is the best."""
    count, most = len(plan.steps), plan.max_steps
    if most is not None and count > most:
        text = f"max_steps says at most {most}, the plan has {count}"
        yield RedistributionNote("rule", text)
    if plan.levels_only and plan.frame.digits != _ends(plan)[0].frame.digits:
        text = "levels_only says that levels alone cut the axes, the digits are other cuts"
        yield RedistributionNote("rule", text)


def _ends(plan: RedistributionPlan) -> tuple[Ends, ...]:
    """What a search with the plan's cuts starts from."""
    splits = level_splits(plan.topology, plan.source.mesh) if plan.levels_only else None
    return ends_of(plan.source, plan.target, splits)


def _numbered(
    model: RedistributionModel, steps: tuple[ArrayStep, ...]
) -> Iterator[tuple[int, ArrayStepModel, ArrayStep]]:
    for number, (said, step) in enumerate(zip(model.steps, steps, strict=True), 1):
        yield number, said, step


def _groups(
    model: RedistributionModel, found: StatedRedistribution
) -> Iterator[RedistributionNote]:
    frame = found.ends.frame
    for number, said, step in _numbered(model, found.steps):
        if said.groups != list(map(list, step.groups(frame))):
            text = f"step {number} groups are not those of the digits that it moves"
            yield RedistributionNote("groups", text, number)
        if said.text != step.text(frame):
            text = f"step {number} text says {said.text[:80]!r}, it is {step.text(frame)!r}"
            yield RedistributionNote("groups", text, number)


def _memory(model: RedistributionModel, plan: RedistributionPlan) -> Iterator[RedistributionNote]:
    frame = plan.frame
    for number, said, _ in _numbered(model, plan.array_steps):
        needed = needed_bytes(frame, plan.array_steps, number - 1, plan.memory.keep_source)
        if said.step_bytes != needed:
            text = f"step {number} step_bytes says {said.step_bytes}, it needs {needed}"
            yield RedistributionNote("memory", text, number)
    for name, stated_bytes, needed in (
        ("peak_bytes", model.peak_bytes, plan.peak_bytes),
        ("peak_step_bytes", model.peak_step_bytes, plan.peak_step_bytes),
    ):
        if stated_bytes != needed:
            text = f"{name} says {stated_bytes}, the plan needs {needed}"
            yield RedistributionNote("memory", text)
    least = max(map(frame.local_bytes, (plan.states[0], plan.states[-1])))
    if not plan.memory.of_steps and plan.memory.limit_bytes != least:
        text = f"limit_bytes says {plan.memory.limit_bytes}, source and destination need {least}"
        yield RedistributionNote("memory", text)
    elif not within(frame, plan.start, plan.array_steps, plan.memory):
        text = f"the plan needs more than the {plan.memory.limit_bytes} bytes of its cap"
        yield RedistributionNote("memory", text)


def _times(model: RedistributionModel, plan: RedistributionPlan) -> Iterator[RedistributionNote]:
    names = plan.topology.names
    for number, said, _ in _numbered(model, plan.array_steps):
        time = plan.steps[number - 1].time
        for text in _step_times(f"step {number}", said, time, names):
            yield RedistributionNote("cost", text, number)
    for text in differ("objective_s", model.objective_s, plan.objective_s):
        yield RedistributionNote("cost", text)


def _step_times(
    where: str, said: ArrayStepModel, time: StepTime, names: tuple[str, ...]
) -> Iterator[str]:
    yield from differ(f"{where} seconds", said.seconds, time.seconds)
    yield from differ(f"{where} payload_bytes", said.payload_bytes, time.payload_bytes)
    yield from differ(f"{where} load_bytes", said.load_bytes, time.load_bytes)
    bottleneck = None if time.level is None else names[time.level]
    if (said.algorithm, said.protocol, said.bottleneck) != (
        time.algorithm,
        time.protocol,
        bottleneck,
    ):
        yield f"{where} algorithm, protocol or bottleneck is not that of the cost model"


def _bounds(model: RedistributionModel, plan: RedistributionPlan) -> Iterator[RedistributionNote]:
    texts = list(bound_notes("the plan", model.bound_s, plan.objective_s, model.status))
    links_s = min(physical_bound_s(plan.topology, ends) for ends in _ends(plan))
    found = min(links_s, plan.objective_s)
    texts += differ("physical_bound_s", model.physical_bound_s, found)
    yield from (RedistributionNote("bound", text) for text in texts)
