"""The verdict on a journal, as lines and as data: what was proved, and what was sampled."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Literal

from p2smt.parallel_search.coordinate import given_up_words
from p2smt.parallel_search.journal.journal_verification import JournalReport
from p2smt.parallel_search.journal.tree import HALVES
from p2smt.parallel_search.subproblem import SearchKind
from p2smt.report.outputs.verified import (
    GivenUpCube,
    JournalCover,
    JournalVerdicts,
    SoughtMember,
    VerifyJournalOutput,
)
from p2smt.units import counted

_MOST = 3
_LONGEST = 120


def journal_lines(report: JournalReport) -> Iterator[str]:
    """What is wrong, a line each; then the verdict and what it rests on."""
    yield from report.faults
    yield from report.again.disagreements
    yield f"{_verdict(report)}: {_answer(report)}"
    yield f"proved: {_proved(report)}"
    yield f"cover: {_cover(report)}"
    yield from _checked(report)
    yield f"verdicts of solvers: {_verdicts(report)}"
    yield from _records(report)


def _verdict(report: JournalReport) -> Literal["valid", "unproved", "invalid"]:
    if report.faults or report.again.disagreements:
        return "invalid"
    return "valid" if report.valid else "unproved"


def _proved(report: JournalReport) -> str:
    """Whether all of it was checked; if not, what was not."""
    if report.proved:
        return "yes"
    if _verdict(report) == "invalid":
        return "no, something is wrong"
    if not report.valid:
        return "no, the search is not settled"
    what = counted(report.unchecked, "verdict of a solver was", "verdicts of solvers were")
    return f"no, {what} not checked (--all solves them again)"


def _answer(report: JournalReport) -> str:
    """The answer that the records make."""
    found, header = report.answer, report.header
    if found is None:
        return "the cubes are none of this space"
    status = "shown by a member" if report.shown_by_member else found.status.value
    what = f"{header.skeleton.value} over {header.space}, {status}"
    if header.skeleton is SearchKind.ENUMERATE:
        return f"{what}: {counted(found.count or 0, 'member')}, digest {(found.digest or '')[:16]}"
    if not found.best:
        bound = "" if found.bound is None else f", bound {found.bound} ticks"
        return f"{what}: no member{bound}"
    first = found.best[0]
    if header.skeleton is SearchKind.DECIDE:
        return f"{what}: {_short(first.witness)}"
    others = f" and {len(found.best) - 1} more" if len(found.best) > 1 else ""
    return f"{what}: {first.value} ticks, bound {found.bound}, by {_short(first.witness)}{others}"


def _cover(report: JournalReport) -> str:
    cover, what = report.cover, report.counted
    if report.shown_by_member:
        return "not needed, as a member is shown"
    cubes = counted(len(cover.leaves), "closed cube")
    if cover.complete:
        every = f"the whole {what}" if what == HALVES else f"all {_share(cover.whole)} {what}"
        held = f"{cubes} hold {every}, each once"
        return f"proved; {held}, counted by a formula that makes no cubes"
    if cover.faults:
        return "refuted"
    every = f"the {what}" if what == HALVES else f"{_share(cover.whole)} {what}"
    held = f"{cubes} hold {_share(cover.counted)} of {every}"
    return f"not proved; {held}, {counted(len(cover.open), 'cube is', 'cubes are')} open"


def _checked(report: JournalReport) -> Iterator[str]:
    """What was computed again without a solver."""
    found = report.answer
    if found is None:
        return
    if report.exact and not report.faults and report.header.skeleton is SearchKind.ENUMERATE:
        yield "counts: of each closed cube, the same as by the formula"
    if found.by_formula:
        cubes = counted(len(found.by_formula), "cube")
        yield f"bounds: {cubes} set aside by formula, computed again"
    if report.members and not report.faults:
        members = counted(report.members, "member")
        yield f"members: {members} on record, each made again and compared"
    if report.given_up:
        yield given_up_words(report.given_up)
    if found.unsettled and not report.shown_by_member:
        shown = ["/".join(cube.path) or "the whole" for cube in found.unsettled[:_MOST]]
        more = "" if len(found.unsettled) <= _MOST else f" and {len(found.unsettled) - _MOST} more"
        yield f"not settled: {', '.join(shown)}{more}"


def _verdicts(report: JournalReport) -> str:
    again = report.again
    if not again.verdicts:
        return "none on record"
    if report.faults:
        return f"{again.verdicts} on record, none solved again, as something is wrong without that"
    if report.shown_by_member and not again.tried:
        return f"{again.verdicts} on record, not needed, as a member is shown (--all solves them)"
    solver = f" with {report.solver}" if report.solver else ""
    other = ", which is another than the search had" if report.another else ""
    text = f"{again.tried} of {again.verdicts} solved again{solver}{other if again.tried else ''}"
    counts = [f"{again.agreed} agree"] if again.tried else []
    counts += [f"{len(again.disagreements)} disagree"] if again.disagreements else []
    counts += [f"{again.unsettled} without an answer in time"] if again.unsettled else []
    taken = again.verdicts - again.tried
    counts += [f"{taken} taken at their word (--all solves them again)"] if taken else []
    return "; ".join([text, *counts])


def _records(report: JournalReport) -> Iterator[str]:
    if report.repeated:
        yield f"late or double: {counted(report.repeated, 'verdict')}, in agreement with the first"
    if report.torn:
        yield f"torn: a last line of {counted(report.torn, 'byte')} is left out"


def _short(witness: str) -> str:
    return witness if len(witness) <= _LONGEST else f"{witness[:_LONGEST]} .."


def _share(share: Fraction) -> str:
    return f"{share.numerator:,}" if share.denominator == 1 else str(share)


def journal_data(report: JournalReport) -> VerifyJournalOutput:
    """The verdict as data."""
    found, header = report.answer, report.header
    best = [] if found is None else found.best
    return VerifyJournalOutput(
        verdict=_verdict(report),
        proved=report.proved,
        violations=report.faults,
        space=header.space,
        skeleton=header.skeleton.value,
        top=header.top,
        scale=header.scale,
        status=None if found is None else found.status.value,
        best=[SoughtMember(value=one.value, witness=one.witness) for one in best],
        bound=None if found is None else found.bound,
        count=None if found is None else found.count,
        digest=None if found is None else found.digest,
        cover=_cover_data(report),
        unsettled=0 if found is None else len(found.unsettled),
        given_up=[GivenUpCube(cube=one.path, deaths=deaths) for one, deaths in report.given_up],
        by_formula=0 if found is None else len(found.by_formula),
        members=report.members,
        verdicts=_verdicts_data(report),
        records=report.records,
        repeated=report.repeated,
        torn_bytes=report.torn,
        versions=dict(header.versions),
    )


def _cover_data(report: JournalReport) -> JournalCover:
    cover = report.cover
    return JournalCover(
        complete=cover.complete,
        cubes=len(cover.leaves),
        open=len(cover.open),
        counted_in=report.counted,
        counted=str(cover.counted),
        whole=str(cover.whole),
    )


def _verdicts_data(report: JournalReport) -> JournalVerdicts:
    again = report.again
    return JournalVerdicts(
        recorded=again.verdicts,
        solved_again=again.tried,
        agreed=again.agreed,
        unchecked=report.unchecked,
        out_of_time=again.unsettled,
        solver=report.solver,
        another=report.another,
        disagreements=again.disagreements,
    )
