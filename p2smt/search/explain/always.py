"""What holds of an answer for every latency, bandwidth, payload and cost of calls, over rings.

A set of costs is *sufficient* if every other cost is nowhere less than all of them: refuted by
multipliers at a glance (recomputed with fractions), or by z3.  Points at which some costs are least
say that no fewer are enough, as in :mod:`p2smt.search.crossings.least`.  A placement is never
better if for each request no program on it is ever cheaper than all in the sufficient set on the
answer's: then no payloads, times or objective make it win.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, product

from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.form import CostForm, SymbolicWay
from p2smt.cost.symbolic.steps import step_ways, symbolic_fixed
from p2smt.errors import EncodingBug, InputError, OutOfTimeError, TooLarge
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.crossings.proofs import broken, least_hitting
from p2smt.plans.explanation import PlacementClaim, ProgramClaim, ProgramVerdict
from p2smt.plans.solution import Alternative
from p2smt.problems.crossing import Coefficients, CrossingProblem, SumOfMaxima
from p2smt.programs.program import Program
from p2smt.result import OUT_OF_TIME, Status, StopWatch
from p2smt.search.crossings.least import glance
from p2smt.search.explain.numbers import ProgramTable, StepKey, program_table
from p2smt.search.programs_pipelined import Catalogs
from p2smt.solvers.ask import Solver, Witness, ask


@dataclass(slots=True)
class Always:
    """Asks about one answer; what is found of a scene serves every matrix that has it.

    ``ordered``: of hardware alone where no latency is shorter than that of a level further in.
    """

    problem: Problem
    answer: Alternative
    listings: Catalogs
    watch: StopWatch
    ordered: bool = False
    _rings: Topology = field(init=False)
    _costs: dict[tuple[int, Scene], tuple[RingCosts, bool]] = field(default_factory=dict)
    _sets: dict[int, tuple[SumOfMaxima, ...]] = field(default_factory=dict)
    _excluded: dict[tuple[int, Scene], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rings = over_rings(self.problem.topology)

    def programs(self) -> tuple[ProgramClaim, ...]:
        """What holds of the program of each request."""
        answers = enumerate(self.answer.requests)
        return tuple(
            self._program(r, str(a.request), a.program) for r, a in answers if a.program is not None
        )

    def _program(self, number: int, request: str, program: Program) -> ProgramClaim:
        try:
            found = self._sufficient(number)
            costs, _ = self._of(number, self.answer.matrix or ())
        except (OutOfTimeError, InputError) as fault:
            why = str(fault) or OUT_OF_TIME
            return ProgramClaim(request, program, ProgramVerdict.OPEN, why=why)
        among = tuple(costs[member][0] for member in found)
        ours = [member for member in found if program in costs[member]]
        verdict = ProgramVerdict.WARM_STARTS if ours else ProgramVerdict.OTHER
        if ours and len(found) == 1:
            verdict = ProgramVerdict.BEST
        shown = tuple(
            program if member in ours else one for member, one in zip(found, among, strict=True)
        )
        return ProgramClaim(request, program, verdict, shown)

    def placements(self, matrices: Sequence[Matrix], *, whole: bool) -> PlacementClaim:
        """Which of these matrices, the answer's among them, are never better than it."""
        ours: Matrix = self.answer.matrix or ()
        rivals, unsettled = list[Matrix](), 0
        others = [matrix for matrix in matrices if matrix != ours]
        for matrix in others:
            never = self._never(matrix)
            unsettled += never is None
            if not never:
                rivals.append(matrix)
        rows = enumerate(zip(ours, *rivals, strict=True))
        names = self.problem.axis_names
        same = tuple(names[i] for i, row in rows if whole and len(set(row)) == 1)
        kept = len(others) - len(rivals)
        return PlacementClaim(len(others), kept, tuple(rivals), unsettled, same, whole)

    def _never(self, matrix: Matrix) -> bool | None:
        """Whether no request is ever cheaper on a matrix than on ours; None: not settled."""
        try:
            return all(self._no_cheaper(r, matrix) for r in range(len(self.problem.requests)))
        except (OutOfTimeError, InputError):
            return None

    def _no_cheaper(self, number: int, matrix: Matrix) -> bool:
        key = number, self._scene(number, matrix)
        if key[1] == self._scene(number, self.answer.matrix or ()):
            return True
        if key not in self._excluded:
            members = self._sufficient(number)
            costs, whole = self._of(number, matrix)
            cheaper = any(self._cheaper(cost, members) is not None for cost in costs)
            if not cheaper and not whole:
                raise OutOfTimeError("the programs are too many to be listed")
            self._excluded[key] = not cheaper
        return self._excluded[key]

    def _scene(self, number: int, matrix: Matrix) -> Scene:
        axes = self.problem.axis_indices(self.problem.requests[number])
        return Scene.of(self._rings, Placement(matrix), axes)

    def _of(self, number: int, matrix: Matrix) -> tuple[RingCosts, bool]:
        """The costs of a request's programs on a matrix, and whether these are all programs."""
        scene = self._scene(number, matrix)
        if (number, scene) not in self._costs:
            table = self._table(number, scene)
            costs = ring_costs(self._rings, table, ordered=self.ordered)
            self._costs[number, scene] = costs, table.whole
        return self._costs[number, scene]

    def _table(self, number: int, scene: Scene) -> ProgramTable:
        if self.watch.expired():
            raise OutOfTimeError(OUT_OF_TIME)
        return program_table(self.problem, number, scene, self.listings, self.watch)

    def _sufficient(self, number: int) -> tuple[SumOfMaxima, ...]:
        """The least sufficient set on the answer's matrix.

        Raises:
            OutOfTimeError: the time is over, or there are too many programs to list.
            InputError: a step has no linear form.
        """
        if number not in self._sets:
            costs, whole = self._of(number, self.answer.matrix or ())
            if not whole:
                raise OutOfTimeError("the programs are too many to be listed")
            self._sets[number] = self._least(tuple(costs))
        return self._sets[number]

    def _least(self, costs: Sequence[SumOfMaxima]) -> tuple[SumOfMaxima, ...]:
        """Fewest costs of which one is always least: they meet points, and nothing is cheaper."""
        points = [_best_at(costs, (Fraction(1),) * len(costs[0].fixed))]
        settled: dict[int, set[int]] = {}
        while True:
            members = least_hitting(points)
            point = self._uncovered(costs, members, settled)
            if point is None:
                return tuple(costs[m] for m in members)
            points.append(_best_at(costs, point))

    def _uncovered(
        self,
        costs: Sequence[SumOfMaxima],
        members: Sequence[int],
        settled: dict[int, set[int]],
    ) -> Coefficients | None:
        """A point where a cost is less than all members; ``settled``: which are nowhere."""
        for n, candidate in enumerate(costs):
            if n in members or (n in settled and settled[n] <= set(members)):
                continue
            point = self._cheaper(candidate, [costs[m] for m in members])
            if point is not None:
                return point
            settled[n] = set(members)
        return None

    def _cheaper(
        self, candidate: SumOfMaxima, others: Sequence[SumOfMaxima]
    ) -> Coefficients | None:
        """A point where a cost is less than all the others; None: proved that there is none."""
        problem = CrossingProblem(candidate, tuple(others))
        seen = glance(problem.candidate, problem.others)
        if seen is not None:
            if fault := broken(problem.candidate, problem.others, seen):
                raise EncodingBug(fault, str(problem), str(seen))
            return None
        found = ask(problem, Witness(), Solver.Z3, self.watch.left())
        if found.status is Status.UNKNOWN:
            raise OutOfTimeError(found.stats.reason or OUT_OF_TIME)
        point = found.value
        if point is not None:
            value = candidate.value(point)
            if min(point) < 0 or any(other.value(point) <= value for other in others):
                raise EncodingBug("the cost is not less there", str(problem), str(point))
        return point


