"""What `solve` tells a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType

from p2smt.collectives.names import RequestKind
from p2smt.parallelism.request import Problem
from p2smt.plans.explanation import (
    SEARCHED,
    Explanation,
    NearestTippingPoint,
    PlacementClaim,
    ProgramClaim,
    ProgramVerdict,
    TippingPointOutcome,
    exact_tipping_points,
)
from p2smt.plans.ranges import range_of, request_ranges
from p2smt.plans.restrictions import conflict_text
from p2smt.plans.solution import (
    Alternative,
    PayloadSplit,
    Perturbation,
    RankOrder,
    RequestAnswer,
    Solution,
    faster_orders,
)
from p2smt.programs.program import basis_text
from p2smt.report.costs.request_table import (
    RANGE,
    after_comma,
    answered,
    gain_lines,
    layout_table,
    peak_line,
    range_cell,
    request_table,
)
from p2smt.report.tables import bound_text, letters, table
from p2smt.report.tipping_points import (
    changed_thing,
    matrix_text,
    programs_text,
    times,
    tipping_point_text,
    way,
    winner,
)
from p2smt.result import Status
from p2smt.units import format_bytes, format_time, plain

_SHARDS_SHOWN = 16


def _counted(solution: Solution) -> bool:
    """Whether a line says how many placements are near: not above their list, nor "at least 0"."""
    near = solution.near
    if near is None or (near.listed and near.alternatives):
        return False
    return near.listed or near.status is Status.COMPLETE or bool(near.alternatives)


def solution_tables(solution: Solution) -> RenderableType:
    """The answer, its requests step by step, the next best ones, and what it is compared with."""
    best = solution.best
    if best is None:
        return nothing_text(solution)
    parts: list[RenderableType] = [_headline(solution, best), "", _matrix_table(solution, best), ""]
    topology = solution.problem.topology
    ranges = request_ranges(solution.problem, best)
    requests = [
        answered(answer, topology, within)
        for answer, within in zip(best.requests, ranges, strict=True)
    ]
    parts += [request_table(requests), "", *_notes(solution, best)]
    parts += alternatives(solution)
    if _counted(solution):
        parts += [near_line(solution), ""]
    parts.append(comparison_table(solution, best))
    if solution.sensitivity:
        parts += ["", *sensitivity(solution.sensitivity)]
    if solution.splits is not None:
        parts += ["", "splits", *split_texts(solution, best)]
    if solution.explanation is not None:
        parts += ["", *explanation_lines(solution, best, solution.explanation)]
    return Group(*parts)


def split_texts(solution: Solution, best: Alternative) -> Iterator[str]:
    """Of each request the parts that are faster than its program, and what no split gains."""
    if not solution.splits:
        yield "no request of this answer has programs on a matrix"
    for one in solution.splits or ():
        answer, found = best.requests[one.request], ""
        if one.parts:
            saved = f"{plain(100 * (1 - one.seconds / answer.seconds), 3)} % less"
            found = f"{format_time(one.seconds)} in {len(one.parts)} parts at once, {saved}; "
        yield f"{answer.label}: {found}{_gains_at_most(one, solution.problem.topology.names)}"
        yield from (f"  {part.share} {part.answer.program}" for part in one.parts)


def _gains_at_most(one: PayloadSplit, levels: Sequence[str]) -> str:
    """What proves how much faster any split can be, and how near a single program comes."""
    if one.least_s is None:
        return "what a split gains at most is open, as not all programs are known"
    more = plain(max(0.0, 100 * (one.seconds / one.least_s - 1)), 2)
    text = f"no{' other' * bool(one.parts)} split gains more than {more} %"
    if not one.by_bytes:
        return f"{text} (latencies of its steps)"
    worth = ", ".join(f"{name} {y}" for name, y in zip(levels, one.prices, strict=True) if y)
    near = plain(100 * (one.one_per_split - 1), 2)
    return f"{text} (prices {worth}), {near} % over one program in ever more chunks"


def nothing_text(solution: Solution) -> str:
    """Why there is no answer, with what is proved all the same."""
    if solution.interrupted:
        text = "interrupted: no plan had been found"
    elif solution.status is Status.INFEASIBLE:
        return _infeasible(solution)
    elif solution.limits.time_limit_s is None:
        text = f"{solution.status.value}: no plan was found, nor a proof that there is none"
    else:
        text = f"{solution.status.value}: no plan was found within the time limit; give it more"
    bound = solution.bound_s
    return text + (f"\nproved bound {format_time(bound)}" if bound > 0 else "")


def _infeasible(solution: Solution) -> str:
    """The restrictions that leave no answer, if they are known."""
    if not solution.conflict:
        return "infeasible: no matrix obeys the restrictions with a program for every request"
    return f"infeasible: {conflict_text(solution.conflict)}"


def _headline(solution: Solution, best: Alternative) -> str:
    what = "total" if solution.problem.objective == "sum" else "largest request"
    lines = [
        f"{solution.status.value}: {format_time(best.objective_s)} per iteration ({what})"
        + after_comma(range_of(solution.problem, best)),
        bounds_text(solution, best),
        peak_line(best.peak_bytes),
    ]
    lines += gain_lines(solution)
    if solution.interrupted:
        lines.insert(0, "interrupted: the best found so far")
    lines += [f"note: {note}" for note in (*solution.notes, *order_notes(solution))]
    return "\n".join(lines)


def bounds_text(solution: Solution, best: Alternative) -> str:
    """The bounds below the answer with their gaps."""
    bounds = bound_text("proved", solution.bound_s, best.objective_s)
    if not solution.bounded:
        return bounds
    return f"{bounds}, {bound_text('link-level', solution.physical_bound_s, best.objective_s)}"


def order_notes(solution: Solution) -> Iterator[str]:
    """The rank orders that are faster than the answer, and why none of them is it."""
    for order in faster_orders(solution):
        faster = format_time(order.objective_s)
        yield f"the {order.name} layout is faster ({faster}), {_kept_out(order)}"


def _kept_out(order: RankOrder) -> str:
    """Why a faster rank order is not the answer."""
    if order.breaks:
        return f"but the restrictions exclude it: {'; '.join(order.breaks)}"
    if order.matrix is not None:
        return "but the search ended before it was tried"
    return "but no matrix expresses it, and of such orders only the default layout is tried"


def _matrix_table(solution: Solution, best: Alternative) -> Group:
    sizes = [(axis.name, axis.size) for axis in solution.problem.axes]
    names = solution.problem.topology.names
    return layout_table(sizes, names, best.matrix, best.placement.text())


def _notes(solution: Solution, best: Alternative) -> list[str]:
    notes = checked_notes(solution, best)
    return [*notes, ""] if notes else []


def checked_notes(solution: Solution, best: Alternative) -> list[str]:
    """What the programs were checked on, why none is missed, and the shards of each group."""
    with_programs = [answer for answer in best.requests if answer.program is not None]
    hows = dict.fromkeys(answer.checked for answer in with_programs)
    notes = [
        f"checked on {how}"
        + (f": {', '.join(str(p.request) for p in with_programs if p.checked == how)}")
        * (len(hows) > 1)
        for how in hows
    ]
    if notes and solution.status is Status.OPTIMAL and solution.bases:
        notes = _with_basis(notes, basis_text(solution.bases))
    notes += [
        f"{answer.request}: {_shard_order(answer, by_rank=best.rank_list is not None)}"
        for answer in with_programs
        if answer.request.kind is RequestKind.REDUCE_SCATTER
        and answer.shards != tuple(range(answer.hierarchy.size))
    ]
    return notes


def _with_basis(notes: list[str], basis: str) -> list[str]:
    """In one line with what was checked, if that is one."""
    if len(notes) == 1:
        return [f"{notes[0]}; programs {basis}"]
    return [*notes, f"programs {basis}"]


def _shard_order(answer: RequestAnswer, by_rank: bool) -> str:
    if answer.shards is None:
        return f"the order of the shards is not computed for groups of {answer.hierarchy.size}"
    order = "rank" if by_rank else "device"
    return f"the members of a group, in {order} order, end with shards {_listed(answer.shards)}"


def _listed(shards: Sequence[int]) -> str:
    shown = ", ".join(map(str, shards[:_SHARDS_SHOWN]))
    return shown if len(shards) <= _SHARDS_SHOWN else f"{shown}, .. ({len(shards)} in all)"


# What an answer of `solve` is compared with: the next best ones, rank orders, other
# bandwidths and call costs.


def alternatives(solution: Solution) -> list[RenderableType]:
    """The ranking and the placements near the optimum, with their programs by letter.

    The programs themselves follow, each once.
    """
    ranked = solution.alternatives if len(solution.alternatives) > 1 else ()
    near = solution.near.alternatives if solution.near and solution.near.listed else ()
    answers = [answer for one in (*ranked, *near) for answer in one.requests]
    programs = dict.fromkeys(answer.program for answer in answers if answer.program)
    named = {str(program): letters(n) for n, program in enumerate(programs)}
    parts: list[RenderableType] = []
    if ranked:
        parts += [_ranking(solution, named), ""]
    if near:
        parts += [_near_table(solution, near, named), ""]
    if named:
        parts += [_legend(named, answers), ""]
    return parts


def _ranking(solution: Solution, named: Mapping[str, str]) -> Group:
    """The best placements, each with its time over that of the first."""
    proved = solution.ranking is Status.COMPLETE
    title = "best placements" + ("" if proved else " found; the search stopped before it was done")
    best_s = max(solution.alternatives[0].objective_s, 1e-300)
    ratios = [f"{plain(one.objective_s / best_s)}x" for one in solution.alternatives]
    return _placements(solution.problem, title, "ratio", solution.alternatives, ratios, named)


def _near_table(solution: Solution, near: Sequence[Alternative], named: Mapping[str, str]) -> Group:
    """The placements near the optimum, each with its gap to the answer."""
    best_s = max(solution.alternatives[0].objective_s, 1e-300)
    gaps = [f"{plain(100 * max(0.0, one.objective_s / best_s - 1))} %" for one in near]
    return _placements(solution.problem, near_line(solution), "gap", near, gaps, named)


def _placements(
    problem: Problem,
    title: str,
    compared: str,
    placements: Sequence[Alternative],
    beside: Sequence[str],
    named: Mapping[str, str],
) -> Group:
    """A line per placement; ``beside`` compares each with the answer."""
    rows = [
        [
            str(n),
            format_time(one.objective_s),
            text,
            one.placement.text(),
            format_bytes(one.peak_bytes),
            " ".join(_letter(named, r) for r in one.requests),
            range_cell(range_of(problem, one)),
        ]
        for n, (one, text) in enumerate(zip(placements, beside, strict=True), start=1)
    ]
    columns = [">rank", ">time", f">{compared}", "placement", ">peak", "programs", RANGE]
    return table(title, columns, rows)


def _legend(named: Mapping[str, str], answers: Sequence[RequestAnswer]) -> Group:
    """The programs by their letters."""
    split = any(answer.chunks > 1 for answer in answers)
    title = "their programs, in the order of the requests" + "; A/M: in M chunks" * split
    return table(title, ["", ""], [[letter, text] for text, letter in named.items()])


def near_line(solution: Solution) -> str:
    """How many placements are near the optimum, or at least are; empty where none were sought.

    Without a proof of the best they are near the bound that is proved.
    """
    near = solution.near
    if near is None:
        return ""
    least = "" if near.status is Status.COMPLETE else "at least "
    within = f"{plain(100 * near.within, 6)} %"
    best = "best" if solution.status is Status.OPTIMAL else "proved bound"
    return f"placements within {within} of the {best}: {least}{len(near.alternatives)}"


def _letter(letters: Mapping[str, str], answer: RequestAnswer) -> str:
    """A program's letter with its chunks; a dash where there is no program."""
    if answer.program is None:
        return "-"
    return letters[str(answer.program)] + f"/{answer.chunks}" * (answer.chunks > 1)


