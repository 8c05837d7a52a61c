"""The least sufficient set: fewest costs of which one is least whatever the numbers.

Points are collected; at each some costs are least, and a sufficient set has one of these.  The
fewest costs that meet all points are proposed, and the solver is asked of every other cost whether
it is less than all of them somewhere.  If so, that is a new point; if of none, the set is
sufficient, and by the points no smaller one is.  A cost that is least somewhere together with
others only does not count as needed alone: ties are why points have sets of costs.

Every refutation is recomputed with fractions, and so is every point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from p2smt.cost.symbolic.form import (
    CostForm,
    LeastCell,
    LinkNumbers,
    Rationals,
    bandwidth_cells,
    payload_cells,
)
from p2smt.errors import EncodingBug, InputError, OutOfTimeError
from p2smt.plans.crossings.least_set import (
    EqualPrograms,
    Exclusion,
    LeastSet,
    Needed,
    SymbolicSetting,
    program_form,
)
from p2smt.plans.crossings.proofs import broken, least_hitting
from p2smt.problems.crossing import (
    CaseMultipliers,
    Coefficients,
    CrossingProblem,
    Refutation,
    SumOfMaxima,
    cases,
)
from p2smt.programs.program import Program
from p2smt.result import OUT_OF_TIME, Result, SearchLimits, Status, StopWatch
from p2smt.search.program_synthesis import Task, list_programs
from p2smt.solvers.ask import Multipliers, Solver, Witness, ask


def least_set(setting: SymbolicSetting, limits: SearchLimits | None = None) -> LeastSet:
    """The fewest programs of which one is always best, with what proves it.

    OPTIMAL, or UNKNOWN with the costs that the time limit left open.

    Raises:
        InputError: factors or ports that do not fit.
    """
    watch = StopWatch.start(limits or SearchLimits())
    costs = equal_programs(setting, watch.left())
    if costs is None:
        return LeastSet(setting, (), (), (), (), Status.UNKNOWN, (), watch.elapsed_s())
    search = _Search(costs, watch)
    try:
        search.run()
        search.single_out()
        search.refute()
    except OutOfTimeError:
        return search.result(setting, Status.UNKNOWN)
    return search.result(setting, Status.OPTIMAL)


@dataclass
class _Search:
    """``points`` by where they are, with the costs that are least there; ``members`` meet them all.

    ``settled``: costs that are nowhere less than all of these members.  ``glances``: refutations
    that were seen without a solver.
    """

    costs: tuple[EqualPrograms, ...]
    watch: StopWatch
    points: dict[Coefficients, frozenset[int]] = field(default_factory=dict)
    members: tuple[int, ...] = ()
    settled: dict[int, tuple[int, ...]] = field(default_factory=dict)
    glances: dict[int, Refutation] = field(default_factory=dict)
    exclusions: list[Exclusion] = field(default_factory=list)

    def run(self) -> None:
        """Collect points until the costs that meet them are sufficient."""
        self._add((Fraction(1),) * len(self.costs[0].cost.fixed))
        while (point := self._uncovered()) is not None:
            self._add(point)

    def _add(self, point: Coefficients) -> None:
        self.points[point] = self._best(point)
        self.members = least_hitting(list(self.points.values()))

    def _best(self, point: Coefficients) -> frozenset[int]:
        values = [one.cost.value(point) for one in self.costs]
        least = min(values)
        return frozenset(n for n, value in enumerate(values) if value == least)

    def _uncovered(self) -> Coefficients | None:
        """A point where a cost is less than all members; None: there is none."""
        for candidate in range(len(self.costs)):
            self._tell("is another ever less")
            known = self.settled.get(candidate)
            if candidate in self.members or (known and set(known) <= set(self.members)):
                continue
            point = self._cheaper(candidate, self.members)
            if point is not None:
                return point
            self.settled[candidate] = self.members
        return None

    def _cheaper(self, candidate: int, others: Sequence[int]) -> Coefficients | None:
        """A point where the candidate is less than all the others."""
        problem = self._problem(candidate, others)
        if self._seen(candidate, others) is not None:
            return None
        result = ask(problem, Witness(), Solver.Z3, self.watch.left())
        if result.status is Status.UNKNOWN:
            raise OutOfTimeError(result.stats.reason or OUT_OF_TIME)
        if result.value is not None:
            self._check_point(problem, result)
        return result.value

    def _seen(self, candidate: int, others: Sequence[int]) -> Refutation | None:
        """A refutation by one of the others that needs no solver; its ``by`` are costs."""
        if candidate not in self.glances:
            problem = self._problem(candidate, others)
            found = glance(problem.candidate, problem.others)
            if found is None:
                return None
            self.glances[candidate] = Refutation((others[found.by[0]],), found.cases)
        found = self.glances[candidate]
        return found if set(found.by) <= set(others) else None

    def _problem(self, candidate: int, others: Sequence[int]) -> CrossingProblem:
        against = tuple(self.costs[s].cost for s in others)
        return CrossingProblem(self.costs[candidate].cost, against)

    def _check_point(self, problem: CrossingProblem, result: Result[Coefficients]) -> None:
        point = result.value or ()
        value = problem.candidate.value(point)
        if min(point) < 0 or any(other.value(point) <= value for other in problem.others):
            raise EncodingBug("the cost is not less there", str(problem), list(map(str, point)))

    def single_out(self) -> None:
        """For each member a point where it alone is least, as far as there is one."""
        for member in self.members:
            others = [one for one in self.members if one != member]
            while others and frozenset({member}) not in self.points.values():
                point = self._cheaper(member, others)
                if point is None:
                    break
                best = self._best(point)
                self.points[point] = best
                others += sorted(best - {member} - set(others))

    def refute(self) -> None:
        """Multipliers for every cost that is no member."""
        for candidate in range(len(self.costs)):
            self._tell("proofs", candidate, len(self.costs))
            if candidate not in self.members:
                self.exclusions.append(Exclusion(candidate, self._refutation(candidate)))

    def _tell(self, doing: str, done: int | None = None, every: int | None = None) -> None:
        said = f"{len(self.members)} of {len(self.costs)} programs needed so far; {doing}"
        self.watch.tell(said, done=done, every=every)

    def _refutation(self, candidate: int) -> Refutation:
        problem = self._problem(candidate, self.members)
        found = self._seen(candidate, self.members) or self._solved(candidate)
        positions = tuple(self.members.index(s) for s in found.by)
        stated = Refutation(positions, found.cases)
        if fault := broken(problem.candidate, problem.others, stated):
            raise EncodingBug(fault, str(problem), str(stated))
        return found

    def _solved(self, candidate: int) -> Refutation:
        """A solver's refutation by some members."""
        problem = self._problem(candidate, self.members)
        result = ask(problem, Multipliers(), Solver.Z3, self.watch.left())
        if result.status is Status.UNKNOWN:
            raise OutOfTimeError(result.stats.reason or OUT_OF_TIME)
        if result.value is None:
            raise EncodingBug("no multipliers for a cost that is settled", str(problem), candidate)
        return Refutation(tuple(self.members[s] for s in result.value.by), result.value.cases)

    def result(self, setting: SymbolicSetting, status: Status) -> LeastSet:
        """What was found; without a proof, which costs are open."""
        done = {one.excluded for one in self.exclusions} | set(self.members)
        return LeastSet(
            setting,
            self.costs,
            self.members,
            tuple(self.exclusions),
            self._needed(),
            status,
            tuple(n for n in range(len(self.costs)) if n not in done),
            self.watch.elapsed_s(),
        )

    def _needed(self) -> tuple[Needed, ...]:
        """A point for each set of costs; sets that hold another one say nothing more."""
        found: dict[frozenset[int], Coefficients] = {}
        for point, best in self.points.items():
            found.setdefault(best, point)
        least = [best for best in found if not any(other < best for other in found)]
        return tuple(Needed(found[best], tuple(sorted(best))) for best in least)


