"""Cells of payloads and of placements on a topology, with a library's own rules."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from p2smt.collectives.demand import demand_of, plain_kind
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.requested_algorithms import check_asked, running
from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.curve_cells import CurvePiece, curve_pieces, piecewise_cells, settled_cells
from p2smt.cost.symbolic.form import (
    CostForm,
    LeastCell,
    LinkNumbers,
    PayloadLine,
    Rationals,
    SymbolicCost,
    line_cells,
)
from p2smt.cost.symbolic.steps import numbers_of, symbolic_fixed, symbolic_program
from p2smt.errors import InputError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.problems.placement import PlacementProblem
from p2smt.programs.check import check_program
from p2smt.programs.program import Program
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.placements import placements
from p2smt.search.program_synthesis import Task, list_programs

# Which program of a request is best on a topology, by the payload, with the topology's numbers.
# What a program costs is a function of the payload: a line, or lines and roots one after the other
# where a library chooses among its algorithms or a pipeline becomes full.  The cells of the least
# of all programs, on one matrix or on every one, are exact.


ByteRange = tuple[Fraction, Fraction | None]
"""From so many bytes to so many; None: without end."""


@dataclass(frozen=True, slots=True)
class PlacedForm:
    """A program on a matrix, its steps by these algorithms and protocols, at one cost."""

    matrix: Matrix
    program: Program
    ways: tuple[str, ...]
    form: CostForm


@dataclass(frozen=True, slots=True)
class PayloadCells:
    """What is best by the payload in bytes: ``cells`` name ``forms`` by index, the shortest first.

    Where a cell does not begin at the end of the one before, the crossing is in between: the root
    of a quadratic.  ``matrices``: how many there are; ``programs``: how many on all of them.  Where
    the last cell has an end the time ran out, and what is best beyond it is open.
    """

    forms: tuple[PlacedForm, ...]
    cells: tuple[LeastCell, ...]
    numbers: LinkNumbers
    matrices: int
    programs: int

    @property
    def complete(self) -> bool:
        """Whether nothing is open."""
        return bool(self.cells) and self.cells[-1].high is None


def payload_crossings(
    problem: Problem, matrix: Matrix | None, limits: SearchLimits
) -> PayloadCells | None:
    """The cells of the only request of a problem, on a matrix or (None) on whichever is best.

    None: the time ran out before the programs were listed and priced.

    Raises:
        InputError: not one request, or none that has programs; its group is of one device, or a
            step has no symbolic cost.
    """
    request = _one(problem)
    watch = StopWatch.start(limits)
    topology = running(problem.topology, problem.algorithms)
    members = math.prod(problem.axis_sizes[axis] for axis in problem.axis_indices(request))
    check_asked(topology, [(DIRECT[plain_kind(request.kind)], members)], whole=False)
    matrices = [matrix] if matrix is not None else _matrices(problem, watch)
    if matrices is None:
        return None
    axes = problem.axis_indices(request)
    scenes: dict[Scene, Matrix] = {}
    for one in matrices:
        scenes.setdefault(Scene.of(topology, Placement(one), axes), one)
    numbers = numbers_of(topology)
    pool = _Pool(numbers)
    for done, (scene, one) in enumerate(scenes.items()):
        watch.tell("programs on placements", done=done, every=len(scenes))
        if scene.hierarchy.depth == 0:
            raise InputError("a reduction group of one device", "needs no program")
        task = Task(plain_kind(request.kind), scene.hierarchy, problem.max_length)
        listed, _ = list_programs(task, watch.left())
        if listed.status is not Status.COMPLETE:
            return None
        for program in sorted(listed.value or (), key=lambda found: (len(found), str(found))):
            if watch.expired():
                return None
            checked = check_program(demand_of(request.kind), scene.hierarchy, program)
            cost = symbolic_program(scene, program, checked.trace.payload_rows)
            pool.add(one, program, cost)
    cells = piecewise_cells(list(pool.pieces()), watch.expired)
    return PayloadCells(tuple(pool.entries), cells, numbers, len(matrices), pool.programs)


def _one(problem: Problem) -> Request:
    (request, *others) = problem.requests
    if others:
        rule = "on one placement, crossings are of one request"
        raise InputError(f"{len(problem.requests)} requests", rule, "give one")
    if not request.kind.has_programs:
        raise InputError(request.name, "is one fixed step, with nothing to choose", "give another")
    return request


def _matrices(problem: Problem, watch: StopWatch) -> list[Matrix] | None:
    asked = PlacementProblem(problem.topology.sizes, problem.axis_sizes)
    listed = placements(asked, watch.left())
    return list(listed.value or ()) if listed.status is Status.COMPLETE else None


@dataclass
class _Pool:
    """Every cost with what has it: ``entries``, and the places of these by span and form."""

    numbers: LinkNumbers
    programs: int = 0
    entries: list[PlacedForm] = field(default_factory=list)
    labels: dict[tuple[ByteRange, CostForm], list[int]] = field(default_factory=dict)

    def add(self, matrix: Matrix, program: Program, cost: SymbolicCost) -> None:
        """A program's cost."""
        self.programs += 1
        known: dict[CostForm, int] = {}
        for cell in settled_cells(cost, self.numbers):
            for form, ways in zip(cell.forms, cell.ways, strict=True):
                if form not in known:
                    known[form] = len(self.entries)
                    names = tuple(f"{way.algorithm} {way.protocol}".strip() for way in ways)
                    self.entries.append(PlacedForm(matrix, program, names, form))
                self.labels.setdefault(((cell.low, cell.high), form), []).append(known[form])

    def pieces(self) -> Iterator[CurvePiece]:
        """The functions, each as far as it is one."""
        for ((low, high), form), labels in self.labels.items():
            yield from curve_pieces(form, self.numbers, tuple(labels), low, high)