def comparison_table(solution: Solution, best: Alternative) -> Group:
    """The default rank order, and the user's own, by their ratio to the answer."""
    rows = []
    for order in (solution.default, solution.compared):
        if order is not None:
            ratio = order.objective_s / best.objective_s if best.objective_s else 1.0
            name = f"{order.name} layout, one collective each"
            cells = (
                format_time(order.objective_s),
                f"{plain(ratio, 4)}x",
                range_cell(order.within),
            )
            rows.append([name, *cells])
    return table("compared with this answer", ["layout", ">time", ">ratio", RANGE], rows)


def _cases(cases: Sequence[Perturbation]) -> Group:
    rows = [
        [
            f"{case.level or 'cost of a call'} x {plain(case.factor, 6)}",
            format_time(case.winner_s),
            format_time(case.optimum_s),
            _verdict(case),
        ]
        for case in cases
    ]
    calls = any(case.what == "call" for case in cases)
    title = "if the bandwidth of a level" + ", or the cost of a call," * calls + " is off"
    columns = ["changed" if calls else "bandwidth", ">this answer", ">best there", "still the best"]
    return table(title, columns, rows)


def sensitivity(cases: Sequence[Perturbation]) -> list[RenderableType]:
    """How the answer stands once something is off, and one line on all of it."""
    return [_cases(cases), stability(cases)]


