"""Least sufficient sets, and the verdict on a certificate, for people and for ``--json``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from p2smt.cost.symbolic.form import CostForm
from p2smt.plans.crossings.least_set import EqualPrograms, LeastSet
from p2smt.plans.crossings.least_set_check import CHECKED, LeastSetReport, completeness
from p2smt.problems.crossing import Coefficients
from p2smt.report.costs.symbolic_text import form_data, form_latex, form_text
from p2smt.report.crossings.cell_tables import flat_cells
from p2smt.report.outputs.symbolic import LeastSetOutput, MemberPart, VerifyLeastSetOutput
from p2smt.result import Status
from p2smt.search.crossings.least import CrossingTable

_SHOWN = 6
"""Costs that are open, at most, in text."""


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
        yield from _open_lines(found)


def _open_lines(found: LeastSet) -> Iterator[str]:
    yield from (f"open: {found.costs[n].programs[0]}" for n in found.open[:_SHOWN])
    more = len(found.open) - _SHOWN
    if more > 0:
        yield f"and {more} more (all with --json)"


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
    if found.status is Status.OPTIMAL:
        return f"proved: {_enough(found, 'programs')}"
    if not found.costs:
        return "unknown: the time limit came before the programs were listed"
    total = f"{_counted(found, 'programs')}, {len(found.costs)} different costs"
    return f"unknown: the time limit came; of {total}, {len(found.open)} are open"


def _counted(found: LeastSet, what: str) -> str:
    return f"{found.programs} {what} of at most {found.setting.max_length} instructions"


def _enough(found: LeastSet, what: str) -> str:
    """How many are enough out of what: all programs, or those that a certificate lists."""
    cases = sum(len(one.refutation.cases) for one in found.exclusions)
    count = len(found.members)
    return (
        f"{count} of {_counted(found, what)} {'is' if count == 1 else 'are'} always enough, and no "
        f"fewer; {len(found.costs)} different costs, {len(found.exclusions)} excluded by "
        f"multipliers in {cases} cases"
    )


def least_set_answer(
    found: LeastSet, written: str | None, table: CrossingTable | None = None
) -> LeastSetOutput:
    """The answer as data; ``written``: the certificate's file, ``table``: where which is best."""
    setting, proved = found.setting, found.status is Status.OPTIMAL
    return LeastSetOutput(
        status="optimal" if proved else "unknown",
        request=setting.kind,
        factors=setting.factors,
        ports=setting.ports,
        max_length=setting.max_length,
        calls=setting.calls,
        unknowns=setting.unknowns,
        programs=found.programs,
        costs=len(found.costs),
        sufficient=[str(found.costs[n].programs[0]) for n in found.members if proved],
        members=[_member_data(found, member) for member in found.members if proved],
        excluded=len(found.exclusions),
        cases=sum(len(one.refutation.cases) for one in found.exclusions),
        open=[str(found.costs[n].programs[0]) for n in found.open],
        cells=flat_cells(table) if table is not None else [],
        certificate=written,
        wall_s=found.wall_s,
    )


def _member_data(found: LeastSet, member: int) -> MemberPart:
    one = found.costs[member]
    levels = found.setting.scene.topology.names
    form = shown_form(found, one)
    return MemberPart(
        programs=list(map(str, one.programs)),
        **vars(form_data(form)),
        text=form_text(form, levels),
        latex=form_latex(form, levels),
        alone_at=found.alone(member),
    )


def certificate_lines(report: LeastSetReport, complete: bool | None = None) -> Iterator[str]:
    """What is wrong, a line each; then the verdict.

    ``complete``: whether the programs are those of a new list; None: none was made.
    """
    yield from report.faults
    if complete is False:
        yield "the programs are not those that there are"
    if report.valid and complete is not False:
        yield f"valid: {setting_words(report.claim)}"
        yield f"proved: {_enough(report.claim, 'programs' if complete else 'listed programs')}"
        yield f"checked: {', '.join(_checked(report, complete))}"
        if complete is None:
            yield f"not checked: {completeness(report.claim)} (add --prove)"
    else:
        yield "invalid"


def _checked(report: LeastSetReport, complete: bool | None) -> list[str]:
    return [*CHECKED, *[completeness(report.claim)] * bool(complete)] if report.valid else []


def certificate_data(report: LeastSetReport, complete: bool | None = None) -> VerifyLeastSetOutput:
    """The verdict as data."""
    holds, costs = report.valid and complete is not False, report.claim.costs
    checked, every = _checked(report, complete), (*CHECKED, completeness(report.claim))
    missing = ["the programs are not those that there are"] * (complete is False)
    members = report.claim.members if holds else ()
    return VerifyLeastSetOutput(
        verdict="valid" if holds else "invalid",
        violations=[*report.faults, *missing],
        members=[str(costs[n].programs[0]) for n in members],
        max_length=report.claim.setting.max_length,
        checked=checked,
        not_checked=[what for what in every if what not in checked],
    )
