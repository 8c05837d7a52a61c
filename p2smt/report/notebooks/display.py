"""Answers as notebooks show them: the story that a report would tell, without script, and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from p2smt.api.host_plan import PlannedOnHosts
from p2smt.api.planning import Planned
from p2smt.cluster.allocation import unstated_levels
from p2smt.cluster.topology import Topology
from p2smt.display import Displayed
from p2smt.errors import InputError
from p2smt.files.plain import to_plain
from p2smt.files.validation import validated
from p2smt.plans.file import plan_data
from p2smt.plans.file_model import OldPlanModel, PlanModel, RequestModel
from p2smt.plans.solution import Solution
from p2smt.report.page.answer_part import hosted_answer, planned_answer, solved_answer
from p2smt.report.page.html import fragment
from p2smt.report.page.reading import Fields, Names
from p2smt.report.page.redistribution_story import redistribution_story
from p2smt.report.page.schedule_story import told_schedule
from p2smt.report.page.sources import plan_story
from p2smt.report.page.story import Figure, Section, Story, Table, clean, sentence
from p2smt.report.page.training_story import of_answer, training_story
from p2smt.report.topologies import extent, level_rows
from p2smt.report.training.estimate_data import hosts_data, planned_data
from p2smt.resharding.plan_file import redistribution_plan_data
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.schedules.model import Schedule
from p2smt.training.training_plan import TrainingPlan, training_plan_data

_WHERE = "answer"
ByColumn = Mapping[str, Any]


def answer_html(answer: Displayed) -> str:
    """Verdict, numbers, pictures and tables of an answer."""
    return fragment(answer_story(answer))


def answer_story(answer: Displayed) -> Story:
    """What a report of the answer's file would tell.

    Raises:
        InputError: the answer is of no kind that is known here.
    """
    names = Names()
    match answer:
        case Topology():
            return _topology_story(answer)
        case Schedule():
            return told_schedule(answer, ())
        case RedistributionPlan():
            return redistribution_story(redistribution_plan_data(answer), _WHERE, names)
        case PlanModel() | OldPlanModel():
            return plan_story(answer, names, _WHERE, ())
        case Solution() | Planned() | PlannedOnHosts() | TrainingPlan():
            plan = _plan_of(answer)
            return _without_plan(answer) if plan is None else plan_story(plan, names, _WHERE, ())
    raise InputError(f"a {type(answer).__name__}", "is no answer that is shown")


def _plan_of(answer: Solution | Planned | PlannedOnHosts | TrainingPlan) -> PlanModel | None:
    """The plan file of an answer, with what its search said; None: it has none."""
    said: dict[str, Any] | None = None
    match answer:
        case Solution(best=best):
            if best is None:
                return None
            data, said = plan_data(answer, best), solved_answer(answer, None, "")
        case Planned(recommended=run) | PlannedOnHosts(recommended=run):
            if run is None or not run.plan.solutions:
                return None
            data = training_plan_data(run.plan)
            if isinstance(answer, Planned):
                said = planned_answer(answer, "")
            else:
                said = hosted_answer(answer, "")
        case TrainingPlan():
            if not answer.solutions:
                return None
            data = training_plan_data(answer)
    return validated(PlanModel, data | ({} if said is None else {"answer": said}), _WHERE)


def _without_plan(answer: Solution | Planned | PlannedOnHosts | TrainingPlan) -> Story:
    """A story where there is no plan file: nothing was found, or nothing is sent."""
    printed = None
    if isinstance(answer, Planned | PlannedOnHosts):
        data = planned_data(answer) if isinstance(answer, Planned) else hosts_data(answer)
        printed = of_answer(Fields(to_plain(data), _WHERE))
    if printed is not None:
        return training_story(replace(printed, lacks=()), Names(), ())
    why = [sentence(one) for one in getattr(answer, "conflict", ())]
    verdict = f"No plan: {answer.summary()}. {' '.join(why)}".strip()
    return Story(type(answer).__name__, sentence(verdict), (), (), kind="no plan")


def _topology_story(topology: Topology) -> Story:
    """Levels and links of a cluster."""
    heads = ("level", ">size", "link", "ports", "protocol", ">bandwidth of a port", ">latency")
    rows = tuple(
        tuple(map(clean, row))
        for at, level in enumerate(topology.levels)
        for row in level_rows(level, topology.devices_under(at))
    )
    unstated = unstated_levels(topology)
    words = f"nobody stated the bandwidth of {', '.join(map(clean, unstated))}"
    levels = Section("Levels, outermost first", f"{extent(topology)}.", first=Table(heads, rows))
    return Story(
        title=clean(topology.name),
        verdict=sentence(topology.description or extent(topology)),
        figures=(Figure(f"{topology.installed:,}", "devices", clean(topology.library_name)),),
        sections=(levels,),
        warnings=(("No times", words),) * bool(unstated),
        kind="a cluster",
    )


# Rows, for data frames.


def answer_rows(answer: Displayed) -> list[ByColumn]:
    """The rows of an answer, all with the same keys.

    Raises:
        InputError: the answer is of no kind that is known here.
    """
    match answer:
        case Topology():
            return list(_levels(answer))
        case Schedule():
            return list(_schedule_steps(answer))
        case RedistributionPlan():
            return list(_moves(redistribution_plan_data(answer)["steps"]))
        case Solution():
            return list(_alternatives(answer))
        case PlanModel(answer=said) if said is not None and said.points:
            return _even(
                {
                    "strategy": one.strategy,
                    "iteration_s": one.iteration_s,
                    "memory_bytes": one.memory_bytes,
                    **{f"{name}_s": seconds for name, seconds in one.parts.items()},
                }
                for one in said.points
            )
        case PlanModel() | OldPlanModel():
            return list(map(_request, answer.requests))
        case Planned() | PlannedOnHosts() | TrainingPlan():
            plan = _plan_of(answer)
            return [] if plan is None else answer_rows(plan)
    raise InputError(f"a {type(answer).__name__}", "is no answer that has rows")


def _levels(topology: Topology) -> Iterator[ByColumn]:
    for at, level in enumerate(topology.levels):
        for piece in level.link.pieces:
            yield {
                "level": level.name,
                "size": level.size,
                "devices_under": topology.devices_under(at),
                "link": level.link.kind.value,
                "ports": level.link.ports,
                "protocol": piece.name,
                "bandwidth_bytes_per_s": piece.bandwidth_bytes_per_s,
                "latency_s": piece.latency_s,
            }


def _schedule_steps(schedule: Schedule) -> Iterator[ByColumn]:
    for one in schedule.steps:
        yield {
            "rank": one.rank,
            "block": one.block,
            "index": one.index,
            "kind": one.kind,
            "chunks": one.count,
            "from_rank": None if one.receive is None else one.receive.source,
            "to_rank": None if one.send is None else one.send.target,
            "line": one.line,
        }


_MOVE = ("kind", "text", "payload_bytes", "step_bytes", "seconds", "bottleneck", "load_bytes")


def _moves(steps: Iterable[ByColumn]) -> Iterator[ByColumn]:
    return ({"step": at, **{key: one[key] for key in _MOVE}} for at, one in enumerate(steps, 1))


def _alternatives(solution: Solution) -> Iterator[ByColumn]:
    """A row for each request of each alternative, the best one first."""
    for number, alternative in enumerate(solution.alternatives, 1):
        data = validated(PlanModel, plan_data(solution, alternative), _WHERE)
        for one in data.requests:
            yield {"alternative": number, "objective_s": data.objective_s, **_request(one)}


def _request(one: RequestModel) -> ByColumn:
    keys = ("bytes", "times", "program", "chunks", "seconds", "bound_s", "single_collective_s")
    named = {"kind": one.kind_name, "axes": "+".join(one.axes)}
    return named | {key: getattr(one, key) for key in keys}


def _even(rows: Iterable[ByColumn]) -> list[ByColumn]:
    """Rows with the keys of all of them; a part that one does not have takes no time."""
    found = list(rows)
    keys = dict.fromkeys(key for one in found for key in one)
    return [{key: one.get(key, 0.0) for key in keys} for one in found]