def _verdict(case: Perturbation) -> str:
    if case.holds is False:
        least = "" if case.status is Status.OPTIMAL else "at least "
        return f"no, {least}{plain(_slower(case))} % slower"
    return "yes" if case.status is Status.OPTIMAL else f"not settled ({case.status.value})"


def _slower(case: Perturbation) -> float:
    if case.optimum_s <= 0:
        return 0.0
    return 100 * (case.winner_s / case.optimum_s - 1)


def stability(cases: Sequence[Perturbation]) -> str:
    """In how many cases the answer stays the best, and what it loses at worst."""
    worst = max(cases, key=_slower)
    held = sum(case.holds is True for case in cases)
    text = f"proved to stay the best in {held} of {len(cases)} cases"
    return (
        text if worst.holds else f"{text}; at worst {plain(_slower(worst))} % slower than possible"
    )


# `solve --explain` for a person: the nearest flips, and what holds for every hardware.


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


def _by(flip: NearestTippingPoint) -> str:
    return f"{times(flip.factor or 1.0)} {way(flip.number)}"


def _nearest(found: Explanation) -> Iterator[str]:
    nearest, hardware = found.nearest(), found.nearest(hardware=True)
    if nearest is not None:
        yield f"nearest flip{_so_far(found.unsettled())}: {tipping_point_text(nearest)}"
    if hardware is not None and hardware is not nearest:
        so_far = _so_far(found.unsettled(hardware=True))
        yield f"nearest flip by hardware{so_far}: {tipping_point_text(hardware)}"


