"""What a synthesis found, as data for ``--json``: fractions are texts."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from p2smt.collectives.contract import RULES
from p2smt.report.schedules.synthesis_text import OUTSIDE, UNMADE
from p2smt.search.schedule.synthesis.answer import Answer, Attempt, Synthesis
from p2smt.search.schedule.synthesis.question import (
    ScheduleSize,
    SynthesisSetting,
    shown_collective,
)

if TYPE_CHECKING:
    from p2smt.problems.sums import ScheduleClass
    from p2smt.search.schedule.bounds.rate import RateBound
    from p2smt.search.schedule.frontier import FrontierPoint, ScheduleFrontier


def synthesis_data(found: Synthesis, files: dict[str, str | None]) -> dict[str, Any]:
    """The answer; ``files``: what was written, by kind (output, certificate, svg)."""
    return {**_setting(found.setting), **_answer(found, files), "outside": OUTSIDE}


def _setting(setting: SynthesisSetting) -> dict[str, Any]:
    return {
        "fabric": setting.fabric.name,
        "ranks": setting.fabric.ranks,
        "collective": shown_collective(setting.collective),
        "root": setting.root if setting.rooted else None,
    }


def _answer(found: Synthesis, files: dict[str, str | None]) -> dict[str, Any]:
    return {
        "status": found.status.value,
        "reason": found.reason,
        "detail": found.detail,
        **_size(found.size),
        **_bound("bound", found.bound),
        "optimal": found.optimal,
        "class": _family(found.family),
        "group_order": found.group_order,
        "verdict": None if found.report is None else found.report.verdict.value,
        "schedule": _schedule(found) if files.get("output") is None else None,
        "files": {kind: files.get(kind) for kind in ("output", "certificate", "svg")},
        "searches": [_attempt(attempt) for attempt in found.attempts],
        "wall_s": found.wall_s,
    }


def _size(size: ScheduleSize) -> dict[str, Any]:
    return {
        "steps": size.steps,
        "rounds": size.rounds,
        "chunks": size.chunks,
        "rate": str(size.rate),
    }


def _bound(name: str, bound: RateBound | None) -> dict[str, str | None]:
    return {
        name: None if bound is None else str(bound.value),
        f"{name}_kind": None if bound is None else bound.kind.value,
    }


def _family(family: ScheduleClass | None) -> str | None:
    return None if family is None else family.value


def _schedule(found: Synthesis) -> Any:
    """The schedule file as data."""
    from p2smt.files.yaml_text import load_yaml_lines
    from p2smt.schedules.language.write import dump_schedule

    if found.schedule is None:
        return None
    text = dump_schedule(found.schedule)
    data, _ = load_yaml_lines(text, f"schedule {found.schedule.name}", len(text))
    return data


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "group_order": attempt.order,
        "class": _family(attempt.family),
        "status": attempt.status.value,
        "why": attempt.why,
        "wall_s": attempt.wall_s,
    }


def frontier_data(
    found: ScheduleFrontier,
    files: dict[int, dict[str, str | None]],
    bounds: Mapping[int | None, str],
) -> dict[str, Any]:
    """The points; ``files``: what was written for each number of steps with a schedule;
    ``bounds``: certificates of the others, and by None that of the limit.
    """
    return {
        **_setting(found.setting),
        "status": "proved" if found.proved else "open",
        "ending": found.ending.value,
        **_bound("limit", found.limit),
        "limit_certificate": bounds.get(None),
        "points": [
            _point(point, files.get(point.steps, {}), bounds.get(point.steps))
            for point in found.points
        ],
        "outside": OUTSIDE,
        "wall_s": found.wall_s,
    }


def _point(
    point: FrontierPoint, files: dict[str, str | None], certificate: str | None
) -> dict[str, Any]:
    return {
        "steps": point.steps,
        **_bound("bound", point.bound),
        "best": _text(point.best),
        "gap": _text(point.gap),
        "proved": point.proved,
        "certificate": certificate or files.get("certificate"),
        "found": None if point.found is None else _answer(point.found, files),
    }


def unmade_data(
    fabric: str, collective: str, root: int, size: ScheduleSize | None, wall_s: float
) -> dict[str, Any]:
    """That time came before there was a fabric; ``size``: what was asked, None: the frontier."""
    rooted = RULES[collective].rooted
    subject = {
        "fabric": fabric[:200],
        "ranks": None,
        "collective": shown_collective(collective),
        "root": root if rooted else None,
    }
    ended: dict[str, Any]
    if size is None:
        ended = {
            "status": "open",
            "ending": UNMADE,
            **_bound("limit", None),
            "limit_certificate": None,
            "points": [],
        }
    else:
        ended = {**_UNANSWERED, "reason": Answer.UNKNOWN.value, "detail": UNMADE, **_size(size)}
    return {**subject, **ended, "outside": OUTSIDE, "wall_s": wall_s}


_NOTHING = ("bound", "bound_kind", "class", "group_order", "verdict", "schedule")
_UNANSWERED: dict[str, Any] = {
    "status": Answer.UNKNOWN.value,
    "optimal": False,
    **dict.fromkeys(_NOTHING),
    "files": dict.fromkeys(("output", "certificate", "svg")),
    "searches": [],
}


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)
