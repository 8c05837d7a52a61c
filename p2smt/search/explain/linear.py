"""What steps cost as one number grows, where costs are linear: exact, with every kink.

Time is a sum over steps of the least, over the ways to run it, of

    a + b x + max(s x, r)

where x multiplies a latency, the seconds per byte of a level (so a bandwidth is divided by it), or
a payload.  Between two neighbouring kinks of these functions each of them is a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.form import LinkNumbers, SymbolicWay
from p2smt.cost.symbolic.steps import step_ways, symbolic_fixed
from p2smt.errors import InputError, OutOfTimeError
from p2smt.parallelism.placement import FloatArray, Matrix, Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.explanation import ChangedNumber
from p2smt.plans.solution import Alternative
from p2smt.problems.placement import PlacementProblem
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.explain.numbers import ProgramTable, SampledCosts, StepKey, program_table
from p2smt.search.placements import placements
from p2smt.search.programs_pipelined import Catalogs
from p2smt.solvers.ask import Solver

MAX_POINTS = 20_000


@dataclass(frozen=True, slots=True)
class WayLine:
    """The time a + b x + max(s x, r) of one way to run a step."""

    a: Fraction
    b: Fraction
    s: Fraction
    r: Fraction

    def value(self, x: Fraction) -> Fraction:
        """Its time."""
        return self.a + self.b * x + max(self.s * x, self.r)

    def parts(self) -> Iterator[tuple[Fraction, Fraction]]:
        """The two lines of which the larger one is the time, as (at zero, slope)."""
        yield self.a + self.r, self.b
        yield self.a, self.b + self.s


def linear_costs(topology: Topology) -> bool:
    """Whether nothing chooses by a rule of its own; steps may yet have no linear form."""
    return not topology.library


@dataclass(frozen=True)
class TableLines:
    """The ways of each step of a table as one number changes; ``arrays`` are a, b, s, r of them.

    Shape of each: (keys, ways); where a step has fewer ways, a is infinite.
    """

    table: ProgramTable
    lines: tuple[tuple[WayLine, ...], ...]
    arrays: tuple[FloatArray, ...]

    @staticmethod
    def of(table: ProgramTable, lines: Sequence[Sequence[WayLine]]) -> TableLines:
        """With their arrays; a step without ways sends nothing, and takes no time."""
        width = max(map(len, lines), default=0)
        arrays = np.zeros((4, len(lines), max(1, width)))
        for k, ways in enumerate(lines):
            arrays[0, k, len(ways) :] = np.inf if ways else 0.0
            for w, line in enumerate(ways):
                arrays[:, k, w] = float(line.a), float(line.b), float(line.s), float(line.r)
        return TableLines(table, tuple(map(tuple, lines)), tuple(arrays))

    def seconds(self, xs: FloatArray) -> FloatArray:
        """Times of the steps, shape (keys, points)."""
        a, b, s, r = (array[:, :, None] for array in self.arrays)
        return np.asarray((a + b * xs + np.maximum(s * xs, r)).min(axis=1))

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """Where a step's time turns, whatever x."""
        return tuple({x for lines in self.lines for x in _kinks(lines)})


