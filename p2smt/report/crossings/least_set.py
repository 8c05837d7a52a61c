"""Least sufficient sets, and the verdict on a certificate, for people and for ``--json``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from p2smt.cost.symbolic.form import CostForm
from p2smt.plans.crossings.certificate import EqualPrograms, LeastSet
from p2smt.plans.crossings.check import CHECKED, COMPLETENESS, LeastSetReport
from p2smt.problems.crossing import Coefficients
from p2smt.report.costs.symbolic_text import form_data, form_latex, form_text
from p2smt.result import Status


def setting_words(found: LeastSet) -> str:
    """Such as ``all-reduce over 4 x 8, ports 8,1, rings``."""
    setting = found.setting
    size = " x ".join(map(str, setting.factors))
    ports = ",".join(map(str, setting.ports))
    calls = "a cost per call c" if setting.calls else "no cost per call"
    return f"{setting.kind.value} over {size}, ports {ports}, rings, {calls}"


def least_set_lines(found: LeastSet, latex: bool = False) -> Iterator[str]:
    """The members with their costs, then what proves them."""
    yield setting_words(found)
    for number, member in enumerate(found.members if found.status is Status.OPTIMAL else (), 1):
        one = found.costs[member]
        more = len(one.programs) - 1
        yield f"{number}. {one.programs[0]}" + (f"  (and {more} of equal cost)" if more else "")
        yield f"   {_shown(found, one, latex)}"
        point = found.alone(member)
        if point is not None:
            yield f"   alone best at {_at(found, point)}"
    yield _verdict(found)
    if found.status is not Status.OPTIMAL:
        yield from (f"open: {found.costs[n].programs[0]}" for n in found.open)


def _shown(found: LeastSet, one: EqualPrograms, latex: bool) -> str:
    levels = found.setting.scene.topology.names
    return (form_latex if latex else form_text)(shown_form(found, one), levels)


def shown_form(found: LeastSet, one: EqualPrograms) -> CostForm:
    """The cost without calls, where these cost nothing."""
    return one.form if found.setting.calls else replace(one.form, calls=0)


def _at(found: LeastSet, point: Coefficients) -> str:
    named = zip(found.setting.unknowns, point, strict=True)
    return ", ".join(f"{name} = {value}" for name, value in named)


def _verdict(found: LeastSet) -> str:
    total = f"{found.programs} programs of {len(found.costs)} different costs"
    if found.status is Status.OPTIMAL:
        cases = sum(len(one.refutation.cases) for one in found.exclusions)
        count = len(found.members)
        return (
            f"proved: {count} of {total} {'is' if count == 1 else 'are'} always enough, and no "
            f"fewer; {len(found.exclusions)} costs excluded by multipliers in {cases} cases"
        )
    if not found.costs:
        return "unknown: the time limit came before the programs were listed"
    return f"unknown: the time limit came; of {total} {len(found.open)} are open"


def least_set_answer(found: LeastSet, written: str | None) -> dict[str, Any]:
    """The answer as data; ``written``: the certificate's file."""
    setting, proved = found.setting, found.status is Status.OPTIMAL
    return {
        "status": found.status.value,
        "request": setting.kind.value,
        "factors": list(setting.factors),
        "ports": list(setting.ports),
        "max_length": setting.max_length,
        "calls": setting.calls,
        "unknowns": list(setting.unknowns),
        "programs": found.programs,
        "costs": len(found.costs),
        "members": [_member_data(found, member) for member in found.members if proved],
        "excluded": len(found.exclusions),
        "cases": sum(len(one.refutation.cases) for one in found.exclusions),
        "open": [str(found.costs[n].programs[0]) for n in found.open],
        "certificate": written,
        "wall_s": found.wall_s,
    }


def _member_data(found: LeastSet, member: int) -> dict[str, Any]:
    one, point = found.costs[member], found.alone(member)
    levels = found.setting.scene.topology.names
    form = shown_form(found, one)
    return {
        "programs": list(map(str, one.programs)),
        **form_data(form),
        "text": form_text(form, levels),
        "latex": form_latex(form, levels),
        "alone_at": None if point is None else list(map(str, point)),
    }


def certificate_lines(report: LeastSetReport, complete: bool | None = None) -> Iterator[str]:
    """What is wrong, a line each; then the verdict.

    ``complete``: whether the programs are those of a new list; None: none was made.
    """
    yield from report.faults
    if complete is False:
        yield "the programs are not those that there are"
    if report.valid and complete is not False:
        yield f"valid: {setting_words(report.claim)}"
        yield _verdict(report.claim)
        yield f"checked: {', '.join(_checked(report, complete))}"
        if complete is None:
            yield f"not checked: {COMPLETENESS} (add --prove)"
    else:
        yield "invalid"


def _checked(report: LeastSetReport, complete: bool | None) -> list[str]:
    return [*CHECKED, *[COMPLETENESS] * bool(complete)] if report.valid else []


def certificate_data(report: LeastSetReport, complete: bool | None = None) -> dict[str, Any]:
    """The verdict as data."""
    holds = report.valid and complete is not False
    checked = _checked(report, complete)
    missing = ["the programs are not those that there are"] * (complete is False)
    return {
        "verdict": "valid" if holds else "invalid",
        "violations": [*report.faults, *missing],
        "members": [str(report.claim.costs[n].programs[0]) for n in report.claim.members]
        if holds
        else [],
        "checked": checked,
        "not_checked": [what for what in (*CHECKED, COMPLETENESS) if what not in checked],
    }
