"""What an answer of `solve` is compared with: the next best ones, rank orders, other bandwidths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType

from p2smt.plans.solution import Alternative, Perturbation, RequestAnswer, Solution
from p2smt.report.tables import letters, table
from p2smt.result import Status
from p2smt.units import format_bytes, format_time


def alternatives(solution: Solution) -> list[RenderableType]:
    """The ranking, its programs by letter, and the programs themselves, each once."""
    programs = [r.program for a in solution.alternatives for r in a.requests if r.program]
    named = {str(p): letters(n) for n, p in enumerate(dict.fromkeys(programs))}
    rows = [
        [
            str(n),
            format_time(a.objective_s),
            f"{a.objective_s / max(solution.alternatives[0].objective_s, 1e-300):.3g}x",
            a.placement.text(),
            format_bytes(a.peak_bytes),
            " ".join(_letter(named, r) for r in a.requests),
        ]
        for n, a in enumerate(solution.alternatives, start=1)
    ]
    columns = [">rank", ">time", ">ratio", "placement", ">peak", "programs"]
    proved = solution.ranking is Status.COMPLETE
    title = "best placements" + ("" if proved else " found; the search stopped before it was done")
    parts: list[RenderableType] = [table(title, columns, rows), ""]
    if named:
        legend = [[letter, text] for text, letter in named.items()]
        split = any(r.chunks > 1 for a in solution.alternatives for r in a.requests)
        title = "their programs, in the order of the requests" + "; A/M: in M chunks" * split
        parts += [table(title, ["", ""], legend), ""]
    return parts


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
            f"{case.level} x {case.factor:g}",
            format_time(case.winner_s),
            format_time(case.optimum_s),
            _verdict(case),
        ]
        for case in cases
    ]
    columns = ["bandwidth", ">this answer", ">best there", "still the best"]
    return table("if the bandwidth of a level is off", columns, rows)


def sensitivity(cases: Sequence[Perturbation]) -> list[RenderableType]:
    """How the answer stands once a bandwidth is off, and one line on all of it."""
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
