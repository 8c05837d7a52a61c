"""What a synthesis found, as data for ``--json``: fractions are texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, cast

from rich.console import Group, RenderableType

from p2smt.collectives.contract import RULES
from p2smt.report.outputs.synthesize import (
    SynthesisAnswer,
    SynthesisFiles,
    SynthesisSearch,
    SynthesisSubject,
    SynthesizeOutput,
    SynthesizeParetoOutput,
    SynthesizePoint,
)
from p2smt.report.tables import table
from p2smt.report.text import printable
from p2smt.result import Status
from p2smt.schedules.verify.report import Report, Verdict
from p2smt.synthesis.certificate.certificate import BoundKind
from p2smt.synthesis.setting import (
    CHUNKS_OF,
    LETTERS,
    Answer,
    Attempt,
    ScheduleSize,
    Synthesis,
    SynthesisSetting,
    enough_rounds,
    shown_collective,
    too_many_messages,
)
from p2smt.units import counted, format_time, plain, roughly

if TYPE_CHECKING:
    from p2smt.problems.schedule import ScheduleClass
    from p2smt.synthesis.bounds import RateBound
    from p2smt.synthesis.frontier import FrontierPoint, ScheduleFrontier


_Ended = Literal[Status.FEASIBLE, Status.INFEASIBLE, Status.UNKNOWN]
_Shown = Literal[Verdict.VALID, Verdict.UNKNOWN]
_LONG, _PLACES = 10**9, 6
"""A bound with such a denominator or a larger one is told to so many places."""
SynthesisFileNames = Mapping[str, str | None]
"""Paths by kind: output, certificate, svg."""


def synthesis_data(found: Synthesis, files: Mapping[str, str | None]) -> SynthesizeOutput:
    """The answer; ``files``: what was written, by kind (output, certificate, svg)."""
    return SynthesizeOutput(
        **vars(subject_data(found.setting)), **vars(answer_data(found, files)), outside=OUTSIDE
    )


def subject_data(setting: SynthesisSetting) -> SynthesisSubject:
    """What is asked about."""
    return SynthesisSubject(
        fabric=setting.fabric.name,
        ranks=setting.fabric.ranks,
        collective=shown_collective(setting.collective),
        root=setting.root if setting.rooted else None,
    )


def answer_data(found: Synthesis, files: SynthesisFileNames) -> SynthesisAnswer:
    """The answer to one question, with what was written of it."""
    size, bound = found.size, found.bound
    return SynthesisAnswer(
        status=found.status.value,
        reason=found.reason,
        detail=found.detail,
        steps=size.steps,
        rounds=size.rounds,
        chunks=size.chunks,
        rate=str(size.rate),
        bound=None if bound is None else str(bound.value),
        bound_kind=None if bound is None else bound.kind,
        optimal=found.optimal,
        class_=found.family,
        group_order=found.group_order,
        origin=found.origin or None,
        verdict=None if found.report is None else cast(_Shown, found.report.verdict),
        schedule=_schedule(found) if files.get("output") is None else None,
        files=SynthesisFiles(
            output=files.get("output"),
            certificate=files.get("certificate"),
            svg=files.get("svg"),
        ),
        searches=[_attempt(attempt) for attempt in found.attempts],
        wall_s=found.wall_s,
    )


def _schedule(found: Synthesis) -> Any:
    """The schedule file as data."""
    from p2smt.files.yaml_text import load_yaml_lines
    from p2smt.schedules.language.schedule_text import dump_schedule

    if found.schedule is None:
        return None
    text = dump_schedule(found.schedule)
    data, _ = load_yaml_lines(text, f"schedule {found.schedule.name}", len(text))
    return data


def _attempt(attempt: Attempt) -> SynthesisSearch:
    return SynthesisSearch(
        group_order=attempt.order,
        class_=attempt.family,
        status=cast(_Ended, attempt.status),
        why=attempt.why,
        wall_s=attempt.wall_s,
    )


def frontier_data(
    found: ScheduleFrontier,
    files: Mapping[int, Mapping[str, str | None]],
    bounds: Mapping[int | None, str],
) -> SynthesizeParetoOutput:
    """The points; ``files``: what was written for each number of steps with a schedule;
    ``bounds``: certificates of the others, and by None that of the limit.
    """
    limit = found.limit
    return SynthesizeParetoOutput(
        **vars(subject_data(found.setting)),
        status="proved" if found.proved else "open",
        ending=found.ending.value,
        unsearched=_unsearched(found),
        limit=None if limit is None else str(limit.value),
        limit_kind=None if limit is None else limit.kind,
        limit_certificate=bounds.get(None),
        points=[
            _point(point, files.get(point.steps, {}), bounds.get(point.steps))
            for point in found.points
        ],
        outside=OUTSIDE,
        wall_s=found.wall_s,
    )


def _point(
    point: FrontierPoint, files: Mapping[str, str | None], certificate: str | None
) -> SynthesizePoint:
    return SynthesizePoint(
        steps=point.steps,
        bound=str(point.bound.value),
        bound_kind=point.bound.kind,
        best=_text(point.best),
        gap=_text(point.gap),
        proved=point.proved,
        certificate=certificate or files.get("certificate"),
        found=None if point.found is None else answer_data(point.found, files),
    )


def unmade_subject(fabric: str, collective: str, root: int) -> SynthesisSubject:
    """What is asked about where there is no fabric yet."""
    return SynthesisSubject(
        fabric=fabric[:200],
        ranks=None,
        collective=shown_collective(collective),
        root=root if RULES[collective].rooted else None,
    )


def unmade_data(
    fabric: str, collective: str, root: int, size: ScheduleSize | None, wall_s: float
) -> SynthesizeOutput | SynthesizeParetoOutput:
    """That time came before there was a fabric; ``size``: what was asked, None: the frontier."""
    subject = unmade_subject(fabric, collective, root)
    if size is not None:
        answer = _unanswered(size, wall_s)
        return SynthesizeOutput(**vars(subject), **vars(answer), outside=OUTSIDE)
    return SynthesizeParetoOutput(
        **vars(subject),
        status="open",
        ending=UNMADE,
        unsearched=None,
        limit=None,
        limit_kind=None,
        limit_certificate=None,
        points=[],
        outside=OUTSIDE,
        wall_s=wall_s,
    )


def _unanswered(size: ScheduleSize, wall_s: float) -> SynthesisAnswer:
    return SynthesisAnswer(
        status="unknown",
        reason=Answer.UNKNOWN.value,
        detail=UNMADE,
        steps=size.steps,
        rounds=size.rounds,
        chunks=size.chunks,
        rate=str(size.rate),
        bound=None,
        bound_kind=None,
        optimal=False,
        class_=None,
        group_order=None,
        origin=None,
        verdict=None,
        schedule=None,
        files=SynthesisFiles(output=None, certificate=None, svg=None),
        searches=[],
        wall_s=wall_s,
    )


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


# What a synthesis found, for people.


OTHER_SIZES = "more chunks at the same R/C, or more rounds, may still have a schedule"
OUTSIDE = "switches that copy or add (NVLS, SHARP) and coding across chunks are outside every bound"
UNMADE = "the time limit came before the fabric was made"
_WORDS = {
    Status.FEASIBLE: "schedule",
    Status.INFEASIBLE: "none",
    Status.UNKNOWN: "unknown",
}


def synthesis_tables(found: Synthesis) -> RenderableType:
    """The answer, what proves it, and what was searched."""
    alike = Counter((a.order, a.family, a.status, a.why) for a in found.attempts)
    rows = [
        [_groups(order, count), _family_text(family), _WORDS[status], why]
        for (order, family, status, why), count in alike.items()
    ]
    searches = table("searches", ["symmetries", "class", "answer", ""], rows)
    shown: list[RenderableType] = ["", searches] if rows else []
    return Group(*_lines(found), *shown)


def _lines(found: Synthesis) -> Iterator[str]:
    yield printable(found.reason + (f": {found.detail}" if found.detail else ""))
    yield f"{setting_words(found.setting)}: {_size_words(found)}"
    yield from _bound_lines(found)
    if found.status is Answer.NO_SCHEDULE:
        yield from _rounds_words(found)
    if found.status is Answer.SCHEDULE:
        yield found_words(found)
        yield verdict_words(found.report)
    yield f"in {format_time(found.wall_s)}"


def _rounds_words(found: Synthesis) -> Iterator[str]:
    """Whether more rounds may help: whether it is proved that so many steps are too few."""
    if found.bound is not None and found.bound.kind is BoundKind.DISTANCE:
        return
    size, enough = found.size, enough_rounds(found.setting, found.size)
    of = f"{_many(size.steps, 'step')} of {_many(size.chunks, 'chunk')}"
    least = 0 if found.bound is None else math.ceil(found.bound.value * size.chunks)
    if size.rounds < least:
        yield f"next: --rounds {least}, the fewest that the bound allows"
    elif size.rounds < enough:
        yield f"next: --rounds {enough} asks whether {of} suffice in any number"
    else:
        yield f"no number of rounds makes {of} suffice"


def setting_words(setting: SynthesisSetting) -> str:
    """Such as ``all-gather on dgx1, 8 ranks``."""
    root = f" of root {setting.root}" if setting.rooted else ""
    fabric = printable(setting.fabric.name)
    ranks = counted(setting.fabric.ranks, "rank")
    return f"{shown_collective(setting.collective)}{root} on {fabric}, {ranks}"


def _size_words(found: Synthesis) -> str:
    size, of = found.size, CHUNKS_OF[found.setting.collective]
    return (
        f"{_many(size.steps, 'step')}, {_many(size.rounds, 'round')}, "
        f"{_many(size.chunks, 'chunk')} {of}: R/C = {size.rate}"
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _bound_lines(found: Synthesis) -> Iterator[str]:
    if found.bound is None:
        return
    if found.bound.kind is BoundKind.DISTANCE:
        yield f"bound: at least {_many(int(found.bound.value), 'step')} (distance)"
        return
    word = "optimal" if found.optimal else "bound"
    yield f"{word}: {bound_words(found.bound, found.size.steps)}"
    if found.status is Answer.NO_SCHEDULE and found.rate == found.bound.value:
        yield OTHER_SIZES
    yield OUTSIDE


def bound_words(bound: RateBound, steps: int | None) -> str:
    """What a bound on the rate says."""
    within = "any number of steps" if steps is None else _many(steps, "step")
    return f"R/C is at least {_least(bound)} in {within}, whatever the chunks ({bound.kind})"


def _least(bound: RateBound) -> str:
    """Its fraction; of one that time left with large numbers a decimal that is not above it."""
    value, places = bound.value, 10**_PLACES
    return str(value if value.denominator < _LONG else math.floor(value * places) / places)


def found_words(found: Synthesis) -> str:
    """By which search it was found."""
    if found.origin:
        return f"made without a search: {printable(found.origin)}"
    order = found.group_order or 1
    how = f"with a group of {roughly(order)} symmetries" if order > 1 else "without symmetry"
    return f"found {how}" + (f", class {_family_text(found.family)}" if found.family else "")


def verdict_words(report: Report | None) -> str:
    """What the check of a schedule says."""
    if report is None:
        return "not checked: it is no schedule file"
    if report.verdict is Verdict.VALID:
        return "verified: right in every interleaving"
    return f"not settled whether it is right in every interleaving: {report.reason}"


def _groups(order: int, count: int) -> str:
    """So many groups of an order, or ways in which they move chunks."""
    if order == 1:
        return "none"
    text = roughly(order)
    return f"group of {text}" if count == 1 else f"{count} groups of {text}"


def _family_text(family: ScheduleClass | None) -> str:
    return "" if family is None else f"{LETTERS[family]} ({family.value})"


def frontier_tables(found: ScheduleFrontier) -> RenderableType:
    """What is proved, the points with their proofs, and why there are no more."""
    of = CHUNKS_OF[found.setting.collective]
    columns = [">steps", ">bound", ">R/C", ">rounds", ">chunks", "class", "symmetries", "proof"]
    made = table(f"rounds a chunk by steps; chunks {of}", columns, map(_row, found.points))
    rows: list[RenderableType] = [made, ""] if found.points else []
    head = f"{_frontier_verdict(found)}: {setting_words(found.setting)}"
    return Group(head, *_ending_lines(found), "", *rows, *_made_lines(found), *_below(found))


def _frontier_verdict(found: ScheduleFrontier) -> str:
    """How much of a frontier is proved."""
    proved, every = sum(point.proved for point in found.points), len(found.points)
    if found.proved:
        return "proved frontier"
    if not found.schedules:
        return "no schedule found"
    head = "frontier" if found.ended else "unfinished frontier"
    return f"{head}, {proved} of {_many(every, 'point')} proved"


def _made_lines(found: ScheduleFrontier) -> Iterator[str]:
    """Of what the schedules were made that no search found."""
    for one in found.schedules:
        if one.origin:
            yield f"{_many(one.size.steps, 'step')}, made of {printable(one.origin)}"


def _row(point: FrontierPoint) -> list[str]:
    one = point.found
    if one is None:
        return [str(point.steps), _least(point.bound), *[""] * 5, proof_words(point)]
    if one.origin:
        how = "made"
    else:
        order = one.group_order or 1
        how = "none" if order == 1 else f"group of {roughly(order)}"
    return [
        *(str(point.steps), _least(point.bound), str(one.rate)),
        *(str(one.size.rounds), str(one.size.chunks), _family_text(one.family)),
        *(how, proof_words(point)),
    ]


def proof_words(point: FrontierPoint) -> str:
    """Whether the best in so many steps is proved, and by what; or the gap."""
    if point.gap is None:
        return "no schedule found"
    if not point.proved:
        gap = f"gap {plain(100 * float(point.gap), 2)} %"
        return gap if point.found else f"{gap} to fewer steps"
    optimal = f"optimal ({point.bound.kind})"
    return optimal if point.found else f"as good with fewer steps ({point.bound.kind})"


def _ending_lines(found: ScheduleFrontier) -> Iterator[str]:
    waits = found.waits or not (found.ended or too_many_messages(found.setting))
    more = "; more time may find better" if waits else ""
    yield f"ends: {found.ending.value}{more}"
    if why := _unsearched(found):
        yield why
    if found.limit is not None:
        yield f"limit: {bound_words(found.limit, None)}"


def unsearched_words(setting: SynthesisSetting, every: Iterable[int]) -> str | None:
    """In which of these numbers of steps, ascending, none is sought or searched, and why."""
    from p2smt.synthesis.best_rate import unsearched

    if too_many_messages(setting):
        return "too many ranks for a schedule to be made and checked: none was sought"
    least = next((steps for steps in every if unsearched(setting, steps)), None)
    if least is None:
        return None
    many = _many(least, "step")
    return f"too large to search in {many} or more: of known parts or one chunk"


def _unsearched(found: ScheduleFrontier) -> str | None:
    open_points = (point.steps for point in found.points if not point.proved)
    return unsearched_words(found.setting, open_points)


def _below(found: ScheduleFrontier) -> Iterator[str]:
    yield OUTSIDE
    yield f"in {format_time(found.wall_s)}"