def _best_at(costs: Sequence[SumOfMaxima], point: Coefficients) -> frozenset[int]:
    values = [cost.value(point) for cost in costs]
    least = min(values)
    return frozenset(n for n, value in enumerate(values) if value == least)


# Costs over unknown numbers: rings with one protocol on every link, on a scene as it is.
# Unknown are the cost c of a call, the latency of each level, and its seconds per byte times the
# payload (:mod:`p2smt.cost.symbolic`).  Kinds of links, ports and what a device draws stay.


_MOST = 64
"""So many ways to run the steps of one program are told apart."""

RingCosts = dict[SumOfMaxima, list[Program]]
"""The costs that programs have, each with these; a fixed step has a cost and no program."""


def over_rings(topology: Topology) -> Topology:
    """The cluster without a library, where rings run with the first protocol of each link."""
    plain = topology.nominal().running((Algorithm.RING,))
    levels = tuple(
        replace(level, link=replace(level.link, pieces=level.link.pieces[:1]))
        for level in plain.levels
    )
    return replace(plain, levels=levels)


def ring_costs(topology: Topology, table: ProgramTable, *, ordered: bool) -> RingCosts:
    """The costs of a table's programs; of a group of one device nothing, which costs nothing.

    ``ordered``: no latency is shorter than that of a level further in.  Unknown are then the
    innermost latency and what each level further out adds to the one inside it.

    Raises:
        InputError: a step has no linear form.
    """
    width, found = len(topology.levels), RingCosts()
    ways = [_ways(topology, table, key) for key in table.keys]
    known: dict[tuple[int, ...], list[SumOfMaxima]] = {}
    for row, steps in enumerate(table.steps.tolist()):
        used = tuple(sorted(k for k in steps if k < len(ways)))
        if used not in known:
            known[used] = _costs([ways[k] for k in used if ways[k]], width, ordered)
        for cost in known[used]:
            found.setdefault(cost, []).extend(table.programs[row : row + 1])
    return found


def _costs(steps: list[tuple[SymbolicWay, ...]], width: int, ordered: bool) -> list[SumOfMaxima]:
    """One for each choice of ways; the least of them is the cost."""
    chosen = list(product(*steps))
    if len(chosen) > _MOST:
        raise TooLarge(f"{len(chosen)} ways to run a program", f"are more than {_MOST}")
    return list(dict.fromkeys(_cost(CostForm.of(ways, width), width, ordered) for ways in chosen))


def _cost(form: CostForm, width: int, ordered: bool) -> SumOfMaxima:
    none = (Fraction(0),) * width
    before = (Fraction(0), *none)
    latency = tuple(accumulate(form.latency)) if ordered else form.latency
    return SumOfMaxima(
        (Fraction(form.calls), *latency, *none), tuple((*before, *m) for m in form.maxima)
    )


def _ways(topology: Topology, table: ProgramTable, key: StepKey) -> tuple[SymbolicWay, ...]:
    if key.operation is RequestKind.SEND:
        return symbolic_fixed(table.scene, RequestKind.SEND).steps[0].ways
    found = step_ways(topology, table.scene.digits, key.grouping, key.operation)
    return tuple(replace(w, loads=tuple(load * key.share for load in w.loads)) for w in found)