# Cells of ratios and payloads in which one program is best: exact breakpoints, no solver.
# With factors alone, numbers are ratios to the innermost level: its latency and its seconds per
# byte are 1, and the payload is x = n beta / alpha of it.


LARGEST_RATIO = 2**40


@dataclass(frozen=True, slots=True)
class LevelRatios:
    """Numbers of each level over those of the innermost, which has 1; ``call`` over its latency.

    ``bandwidth`` says how many times slower a port is: of beta, not of its inverse.
    """

    latency: Rationals
    bandwidth: Rationals
    call: Fraction

    def __post_init__(self) -> None:
        for name, numbers in (("latency", self.latency), ("bandwidth", self.bandwidth)):
            if not all(0 < ratio <= LARGEST_RATIO for ratio in numbers):
                shown = ",".join(map(str, numbers))[:80]
                rule = f"must be positive, and at most {LARGEST_RATIO}"
                raise InputError(f"{name} ratios {shown}", rule, "give some such as 4 or 1/2")
        if not 0 <= self.call <= LARGEST_RATIO:
            raise InputError(f"cost per call {self.call}"[:80], "must not be negative")

    @property
    def numbers(self) -> LinkNumbers:
        """As numbers of links."""
        return LinkNumbers(self.call, self.latency, self.bandwidth)

    def with_outermost(self, bandwidth: Fraction) -> LevelRatios:
        """The same with another bandwidth ratio of the outermost level."""
        return LevelRatios(self.latency, (bandwidth, *self.bandwidth[1:]), self.call)


