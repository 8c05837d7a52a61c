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

from p2smt.errors import EncodingBug, OutOfTimeError
from p2smt.plans.crossings.certificate import (
    EqualPrograms,
    Exclusion,
    LeastSet,
    Needed,
    SymbolicSetting,
)
from p2smt.plans.crossings.farkas import broken
from p2smt.plans.crossings.hitting import least_hitting
from p2smt.problems.crossing import Coefficients, CrossingProblem, Refutation
from p2smt.result import OUT_OF_TIME, Result, SearchLimits, Status, StopWatch
from p2smt.search.crossings.costs import equal_programs
from p2smt.search.crossings.greedy import glance
from p2smt.solvers.ask import ask
from p2smt.solvers.questions import Multipliers, Witness
from p2smt.solvers.solver import Solver


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
            if candidate not in self.members:
                self.exclusions.append(Exclusion(candidate, self._refutation(candidate)))

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