def _so_far(unsettled: int) -> str:
    return f" found so far ({unsettled} not settled)" if unsettled else ""


def _rest(found: Explanation) -> Iterator[str]:
    """What has no flip, by what would change; and how sure that is."""
    subjects = by_subject(found.flips)
    for subject, own in subjects.items():
        none = [flip for flip in own if flip.outcome is TippingPointOutcome.NONE]
        found_none = "none" if exact_tipping_points(none) else "none found"
        if none and len(none) == len(own):
            yield f"{found_none} up to {SEARCHED}x for {subject}"
        elif none:
            yield f"{found_none} up to {SEARCHED}x for {subject}: {_changes_listed(none)}"
    yield from how_sure(subjects)


def _changes_listed(flips: Sequence[NearestTippingPoint]) -> str:
    """What changes, and in which direction where it is not in both."""
    ways: dict[str, list[str]] = {}
    for flip in flips:
        ways.setdefault(changed_thing(flip.number), []).append(way(flip.number))
    return ", ".join(
        thing if len(found) > 1 else f"{thing} {found[0]}" for thing, found in ways.items()
    )


def _unsettled(found: Explanation) -> Iterator[str]:
    unsettled = [flip for flip in found.flips if flip.outcome is TippingPointOutcome.OPEN]
    for why in dict.fromkeys(flip.why for flip in unsettled):
        own = [flip for flip in unsettled if flip.why == why]
        more = f", and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
        yield f"not settled ({why}): {_changes_listed(own[:_SHOWN])}{more}"


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
        case ProgramVerdict.WARM_STARTS:
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
    if claim.never_better:
        share = f"{claim.never_better} of {claim.others} {what}"
        yield f"never better than this placement, {where}: {share}"
    else:
        yield f"of {claim.others} {what} none could be excluded, even {where}"
    sizes = dict(zip(solution.problem.axis_names, best.matrix or (), strict=True))
    for axis in claim.axes:
        if claim.never_better:
            row = ",".join(map(str, sizes[axis]))
            yield f"  {axis} as [{row}]: no placement that has it otherwise is ever better"
    if claim.rivals and claim.never_better:
        shown = " ".join(matrix_text(one) for one in claim.rivals[:_SHOWN])
        more = f" and {len(claim.rivals) - _SHOWN} more" if len(claim.rivals) > _SHOWN else ""
        yield f"  not excluded: {shown}{more}"
    if claim.unsettled:
        yield f"  not settled for {claim.unsettled} of them"


