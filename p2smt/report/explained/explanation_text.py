"""`solve --explain` for a person: the nearest flips, and what holds for every hardware."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from p2smt.plans.explanation import (
    SEARCHED,
    Explanation,
    FlipOutcome,
    NearestFlip,
    PlacementClaim,
    ProgramClaim,
    ProgramVerdict,
    exact_flips,
)
from p2smt.plans.solution import Alternative, Solution
from p2smt.report.explained.sureness import by_subject, how_sure
from p2smt.report.explained.words import (
    changed_thing,
    flip_text,
    matrix_text,
    programs_text,
    times,
    way,
    winner,
)
from p2smt.report.tables import table

_SHOWN = 5
MODEL = "rings with one protocol, whatever latencies, bandwidths, payloads and calls cost"


def explanation_lines(
    solution: Solution, best: Alternative, found: Explanation
) -> list[RenderableType]:
    """The explanation of an answer, or why there is none."""
    if found.placements is None:
        return [f"not explained: {found.why}"]
    claims = "\n".join(
        [
            f"for every hardware ({MODEL}; {programs_text(solution.problem, many=True)})",
            *(f"  {line}" for line in _claims(solution, best, found)),
        ]
    )
    return [*_flips(found), "", claims]


def _flips(found: Explanation) -> Iterator[RenderableType]:
    flips = sorted(
        (flip for flip in found.flips if flip.factor is not None),
        key=lambda flip: (flip.request is not None, flip.factor),
    )
    if flips:
        rows = [[changed_thing(f.number), _by(f), winner(f)] for f in flips]
        title = "another answer wins once a number is off by (solved again on both sides)"
        yield table(title, ["changed", ">by", "wins"], rows)
        yield ""
    yield "\n".join([*_nearest(found), *_rest(found), *_unsettled(found)])


def _by(flip: NearestFlip) -> str:
    return f"{times(flip.factor or 1.0)} {way(flip.number)}"


def _nearest(found: Explanation) -> Iterator[str]:
    nearest, hardware = found.nearest(), found.nearest(hardware=True)
    if nearest is not None:
        yield f"nearest flip{_so_far(found.unsettled())}: {flip_text(nearest)}"
    if hardware is not None and hardware is not nearest:
        so_far = _so_far(found.unsettled(hardware=True))
        yield f"nearest flip by hardware{so_far}: {flip_text(hardware)}"


def _so_far(unsettled: int) -> str:
    return f" found so far ({unsettled} not settled)" if unsettled else ""


def _rest(found: Explanation) -> Iterator[str]:
    """What has no flip, by what would change; and how sure that is."""
    subjects = by_subject(found.flips)
    for subject, own in subjects.items():
        none = [flip for flip in own if flip.outcome is FlipOutcome.NONE]
        found_none = "none" if exact_flips(none) else "none found"
        if none and len(none) == len(own):
            yield f"{found_none} up to {SEARCHED}x for {subject}"
        elif none:
            yield f"{found_none} up to {SEARCHED}x for {subject}: {_listed(none)}"
    yield from how_sure(subjects)


def _listed(flips: Sequence[NearestFlip]) -> str:
    """What changes, and in which direction where it is not in both."""
    ways: dict[str, list[str]] = {}
    for flip in flips:
        ways.setdefault(changed_thing(flip.number), []).append(way(flip.number))
    return ", ".join(
        thing if len(found) > 1 else f"{thing} {found[0]}" for thing, found in ways.items()
    )


def _unsettled(found: Explanation) -> Iterator[str]:
    unsettled = [flip for flip in found.flips if flip.outcome is FlipOutcome.OPEN]
    for why in dict.fromkeys(flip.why for flip in unsettled):
        own = [flip for flip in unsettled if flip.why == why]
        more = f", and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
        yield f"not settled ({why}): {_listed(own[:_SHOWN])}{more}"


def _claims(solution: Solution, best: Alternative, found: Explanation) -> Iterator[str]:
    for claim in found.programs:
        yield from _program(claim, programs_text(solution.problem))
    if found.placements is not None:
        yield from _placement(solution, best, found.placements)
    if not found.linear:
        yield "the answer itself is not of this model: its algorithms are the topology's own"


def _program(claim: ProgramClaim, programs: str) -> Iterator[str]:
    """What holds of a program, held against ``programs``, such as those of some length."""
    few = len(claim.among)
    match claim.verdict:
        case ProgramVerdict.BEST:
            yield f"{claim.request}: no {programs} is ever cheaper on this placement"
        case ProgramVerdict.SUFFICIENT:
            yield f"{claim.request}: its program is one of {few} that are enough:"
            yield from (f"  {program}" for program in claim.among)
        case ProgramVerdict.OTHER if few == 1:
            yield f"{claim.request}: another program is enough, no {programs} is ever cheaper:"
            yield f"  {claim.among[0]}"
        case ProgramVerdict.OTHER:
            yield f"{claim.request}: its program is none of the {few} that are enough:"
            yield from (f"  {program}" for program in claim.among)
        case ProgramVerdict.OPEN:
            yield f"{claim.request}: not settled ({claim.why})"


def _placement(solution: Solution, best: Alternative, claim: PlacementClaim) -> Iterator[str]:
    if not claim.others:
        yield "the placement is the only one" if claim.whole else "no other placement was met"
        return
    what = "other placements" if claim.whole else "other placements met"
    where = "where latencies are no shorter further out"
    if claim.never:
        yield f"never better than this placement, {where}: {claim.never} of {claim.others} {what}"
    else:
        yield f"of {claim.others} {what} none could be excluded, even {where}"
    sizes = dict(zip(solution.problem.axis_names, best.matrix or (), strict=True))
    for axis in claim.axes:
        if claim.never:
            row = ",".join(map(str, sizes[axis]))
            yield f"  {axis} as [{row}]: no placement that has it otherwise is ever better"
    if claim.rivals and claim.never:
        shown = " ".join(matrix_text(one) for one in claim.rivals[:_SHOWN])
        more = f" and {len(claim.rivals) - _SHOWN} more" if len(claim.rivals) > _SHOWN else ""
        yield f"  not excluded: {shown}{more}"
    if claim.unsettled:
        yield f"  not settled for {claim.unsettled} of them"
