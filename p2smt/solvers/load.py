"""The encoding of a problem for a solver, imported on demand: solver libraries are heavy."""

from __future__ import annotations

from typing import assert_never

from p2smt.encodings import cpsat_library
from p2smt.errors import InputError
from p2smt.problems.sums import ScheduleClass
from p2smt.solvers.protocols import (
    AccumulatorsEncoding,
    AllocationEncoding,
    ClaimEncoding,
    CrossingEncoding,
    DisseminationEncoding,
    PartialsEncoding,
    PlacementEncoding,
    ProgramEncoding,
    RaceEncoding,
    RedistributionEncoding,
    TreesEncoding,
)
from p2smt.solvers.solver import Solver


def placement_encoding(solver: Solver) -> PlacementEncoding:
    """The encoding of placements."""
    match solver:
        case Solver.CPSAT:
            cpsat_library.load_cpsat()
            from p2smt.encodings.placement import cpsat

            return cpsat
        case Solver.Z3:
            from p2smt.encodings.placement import z3

            return z3
        case _:
            assert_never(solver)


def program_encoding(solver: Solver) -> ProgramEncoding:
    """The encoding of reduction programs."""
    match solver:
        case Solver.CPSAT:
            cpsat_library.load_cpsat()
            from p2smt.encodings.program import cpsat

            return cpsat
        case Solver.Z3:
            from p2smt.encodings.program import z3

            return z3
        case _:
            assert_never(solver)


def race_encoding(solver: Solver) -> RaceEncoding:
    """The encoding of races.

    Raises:
        InputError: there is none for this solver.
    """
    match solver:
        case Solver.CPSAT:
            raise _only_z3("races", solver)
        case Solver.Z3:
            from p2smt.encodings.race import z3

            return z3
        case _:
            assert_never(solver)


def claim_encoding(solver: Solver) -> ClaimEncoding:
    """The encoding of claims.

    Raises:
        InputError: there is none for this solver.
    """
    match solver:
        case Solver.CPSAT:
            raise _only_z3("claims", solver)
        case Solver.Z3:
            from p2smt.encodings.claim import z3

            return z3
        case _:
            assert_never(solver)


def allocation_encoding(solver: Solver) -> AllocationEncoding:
    """The encoding of allocations."""
    match solver:
        case Solver.CPSAT:
            cpsat_library.load_cpsat()
            from p2smt.encodings.allocation import cpsat

            return cpsat
        case Solver.Z3:
            from p2smt.encodings.allocation import z3

            return z3
        case _:
            assert_never(solver)


def redistribution_encoding(solver: Solver) -> RedistributionEncoding:
    """The encoding of redistributions."""
    match solver:
        case Solver.CPSAT:
            cpsat_library.load_cpsat()
            from p2smt.encodings.redistribution import cpsat

            return cpsat
        case Solver.Z3:
            from p2smt.encodings.redistribution import z3

            return z3
        case _:
            assert_never(solver)


def crossing_encoding(solver: Solver) -> CrossingEncoding:
    """The encoding of crossings.

    Raises:
        InputError: there is none for this solver.
    """
    match solver:
        case Solver.CPSAT:
            raise _only_z3("crossings", solver)
        case Solver.Z3:
            from p2smt.encodings.crossing import z3

            return z3
        case _:
            assert_never(solver)


def _only_z3(what: str, solver: Solver) -> InputError:
    return InputError(f"solver {solver.value!r} for {what}", f"must be {Solver.Z3.value}")


def dissemination_encoding(solver: Solver) -> DisseminationEncoding:
    """The encoding of schedules that only copy."""
    match solver:
        case Solver.CPSAT:
            cpsat_library.load_cpsat()
            from p2smt.encodings.schedule.dissemination import cpsat

            return cpsat
        case Solver.Z3:
            from p2smt.encodings.schedule.dissemination import z3

            return z3
        case _:
            assert_never(solver)


def all_reduce_encoding(
    family: ScheduleClass, solver: Solver
) -> TreesEncoding | AccumulatorsEncoding | PartialsEncoding:
    """The encoding of the all-reduces of a class.

    Raises:
        InputError: there is none for this solver.
    """
    match family, solver:
        case ScheduleClass.TREES, Solver.CPSAT:
            from p2smt.encodings.schedule.trees import cpsat as trees

            return trees
        case ScheduleClass.ACCUMULATORS, Solver.CPSAT:
            from p2smt.encodings.schedule.accumulators import cpsat as accumulators

            return accumulators
        case ScheduleClass.PARTIAL_SUMS, Solver.CPSAT:
            from p2smt.encodings.schedule.partials import cpsat

            return cpsat
        case ScheduleClass.PARTIAL_SUMS, Solver.Z3:
            from p2smt.encodings.schedule.partials import z3

            return z3
        case _:
            given = f"solver {solver.value!r} for all-reduces of class {family.value!r}"
            raise InputError(given, f"must be {Solver.CPSAT.value}")
