"""The one door to the solvers: encodings are imported here and nowhere else."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol

from p2smt.errors import InputError
from p2smt.problems.program import Indices, ProgramProblem
from p2smt.result import Result, SearchLimits

SOLVERS = ("cpsat", "z3")


class ProgramSolver(Protocol):
    """What every program encoding offers (see ``encodings/program/``)."""

    def enumerate_programs(
        self, problem: ProgramProblem, limits: SearchLimits
    ) -> Result[tuple[Indices, ...]]: ...

    def optimal_program(self, problem: ProgramProblem, limits: SearchLimits) -> Result[Indices]: ...

    def best_programs(
        self, problem: ProgramProblem, limits: SearchLimits, k: int
    ) -> Result[tuple[Indices, ...]]: ...

    def cost_keys(
        self, problem: ProgramProblem, limits: SearchLimits
    ) -> Sequence[tuple[int, int]] | None: ...


def encoding(what: str, solver: str) -> Any:
    """The encoding module of a problem and a solver, imported on demand."""
    if solver not in SOLVERS:
        raise InputError(f"solver {solver[:20]!r}", f"must be one of {', '.join(SOLVERS)}")
    return importlib.import_module(f"p2smt.encodings.{what}.{solver}")
