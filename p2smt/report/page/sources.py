"""Files told apart by what they hold, and the story of each."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from p2smt.api.saved_answers import library_advice, read_saved
from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.files.validation import validated
from p2smt.plans.file import MAX_PLAN_BYTES, OLD_VERSION, REDISTRIBUTION, TRANSFER
from p2smt.plans.file_model import AnyPlan, OldPlanModel, PlanModel
from p2smt.report.page.placements import placement_story
from p2smt.report.page.reading import Fields, Names
from p2smt.report.page.story import Story, clean, sentence
from p2smt.report.page.training import of_answer, of_plan, training_story
from p2smt.transfer.plan_file import is_transfer

_REMEDY = "give a file that p2smt wrote: a plan, a schedule, or what a command printed with --json"
SCHEDULES = (".xml", ".yaml", ".yml")


def story_of(paths: Sequence[str], names: Names | None = None) -> Story:
    """The story of a file, or of two that are compared.

    Raises:
        InputError: there are more than two, one cannot be read, or holds nothing that is known.
    """
    names = names or Names()
    if len(paths) == 2 and all(map(is_transfer, paths)):
        from p2smt.report.transfers.story import transfer_pair_story

        return transfer_pair_story(paths[0], one_story(paths[1], names), paths[1])
    if len(paths) == 2:
        from p2smt.report.page.pairs import pair_story

        return pair_story(paths[0], paths[1], one_story(paths[1], names), names)
    if len(paths) != 1:
        raise InputError(f"{len(paths)} files", "a report is of one, or of two that are compared")
    return one_story(paths[0], names)


def one_story(path: str, names: Names) -> Story:
    """The story of a file."""
    if os.path.splitext(path)[1].lower() in SCHEDULES:
        return _schedule_story(path, names)
    data = read_json(path, f"file {path[:200]!r}", _REMEDY, MAX_PLAN_BYTES)
    if not isinstance(data, dict):
        raise InputError(f"file {path[:200]!r}", "holds no JSON object", _REMEDY)
    if "gpus" in data and "schema_version" not in data:  # an execution plan of MSCCL++
        return _schedule_story(path, names)
    if data.get("kind") == REDISTRIBUTION or {"mesh", "digits"} <= data.keys():
        from p2smt.report.page.redistributions import redistribution_story

        return redistribution_story(data, path, names)
    if data.get("kind") == TRANSFER:
        from p2smt.report.transfers.story import transfer_story

        return transfer_story(data, path, names)
    if {"requests", "ranks", "matrix"} <= data.keys():
        return _file_story(data, path, names)
    return _printed_story(data, path, names)


def _schedule_story(path: str, names: Names) -> Story:
    from p2smt.report.page.schedules import schedule_story

    return schedule_story(path, names)


def _file_story(data: Mapping[str, Any], path: str, names: Names) -> Story:
    source, old = f"plan {path[:200]!r}", data.get("schema_version") == OLD_VERSION
    plan = validated(OldPlanModel, data, source) if old else validated(PlanModel, data, source)
    range_s = read_saved(path).range_s if isinstance(plan, PlanModel) and plan.training else None
    story = plan_story(plan, names, path, _commands(plan, path), range_s)
    return _with_library(story, plan, names, path)


def plan_story(
    plan: AnyPlan,
    names: Names,
    source: str,
    commands: tuple[str, ...],
    range_s: tuple[float, float] | None = None,
) -> Story:
    """The story of a plan that was read; ``range_s``: that of a training's iteration."""
    if isinstance(plan, PlanModel) and plan.training is not None:
        found = replace(of_plan(plan, plan.training, names, source), range_s=range_s)
        return training_story(found, names, commands)
    return placement_story(plan, names, source, commands)


def _with_library(story: Story, plan: AnyPlan, names: Names, path: str) -> Story:
    """The story with what makes the plan's library choose so."""
    found = library_advice(plan, path)
    if found is None:
        return story
    words = {"short": clean(found.short), "words": sentence(found.words)}
    advice = replace(found, **words, commands=names.commands(*found.commands))
    return replace(story, library=advice)


def _commands(plan: PlanModel | OldPlanModel, path: str) -> tuple[str, ...]:
    """What made the file, what checks it, and what makes the page."""
    answer = plan.answer if isinstance(plan, PlanModel) else None
    made = None if answer is None else answer.command
    name = shlex.quote(os.path.basename(path))
    return (
        *([f"{made} -o {name}"] if made else []),
        f"p2smt verify {name}",
        f"p2smt report {name} -o report.html",
    )


def _printed_story(data: Mapping[str, Any], path: str, names: Names) -> Story:
    """The story of what a command printed with --json."""
    fields = Fields(data, path[:60])
    if "global_batch" in data:
        found = of_answer(fields)
        if found is not None:
            story = training_story(found, names, ())
            if isinstance(data.get("comparison"), dict):
                from p2smt.report.page.pairs import compared

                return compared(story, fields.inside("comparison"))
            return story
    plan = data.get("plan")
    if isinstance(plan, dict) and {"requests", "ranks", "matrix"} <= plan.keys():
        return _file_story(plan, path, names)
    from p2smt.report.page.any_answer import answer_story

    return answer_story(fields, names)
