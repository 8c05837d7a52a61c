"""The best placements of a problem with their programs, as a space.

A tick is the one that the table of bounds settles on for the whole problem; a matrix costs the
ticks of its requests' best programs (each rounded down), and of equal ones the lexicographically
first is the better one.  A cube is closed as a joint search is: the table proposes a matrix of
least cost beginning with the cube's rows, and at most the cutoff; its programs are found, which
refines the table, until nothing is proposed any more.  Table and programs belong to the problem,
so the cubes that one process closes share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from p2smt.cost.library.model import Library
from p2smt.cost.library.registry import register_library
from p2smt.errors import EncodingBug, InputError
from p2smt.files.plain import from_plain, to_plain
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Alternative
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.bound_table import BoundTable
from p2smt.search.one_request import RequestAnswers
from p2smt.search.placements import obeys
from p2smt.search.programs_pipelined import Listings
from p2smt.search.spaces.closing import CubeSearch
from p2smt.search.spaces.row_bounds import RowBounds
from p2smt.search.spaces.rows import MatrixCubes, flat
from p2smt.search.spaces.texts import matrix_of
from p2smt.skeletons.cube import Closure, Cube, Member, OverBudget
from p2smt.skeletons.space import CubeTask, Signals, Skeleton
from p2smt.solvers.solver import Solver, solver_of

_ROOTS = 16
_NO_MEMBER = 2**62
"""The bound of a cube without any member."""


@dataclass(frozen=True, slots=True)
class SolveSpace:
    """The placements of a problem by their cost; one tick takes ``tick_s`` seconds.

    ``library``: the one that the topology names, for a process that does not know it.
    """

    problem: Problem
    tick_s: float
    solver: Solver = Solver.CPSAT
    library: Library | None = None

    @property
    def skeleton(self) -> Skeleton:
        """The best ones are sought."""
        return Skeleton.OPTIMISE

    @property
    def cubes(self) -> MatrixCubes:
        """How they are cut."""
        problem = self.problem
        sizes = problem.topology.sizes, problem.axis_sizes
        return MatrixCubes(problem.axis_names, *sizes, problem.rules)

    def description(self) -> Mapping[str, object]:
        """Problem, tick and solver."""
        return {
            "problem": to_plain(self.problem),
            "tick_s": self.tick_s,
            "solver": self.solver.value,
            "library": to_plain(self.library),
        }

    def roots(self) -> tuple[Cube, ...]:
        """Cubes of as many first rows as make a few of them."""
        return self.cubes.roots(_ROOTS)

    def split(self, cube: Cube) -> tuple[Cube, ...]:
        """One row more."""
        return self.cubes.split(cube)

    def bound(self, cube: Cube) -> int:
        """What the links allow where a request's rows are fixed, and elsewhere at best."""
        found = shelf_of(self).bounds.bound(self.cubes.rows(cube))
        return _NO_MEMBER if found is None else found

    def tie_bound(self, cube: Cube) -> tuple[int, ...]:
        """The entries that its matrices begin with: none precedes them."""
        return self.cubes.first(cube)

    def close(self, task: CubeTask, signals: Signals) -> Closure | OverBudget:
        """Find the best matrices of a cube with their programs."""
        shelf = shelf_of(self)
        search = CubeSearch(
            shelf.table, shelf.answers, self.cubes, task, signals, self.bound(task.cube)
        )
        ended = search.run(may_split=bool(self.split(task.cube)))
        if search.cut:  # programs that were cut short are not for another search
            _SHELVES.pop(self, None)
        return ended

    def member(self, witness: str) -> Member:
        """The matrix of a text such as ``[[4,1],[1,16]]`` with the best programs."""
        shelf, matrix = shelf_of(self), matrix_of(witness)
        Placement(matrix).check(self.problem.topology.sizes, self.problem.axis_sizes)
        if not obeys(matrix, self.problem.rules):
            raise InputError(f"matrix {witness[:60]}", "does not obey the rules of the problem")
        if shelf.alternative(matrix) is None:
            raise InputError(f"matrix {witness[:60]}", "leaves a request without a program")
        ticks = shelf.table.ticks(matrix)
        if ticks is None:
            raise EncodingBug("a priced matrix has no ticks", self.description(), witness)
        return Member(ticks, flat(matrix), witness)


@dataclass(frozen=True, slots=True)
class SolveShelf:
    """What cubes of a problem share in a process; ``bounds`` are those before any program."""

    table: BoundTable
    answers: RequestAnswers
    bounds: RowBounds

    @staticmethod
    def of(problem: Problem, solver: Solver, listings: Listings, tick_s: float) -> SolveShelf:
        """The table filled with lower bounds, at a tick, and no program.

        Raises:
            TooLarge: a request has too many ways to lie on the levels.
        """
        table = BoundTable(problem, solver, lists=False)
        table.fill(StopWatch.start(SearchLimits()))
        table.measure_in(tick_s)
        return SolveShelf.filled(table, RequestAnswers(problem, solver, listings))

    @staticmethod
    def filled(table: BoundTable, answers: RequestAnswers) -> SolveShelf:
        """That of a filled table, which no program has refined.

        Raises:
            TooLarge: a request has too many ways to lie on the levels.
        """
        for refusal in table.refusals:
            raise refusal
        return SolveShelf(table, answers, RowBounds(table.question()))

    def alternative(self, matrix: Matrix) -> Alternative | None:
        """A matrix with the best programs, found now where they are not known; None: there are
        none.
        """
        for entry in self.table.open(matrix):
            self.table.refine(entry, self.answers.of(entry.request, entry.scene, SearchLimits()))
        return self.table.price(matrix)


_SHELVES: dict[SolveSpace, SolveShelf] = {}
"""The shelf of the last space that this process met."""


def shelf_of(space: SolveSpace) -> SolveShelf:
    """The shelf of a space in this process: programs are found once for all its cubes."""
    found = _SHELVES.get(space)
    if found is None:
        if space.library is not None:
            register_library(space.library)
        found = SolveShelf.of(space.problem, space.solver, Listings(), space.tick_s)
        keep_shelf(space, found)
    return found


def keep_shelf(space: SolveSpace, shelf: SolveShelf) -> None:
    """Let a space have this shelf, and forget that of another one."""
    _SHELVES.clear()
    _SHELVES[space] = shelf


def solve_space(data: Mapping[str, Any]) -> SolveSpace:
    """The space of a description.

    Raises:
        InputError: it is none.
    """
    try:
        problem, tick_s = from_plain(Problem, data["problem"]), float(data["tick_s"])
        solver, library = solver_of(data["solver"]), data["library"]
        known = None if library is None else from_plain(Library, library)
        return SolveSpace(problem, tick_s, solver, known)
    except (KeyError, TypeError, AttributeError):
        raise InputError("the description of a space", "is none of a problem") from None
