"""What it rests on that no program is missed: the word "optimal", or "complete", of programs.

That an answer is valid rests on it only beyond 1,024 devices per group, where the checker takes
small sizes instead of the real ones (:mod:`p2smt.programs.check`).
"""

from __future__ import annotations

from enum import Enum

from p2smt.parallelism.request import Problem
from p2smt.programs.program import small_model_length

ON_REAL_SIZES = frozenset({"z3"})
"""Solvers whose encoding of programs always has the real sizes."""


class ProofBasis(Enum):
    """Why programs that are found are all there are, or the best of all."""

    SMALL_MODEL = "small-model theorem"  # listed on twos: the same on all sizes
    REAL_SIZES = "exact search on the real sizes"

    @property
    def text(self) -> str:
        """What is complete, in words."""
        if self is ProofBasis.SMALL_MODEL:
            return f"complete for all sizes ({self.value})"
        return "complete for these sizes (exact search)"


def proof_basis(depth: int, length: int, solver: str = "") -> ProofBasis:
    """That of programs of at most so many instructions over so many levels.

    Without a solver it is that of the default encoding.
    """
    if solver in ON_REAL_SIZES or length > small_model_length(depth):
        return ProofBasis.REAL_SIZES
    return ProofBasis.SMALL_MODEL


def proof_bases(problem: Problem, solver: str) -> dict[int, ProofBasis]:
    """Those of a problem's programs, by how many levels a request may have; none without programs.

    A bound on matrices that are no answer rests on their programs, too, whatever their levels.
    """
    if not any(request.kind.has_programs for request in problem.requests):
        return {}
    return bases_to(len(problem.topology.levels), problem.max_length, solver)


def bases_to(levels: int, length: int, solver: str = "") -> dict[int, ProofBasis]:
    """That of programs of at most so many instructions over each number of levels up to this."""
    return {depth: proof_basis(depth, length, solver) for depth in range(1, levels + 1)}


def bases_of(bases: dict[int, ProofBasis]) -> list[ProofBasis]:
    """Each basis once."""
    return list(dict.fromkeys(bases.values()))


def basis_names(bases: dict[int, ProofBasis]) -> list[str]:
    """Each basis once, by name."""
    return [one.value for one in bases_of(bases)]


def basis_text(bases: dict[int, ProofBasis]) -> str:
    """The same in words, for people."""
    small = [depth for depth, one in bases.items() if one is ProofBasis.SMALL_MODEL]
    if len(small) in (0, len(bases)):
        return next(iter(bases.values())).text
    levels = f"{max(small)} level{'s' * (max(small) > 1)}"
    return f"complete: theorem to {levels}, exact search beyond"