@dataclass(frozen=True, slots=True)
class LinearCosts:
    """Costs of steps of a problem on a topology without a library."""

    problem: Problem
    _known: dict[tuple[ChangedNumber, int], TableLines] = field(default_factory=dict)

    def lines(self, number: ChangedNumber, table: ProgramTable) -> TableLines:
        """The steps of a table as functions of x.

        Raises:
            InputError: an algorithm has no linear form.
        """
        known = number, id(table)  # which is kept with what is known of it
        if known not in self._known:
            self._known[known] = TableLines.of(
                table, [self._ways(number, table, key) for key in table.keys]
            )
        return self._known[known]

    def _ways(self, number: ChangedNumber, table: ProgramTable, key: StepKey) -> list[WayLine]:
        topology = self.problem.topology
        numbers = LinkNumbers.of(topology)
        payload = key.share * self.problem.requests[table.number].payload_bytes
        own = number.what != "payload" or number.index == table.number
        ways = _ways(topology, table.scene, key)
        for way in ways:
            if way.fill is not None:
                rule = "has a square root in its time, which is no line"
                raise InputError(f"algorithm {way.algorithm}", rule)
        return [_line(way, number, numbers, payload, own) for way in ways]

    def points(
        self, number: ChangedNumber, tables: Sequence[ProgramTable], low: float, high: float
    ) -> FloatArray | None:
        """The bounds and every kink between them, ascending; None: too many."""
        found: set[float] = {low, high}
        for table in tables:
            found |= {x for x in self.lines(number, table).kinks if low < x < high}
        return np.array(sorted(found)) if len(found) <= MAX_POINTS else None

    def step_s(self, number: ChangedNumber, table: ProgramTable, xs: FloatArray) -> FloatArray:
        """Times of the steps of a table at these x, shape (keys, points)."""
        return self.lines(number, table).seconds(xs)

    def exact_s(
        self, number: ChangedNumber, table: ProgramTable, program: int, x: Fraction
    ) -> Fraction:
        """The time of a program of a table."""
        found = self.lines(number, table).lines
        each = (found[k] for k in table.steps[program] if k < len(found))
        least = (min(line.value(x) for line in lines) for lines in each if lines)
        return sum(least, Fraction(0))


def _ways(topology: Topology, scene: Scene, key: StepKey) -> tuple[SymbolicWay, ...]:
    if key.operation is RequestKind.SEND:
        return symbolic_fixed(scene, RequestKind.SEND).steps[0].ways
    return step_ways(topology, scene.digits, key.grouping, key.operation)


def _line(
    way: SymbolicWay, number: ChangedNumber, numbers: LinkNumbers, payload: Fraction, own: bool
) -> WayLine:
    none, j = Fraction(0), number.index
    delays = [n * alpha for n, alpha in zip(way.latency, numbers.latency_s, strict=True)]
    wires = [n * beta * payload for n, beta in zip(way.loads, numbers.s_per_byte, strict=True)]
    match number.what:
        case "latency":
            rest = sum(delays, none) - delays[j]
            return WayLine(rest, delays[j], none, max(wires))
        case "bandwidth":
            others = max((wire for i, wire in enumerate(wires) if i != j), default=none)
            return WayLine(sum(delays, none), none, wires[j], others)
        case "payload" if own:
            return WayLine(sum(delays, none), max(wires), none, none)
        case _:
            return WayLine(sum(delays, none), none, none, max(wires))


def _kinks(lines: Sequence[WayLine]) -> Iterator[float]:
    """Where a way turns, and where lines of two ways meet."""
    yield from (float(line.r / line.s) for line in lines if line.s and line.r)
    for one, two in combinations(lines, 2):
        for at, slope in one.parts():
            for other_at, other in two.parts():
                if slope != other:
                    yield float((other_at - at) / (slope - other))


# The answer and what it is held against: matrices, and for each request its programs on them.


MAX_MATRICES = 500
"""Of more matrices those that the search met are looked at, and others as they turn up."""


