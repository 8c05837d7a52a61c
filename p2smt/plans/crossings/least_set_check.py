"""Checks the certificate of a least sufficient set, without a solver.

Of every program the meaning and the symbolic cost are computed again; of every cost that is left
out the multipliers (:mod:`farkas`), of every point which costs are least there, and of the points
together that no fewer costs meet them.  That the list has every program of the stated length is not
checked here, so that a certificate with a larger one passes: the verdict says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.plans.crossings.least_set import LeastSet, Needed, program_form
from p2smt.plans.crossings.proofs import broken, least_hitting
from p2smt.problems.crossing import Refutation

CHECKED = ("meaning", "costs", "multipliers", "need")


def completeness(claim: LeastSet) -> str:
    """What no check without a solver can tell."""
    return f"every program of at most {claim.setting.max_length} instructions is listed"


@dataclass(frozen=True, slots=True)
class LeastSetReport:
    """The verdict on a certificate: what is wrong, in sentences."""

    claim: LeastSet
    faults: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether everything that is claimed holds."""
        return not self.faults


def check_least_set(claim: LeastSet) -> LeastSetReport:
    """Recompute what a certificate rests on; the first fault of each kind is enough."""
    faults = []
    for check in (_programs, _membership, _exclusions, _points, _fewest):
        fault = next(check(claim), None)
        if fault is not None:
            faults.append(fault)
            if check in (_programs, _membership):  # the others speak of these by their numbers
                break
    return LeastSetReport(claim, tuple(faults))


def _programs(claim: LeastSet) -> Iterator[str]:
    """Each program stands once, is valid, and costs what is said."""
    counts = Counter(program for one in claim.costs for program in one.programs)
    yield from (f"program '{program}' stands twice" for program, n in counts.items() if n > 1)
    if len({one.cost for one in claim.costs}) < len(claim.costs):
        yield "a cost stands twice"
    for one in claim.costs:
        for program in one.programs:
            if len(program) > claim.setting.max_length:
                yield f"program '{program}' is longer than {claim.setting.max_length}"
            try:
                cost = claim.setting.cost(program_form(claim.setting, program))
            except InputError as error:
                yield str(error)
            else:
                if cost != one.cost:
                    yield f"program '{program}' does not cost what the file says"


def _membership(claim: LeastSet) -> Iterator[str]:
    """Each cost is a member or excluded, once."""
    excluded = [one.excluded for one in claim.exclusions]
    if sorted([*claim.members, *excluded]) != list(range(len(claim.costs))):
        yield "members and excluded costs together are not every cost, each once"


def _exclusions(claim: LeastSet) -> Iterator[str]:
    """The multipliers of each exclusion, against members alone."""
    costs = [one.cost for one in claim.costs]
    for one in claim.exclusions:
        name = claim.costs[one.excluded].programs[0]
        if not set(one.refutation.by) <= set(claim.members):
            yield f"'{name}' is excluded by costs that are no members"
            continue
        positions = tuple(claim.members.index(s) for s in one.refutation.by)
        others = [costs[s] for s in claim.members]
        stated = Refutation(positions, one.refutation.cases)
        if fault := broken(costs[one.excluded], others, stated):
            yield f"'{name}' is not excluded: {fault}"


def _points(claim: LeastSet) -> Iterator[str]:
    """At each point just the costs that are named are least."""
    for one in claim.needed:
        fault = _point_fault(claim, one)
        if fault is not None:
            yield fault


def _point_fault(claim: LeastSet, one: Needed) -> str | None:
    shown = ", ".join(map(str, one.point))[:200]
    if len(one.point) != len(claim.setting.unknowns) or min(one.point) < 0:
        return f"({shown}) is no point: it has a number for each unknown, none negative"
    values = [cost.cost.value(one.point) for cost in claim.costs]
    least = min(values)
    best = tuple(n for n, value in enumerate(values) if value == least)
    return None if best == one.best else f"at ({shown}) other costs are least than is said"


def _fewest(claim: LeastSet) -> Iterator[str]:
    """No fewer costs than there are members meet every point."""
    if len(least_hitting([frozenset(one.best) for one in claim.needed])) < len(claim.members):
        yield "fewer costs than the members meet every point, so that they are not the fewest"