# Which placement is best for several requests, by the ratio of payloads, for large payloads.
# Latencies drop out, so a matrix costs rho b_1 + b_2: what each byte of the two requests takes by
# the best program of each, with rho payloads of the first to one of the second.  Those are lines.
# More requests have payloads in the given proportion to that of the second.


@dataclass(frozen=True, slots=True)
class PlacementCells:
    """Every matrix with what a byte of the payloads takes on it (seconds), and which is best where.

    ``cells`` are of the payload of the first request over that of the second; ``shares`` are those
    of the second and later ones over the second's.
    """

    matrices: tuple[Matrix, ...]
    lines: tuple[PayloadLine, ...]
    cells: tuple[LeastCell, ...]
    shares: Rationals


def placement_cells(problem: Problem, limits: SearchLimits) -> PlacementCells | None:
    """The cells of the payload of the first request over that of the second.  None: out of time.

    Of three or more the payloads from the second on say in which proportion these are.

    Raises:
        InputError: fewer than two requests, or one has no symbolic cost.
    """
    if len(problem.requests) < 2:
        given = f"{len(problem.requests)} requests"
        raise InputError(given, "a ratio of payloads is of two or more", "give more")
    watch = StopWatch.start(limits)
    asked = PlacementProblem(problem.topology.sizes, problem.axis_sizes)
    listed = placements(asked, watch.left())
    if listed.status is not Status.COMPLETE:
        return None
    matrices, rates = listed.value or (), _Rates(problem, watch)
    rest = problem.requests[1:]
    shares = tuple(Fraction(one.payload_bytes, rest[0].payload_bytes) for one in rest)
    lines = []
    for done, matrix in enumerate(matrices):
        watch.tell("placements", done=done, every=len(matrices))
        found = rates.all_of(matrix)
        if found is None:
            return None
        others = sum((a * b for a, b in zip(shares, found[1:], strict=True)), Fraction(0))
        lines.append(PayloadLine(others, found[0]))
    cells = line_cells(lines, Fraction(0), None)
    return PlacementCells(matrices, tuple(lines), cells, shares)


class _Rates:
    """Seconds per byte of requests by their best programs; each scene is priced once."""

    def __init__(self, problem: Problem, watch: StopWatch) -> None:
        self.problem, self.watch = problem, watch
        self.topology = running(problem.topology, problem.algorithms)
        self.betas = numbers_of(self.topology).s_per_byte
        self._known: dict[tuple[Scene, RequestKind], Fraction] = {}

    def all_of(self, matrix: Matrix) -> list[Fraction] | None:
        """Those of each request on a matrix; None: out of time."""
        found = [self.of(matrix, place) for place in range(len(self.problem.requests))]
        known = [rate for rate in found if rate is not None]
        return known if len(known) == len(found) else None

    def of(self, matrix: Matrix, place: int) -> Fraction | None:
        """All executions of a request on a matrix; None: out of time."""
        request = self.problem.requests[place]
        axes = self.problem.axis_indices(request)
        scene = Scene.of(self.topology, Placement(matrix), axes)
        key = (scene, plain_kind(request.kind))
        if key not in self._known:
            rate = self._rate(*key)
            if rate is None:
                return None
            self._known[key] = rate
        return self._known[key] * request.times

    def _rate(self, scene: Scene, kind: RequestKind) -> Fraction | None:
        if scene.hierarchy.depth == 0:
            return Fraction(0)
        if not kind.has_programs:
            return symbolic_fixed(scene, kind).s_per_byte(self.betas)
        task = Task(kind, scene.hierarchy, self.problem.max_length)
        listed, _ = list_programs(task, self.watch.left())
        if listed.status is not Status.COMPLETE:
            return None
        return min(
            symbolic_program(scene, program, _rows(scene, kind, program)).s_per_byte(self.betas)
            for program in listed.value or ()
        )


def _rows(scene: Scene, kind: RequestKind, program: Program) -> tuple[int, ...]:
    return check_program(demand_of(kind), scene.hierarchy, program).trace.payload_rows