@dataclass(frozen=True, slots=True)
class NamedForm:
    """A cost and the programs that have it, the shortest first."""

    programs: tuple[Program, ...]
    form: CostForm


@dataclass(frozen=True, slots=True)
class RatioRow:
    """The cells of the payload at one bandwidth ratio of the outermost level."""

    ratios: LevelRatios
    cells: tuple[LeastCell, ...]


@dataclass(frozen=True, slots=True)
class CrossingTable:
    """Which costs, by index, are best: ``rows`` by payload, ``large`` of large payloads by the
    bandwidth ratio of the outermost level, between the first row's and the last row's."""

    forms: tuple[NamedForm, ...]
    rows: tuple[RatioRow, ...]
    large: tuple[LeastCell, ...]

    @property
    def shown(self) -> tuple[int, ...]:
        """The costs that are first in some cell, by index."""
        cells = [cell for row in self.rows for cell in row.cells] + list(self.large)
        return tuple(sorted({cell.best[0] for cell in cells}))


def crossing_table(
    setting: SymbolicSetting, ratios: tuple[LevelRatios, ...], limits: SearchLimits
) -> CrossingTable | None:
    """The cells for each of these ratios, ascending in that of the outermost bandwidth.

    None: the time ran out before the programs were listed.

    Raises:
        InputError: ratios for another number of levels.
    """
    if any(len(one.latency) != len(setting.factors) for one in ratios):
        raise InputError("ratios", f"must be for {len(setting.factors)} levels")
    costs = equal_programs(setting, limits)
    return None if costs is None else table_of(costs, ratios)


def table_of(costs: tuple[EqualPrograms, ...], ratios: tuple[LevelRatios, ...]) -> CrossingTable:
    """The cells of these costs for each of the ratios."""
    forms = [one.form for one in costs]
    rows = tuple(RatioRow(one, payload_cells(forms, one.numbers)) for one in ratios)
    low, high = ratios[0].bandwidth[0], ratios[-1].bandwidth[0]
    large = bandwidth_cells(forms, ratios[0].bandwidth, 0, low, high) if low < high else ()
    return CrossingTable(tuple(NamedForm(one.programs, one.form) for one in costs), rows, large)


# Every program of a setting with its symbolic cost; programs of one cost stand together.


