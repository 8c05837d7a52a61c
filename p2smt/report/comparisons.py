"""What an answer of `solve` is compared with: the next best ones, rank orders, other
bandwidths and call costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType

from p2smt.plans.solution import Alternative, Perturbation, RequestAnswer, Solution
from p2smt.report.tables import letters, table
from p2smt.result import Status
from p2smt.units import format_bytes, format_time


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
    ratios = [f"{one.objective_s / best_s:.3g}x" for one in solution.alternatives]
    return _placements(title, "ratio", solution.alternatives, ratios, named)


def _near_table(solution: Solution, near: Sequence[Alternative], named: Mapping[str, str]) -> Group:
    """The placements near the optimum, each with its gap to the answer."""
    best_s = max(solution.alternatives[0].objective_s, 1e-300)
    gaps = [f"{100 * max(0.0, one.objective_s / best_s - 1):.3g} %" for one in near]
    return _placements(near_line(solution), "gap", near, gaps, named)


def _placements(
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
        ]
        for n, (one, text) in enumerate(zip(placements, beside, strict=True), start=1)
    ]
    return table(title, [">rank", ">time", f">{compared}", "placement", ">peak", "programs"], rows)


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
    within = f"{100 * near.within:.6g} %"
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
            rows.append([name, format_time(order.objective_s), f"{ratio:.4g}x"])
    return table("compared with this answer", ["layout", ">time", ">ratio"], rows)


def _cases(cases: Sequence[Perturbation]) -> Group:
    rows = [
        [
            f"{case.level or 'cost of a call'} x {case.factor:g}",
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
    return [_cases(cases), _stability(cases)]


def _verdict(case: Perturbation) -> str:
    if case.holds is False:
        least = "" if case.status is Status.OPTIMAL else "at least "
        return f"no, {least}{_slower(case):.3g} % slower"
    return "yes" if case.status is Status.OPTIMAL else f"not settled ({case.status.value})"


def _slower(case: Perturbation) -> float:
    if case.optimum_s <= 0:
        return 0.0
    return 100 * (case.winner_s / case.optimum_s - 1)


def _stability(cases: Sequence[Perturbation]) -> str:
    worst = max(cases, key=_slower)
    held = sum(case.holds is True for case in cases)
    text = f"proved to stay the best in {held} of {len(cases)} cases"
    return text if worst.holds else f"{text}; at worst {_slower(worst):.3g} % slower than possible"