@dataclass(slots=True)
class Alternatives:
    """``matrices``: the answer's first.  ``whole``: there are no others.

    Where costs are linear, all programs of a request are looked at, if they are not too many;
    otherwise those known beforehand and the answer's own.
    """

    problem: Problem
    answer: Alternative
    costs: LinearCosts | SampledCosts
    listings: Catalogs
    watch: StopWatch
    matrices: tuple[Matrix, ...]
    whole: bool
    _tables: dict[tuple[int, Scene], ProgramTable] = field(default_factory=dict)
    _of: dict[tuple[int, Matrix], ProgramTable] = field(default_factory=dict)

    def table(self, matrix: Matrix, number: int) -> ProgramTable:
        """The programs of a request on a matrix; those of one scene are listed once.

        Raises:
            OutOfTimeError: no time is left.
        """
        if (number, matrix) not in self._of:
            self._of[number, matrix] = self._listed(matrix, number)
        return self._of[number, matrix]

    def _listed(self, matrix: Matrix, number: int) -> ProgramTable:
        request = self.problem.requests[number]
        axes = self.problem.axis_indices(request)
        scene = Scene.of(self.problem.topology, Placement(matrix), axes)
        if (number, scene) not in self._tables:
            if self.watch.expired():
                raise OutOfTimeError
            every = self.listings if isinstance(self.costs, LinearCosts) else None
            program = self.answer.requests[number].program
            also = () if program is None or matrix != self.answer.matrix else (program,)
            found = program_table(self.problem, number, scene, every, self.watch, also)
            self._tables[number, scene] = found
        return self._tables[number, scene]

    def tables(self, matrix: Matrix) -> tuple[ProgramTable, ...]:
        """The same of every request."""
        return tuple(self.table(matrix, r) for r in range(len(self.problem.requests)))

    def ours(self, number: int) -> int | None:
        """Which program of its table a request of the answer has; None: none of these."""
        program = self.answer.requests[number].program
        table = self.table(self.answer.matrix or (), number)
        if program is None:
            return 0
        return table.programs.index(program) if program in table.programs else None

    def with_matrix(self, matrix: Matrix) -> Alternatives:
        """The same with one more matrix to be held against."""
        return replace(self, matrices=(*self.matrices, matrix))

    def step_s(self, number: ChangedNumber, table: ProgramTable, xs: FloatArray) -> FloatArray:
        """Times of the programs of a table at these x, shape (programs, points).

        Raises:
            OutOfTimeError: no time is left.
        """
        if self.watch.expired():
            raise OutOfTimeError
        return table.times(self.costs.step_s(number, table, xs))

    def objective_s(
        self, number: ChangedNumber, matrices: Sequence[Matrix], xs: FloatArray
    ) -> FloatArray:
        """Of each matrix with its best programs, at each x: shape (matrices, points)."""
        least: dict[int, FloatArray] = {}
        found = []
        for matrix in matrices:
            terms = []
            for table in self.tables(matrix):
                key = id(table)
                if key not in least:
                    least[key] = self.step_s(number, table, xs).min(axis=0)
                terms.append(self.problem.requests[table.number].times * least[key])
            together = np.max if self.problem.objective == "max" else np.sum
            found.append(together(np.array(terms), axis=0))
        return np.array(found)

    def best_programs(self, number: ChangedNumber, matrix: Matrix, x: float) -> tuple[int, ...]:
        """The best program of each request on a matrix, as a row of its table."""
        at = np.array([x])
        return tuple(
            int(self.step_s(number, table, at)[:, 0].argmin()) for table in self.tables(matrix)
        )

    @property
    def different(self) -> list[Matrix]:
        """The matrices beside the answer's."""
        return [matrix for matrix in self.matrices if matrix != self.answer.matrix]


def landscape(
    problem: Problem,
    answer: Alternative,
    known: Sequence[Matrix],
    costs: LinearCosts | SampledCosts,
    listings: Catalogs,
    watch: StopWatch,
) -> Alternatives:
    """All matrices of a problem, if they are not too many; else those that are known."""
    sizes = problem.topology.sizes, problem.axis_sizes
    limits = SearchLimits(watch.left().time_limit_s, MAX_MATRICES)
    listed = placements(PlacementProblem(*sizes, problem.rules), limits, Solver.CPSAT)
    whole = listed.status is Status.COMPLETE
    every = (answer.matrix or (), *((listed.value or ()) if whole else known))
    return Alternatives(problem, answer, costs, listings, watch, tuple(dict.fromkeys(every)), whole)