def equal_programs(
    setting: SymbolicSetting, limits: SearchLimits
) -> tuple[EqualPrograms, ...] | None:
    """The costs of all valid programs, those of the shortest first; None: the time ran out.

    Raises:
        InputError: factors or ports that do not fit.
    """
    scene = setting.scene
    task = Task(setting.kind, scene.hierarchy, setting.max_length)
    result, _ = list_programs(task, limits)
    if result.status is not Status.COMPLETE:
        return None
    programs = sorted(result.value or (), key=lambda one: (len(one), str(one)))
    found: dict[SumOfMaxima, list[tuple[Program, CostForm]]] = {}
    for program in programs:
        form = program_form(setting, program)
        found.setdefault(setting.cost(form), []).append((program, form))
    return tuple(
        EqualPrograms(tuple(program for program, _ in equal), equal[0][1], cost)
        for cost, equal in found.items()
    )


def lists_every_program(claim: LeastSet, limits: SearchLimits) -> bool | None:
    """Whether a claim is about just the programs that there are; None: the time ran out."""
    found = equal_programs(claim.setting, limits)
    if found is None:
        return None
    listed = {program for one in claim.costs for program in one.programs}
    return listed == {program for one in found for program in one.programs}


# Multipliers by a glance: a cost that one other cost, or a given mixture, never exceeds.
# Most costs are refuted by one member.  In each case that member is a line; the candidate's maxima
# have to cover it, unknown by unknown.  Maxima with the fewest parts are shared out first, each
# over the unknowns in order, as far as the line asks for it.  Where that fails, a solver is asked:
# this finds no multipliers where there may be some, and never wrong ones.


def glance(candidate: SumOfMaxima, others: tuple[SumOfMaxima, ...]) -> Refutation | None:
    """A refutation by one of the others; None: none is seen."""
    for s, other in enumerate(others):
        if any(a < b for a, b in zip(_most(candidate), other.fixed, strict=True)):
            continue
        found = _every_case(candidate, other)
        if found is not None:
            return Refutation((s,), found)
    return None


def _most(cost: SumOfMaxima) -> Coefficients:
    """What shares of the maxima can make of each unknown's coefficient at most."""
    return tuple(
        a + sum((term[k] for term in cost.maxima), Fraction(0)) for k, a in enumerate(cost.fixed)
    )


def _every_case(candidate: SumOfMaxima, other: SumOfMaxima) -> tuple[CaseMultipliers, ...] | None:
    found = []
    for case in cases([other]):
        shares = _covering(candidate, other.lines(case))
        if shares is None:
            return None
        found.append(CaseMultipliers((Fraction(1),), shares))
    return tuple(found)


def _covering(candidate: SumOfMaxima, line: Coefficients) -> tuple[Coefficients, ...] | None:
    """Shares of the candidate's maxima with which it has at least the line's coefficients."""
    lacking = [max(Fraction(0), a - b) for a, b in zip(line, candidate.fixed, strict=True)]
    shares: dict[int, Coefficients] = {}
    for i in sorted(range(len(candidate.maxima)), key=lambda i: _flexible(candidate.maxima[i])):
        shares[i] = _shared_out(candidate.maxima[i], lacking)
    if any(lacking):
        return None
    return tuple(shares[i] for i in range(len(candidate.maxima)))


def _flexible(term: Coefficients) -> tuple[int, Coefficients]:
    return sum(1 for a in term if a), term


def _shared_out(term: Coefficients, lacking: list[Fraction]) -> Coefficients:
    """The shares of one maximum; takes from what is lacking.  What is left goes to its first."""
    left, shares = Fraction(1), [Fraction(0)] * len(term)
    for k, a in enumerate(term):
        if a and lacking[k]:
            part = min(left, lacking[k] / a)
            shares[k] += part
            lacking[k] -= part * a
            left -= part
    shares[next(k for k, a in enumerate(term) if a)] += left
    return tuple(shares)
