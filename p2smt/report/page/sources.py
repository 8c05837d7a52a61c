"""Files told apart by what they hold, and the story of each.

That of an answer of no other kind, as any command prints it with --json, goes by its shape alone.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from p2smt.api.saved_answers import library_advice, read_saved
from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.files.validation import validated
from p2smt.plans.file import MAX_PLAN_BYTES, OLD_VERSION, REDISTRIBUTION, TRANSFER
from p2smt.plans.file_model import AnyPlan, OldPlanModel, PlanModel
from p2smt.report.page.placement_story import placement_story
from p2smt.report.page.reading import Fields, Names
from p2smt.report.page.story import Figure, Section, Story, Table, clean, sentence
from p2smt.report.page.training_story import of_answer, of_plan, training_story
from p2smt.report.page.words import format_time3
from p2smt.synthesis.certificate.forest import FOREST_KIND
from p2smt.synthesis.certificate.sizes import KIND as SIZES_KIND
from p2smt.transfer.plan_file import is_transfer
from p2smt.units import plain

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
        from p2smt.report.page.pair_story import pair_story

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
        from p2smt.report.page.redistribution_story import redistribution_story

        return redistribution_story(data, path, names)
    if data.get("kind") == TRANSFER:
        from p2smt.report.transfers.story import transfer_story

        return transfer_story(data, path, names)
    if {"requests", "ranks", "matrix"} <= data.keys():
        return _file_story(data, path, names)
    if data.get("kind") in (FOREST_KIND, SIZES_KIND):
        from p2smt.report.page import synthesized

        forest = data["kind"] == FOREST_KIND
        told = synthesized.forest_story if forest else synthesized.size_certificate_story
        return told(data, path, names)
    return _printed_story(data, path, names)


def _schedule_story(path: str, names: Names) -> Story:
    from p2smt.report.page.schedule_story import schedule_story

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
                from p2smt.report.page.pair_story import compared

                return compared(story, fields.inside("comparison"))
            return story
    plan = data.get("plan")
    if isinstance(plan, dict) and {"requests", "ranks", "matrix"} <= plan.keys():
        return _file_story(plan, path, names)
    if {"alpha_s", "beta_s", "pieces", "spans"} <= data.keys():
        from p2smt.report.page.synthesized import sizes_answer_story

        return sizes_answer_story(fields, names)

    return answer_story(fields, names)


MOST_ROWS, MOST_COLUMNS = 500, 8


def answer_story(data: Fields, names: Names) -> Story:
    """Status and single values first, then each list of objects as a table.

    Raises:
        InputError: it has no schema_version; or names are to be left out, which this cannot tell
            from words.
    """
    if "schema_version" not in data.data:
        rule = "is no answer of p2smt: it has no schema_version"
        raise InputError(data.what, rule, "give a plan, a schedule, or what --json printed")
    if names.anonymous:
        rule = "is of no kind whose names are known, so that none can be replaced"
        raise InputError(f"--anonymous {data.what}", rule, "give a plan file")
    single = {key: _words(key, one) for key, one in data.data.items() if _is_plain(one)}
    kind = single.get("kind")  # certificates and forests say what they are, and claim it only
    status = single.get("status") or single.get("verdict") or "answered"
    timed = [(key, text) for key, text in single.items() if key.endswith("_s")]
    sections = [Section("All values", "What the answer says, key by key.", first=_values(single))]
    sections += _tables(data.data)
    return Story(
        title=f"A {clean(kind)}" if kind else "An answer of p2smt",
        verdict="Claimed, not checked: p2smt verify does that." if kind else f"Status: {status}.",
        figures=tuple(Figure(text, key.removesuffix("_s")) for key, text in timed[:3]),
        sections=tuple(sections),
        lacks=() if kind else ("what was asked, and how: a plan file has it, which `-o` writes",),
        kind="report of an answer",
    )


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _words(key: str, value: object) -> str:
    if isinstance(value, float) and key.endswith("_s") and value >= 0:
        return format_time3(value)
    return sentence(plain(value, 6, grouped=True) if isinstance(value, float) else value)


def _values(single: Mapping[str, str]) -> Table:
    rows = tuple((clean(key), text) for key, text in single.items() if key != "schema_version")
    return Table(("key", "value"), rows)


def _tables(data: Mapping[str, Any]) -> Iterator[Section]:
    for key, value in data.items():
        if (
            not isinstance(value, list)
            or not value
            or not all(isinstance(one, dict) for one in value)
        ):
            continue
        heads = [name for name in value[0] if _is_plain(value[0][name])][:MOST_COLUMNS]
        if not heads:
            continue
        rows = tuple(
            tuple(_words(name, one.get(name, "")) for name in heads) for one in value[:MOST_ROWS]
        )
        lead = f"{clean(key)}: {len(value):,} of them" + (
            f", the first {MOST_ROWS}" * (len(value) > MOST_ROWS)
        )
        yield Section(clean(key), f"{lead}.", first=Table(tuple(map(clean, heads)), rows))