# How sure what is said of flips is: proved, tried at some factors, or open.


Subjects = Mapping[str, Sequence[NearestTippingPoint]]
"""The flips of the placement and of each program, by its name in words."""


def by_subject(flips: Sequence[NearestTippingPoint]) -> Subjects:
    """Flips by what would change, in their order."""
    found: dict[str, list[NearestTippingPoint]] = {}
    for flip in flips:
        subject = "the placement" if flip.request is None else f"the program of {flip.request}"
        found.setdefault(subject, []).append(flip)
    return found


def how_sure(subjects: Subjects) -> Iterator[str]:
    """One line each for what was tried at some factors, at the largest only, and what is exact.

    Nothing is called exact of a placement or a program of which a flip is open.
    """
    guessed = {name: _guessed(flips) for name, flips in subjects.items()}
    tried = {name: [f for f in flips if f.tried] for name, flips in guessed.items()}
    if any(tried.values()):
        counts = [flip.tried for flips in tried.values() for flip in flips]
        yield (
            f"tried {_span(counts)} factors of each number up to {SEARCHED}x"
            f"{_of(tried, subjects)}; between them none was looked for"
        )
    blind = {name: [f for f in flips if not f.tried] for name, flips in guessed.items()}
    if any(blind.values()):
        where = _of(blind, subjects)
        yield f"only solved again at {SEARCHED}x{where}; nearer nothing was looked for"
    exact = {name: flips if exact_tipping_points(flips) else [] for name, flips in subjects.items()}
    if any(exact.values()):
        yield f"exact{_of(exact, subjects)}: none is nearer, and where none is named there is none"


def _guessed(flips: Sequence[NearestTippingPoint]) -> list[NearestTippingPoint]:
    return [f for f in flips if not f.proved and f.outcome is not TippingPointOutcome.OPEN]


def _of(some: Subjects, subjects: Subjects) -> str:
    """For which subjects something holds; nothing where it holds for all."""
    named = [name for name, flips in some.items() if flips]
    return "" if len(named) == len(subjects) else f" for {', '.join(named)}"


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"
