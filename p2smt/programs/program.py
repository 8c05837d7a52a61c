"""Programs: instructions over slices of a synthesis hierarchy, and their text.

Reduction programs are made of collectives that add up or copy chunks, the programs of an all-to-all
of all-to-alls alone.

The synthesis hierarchy of a request holds the reduction axes' factors at each level, merged
by level, ones dropped (P2, synthesis hierarchy).  Depth 0 is the root, depth t the subtrees
that are left once the first t coordinates are fixed.
"""

from __future__ import annotations

import math
import operator
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import compress, pairwise

import numpy as np

from p2smt.cluster.topology import ROOT
from p2smt.collectives.dispatch import AnyKind
from p2smt.collectives.names import Collective, Form, ProgramOperation, RequestKind
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import MAX_PROGRAM_LENGTH, Problem

SMALL_MODEL_LENGTH = 6
"""Programs of so many steps, over up to MODEL_DEPTH levels, are in the range of the small-model
theorem (docs/small-model.md)."""
MODEL_DEPTH = 5
"""Programs of so many steps over more levels are those over each choice of so many to keep apart:
no valid program of up to five steps tells more levels apart than it has steps (lemma 6 there)."""
_MERGED_LENGTH = 5
_ANY_LENGTH_DEPTH = 2


def small_model_length(depth: int) -> int:
    """The longest programs over so many levels in the range of the small-model theorem."""
    if depth <= _ANY_LENGTH_DEPTH:
        return MAX_PROGRAM_LENGTH
    return SMALL_MODEL_LENGTH if depth <= MODEL_DEPTH else _MERGED_LENGTH


@dataclass(frozen=True, slots=True, order=True)
class Grouping:
    """Groups over coordinates ``outer`` to ``inner - 1``; the others are fixed per group.

    ``master``: only devices whose coordinates from ``inner`` on are all zero take part.
    """

    outer: int
    inner: int
    master: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """(collective, slice, form): levels by name, ``ancestor`` for Parallel and Master."""

    collective: ProgramOperation
    slice: str
    form: Form
    ancestor: str | None = None

    @property
    def reduction(self) -> Collective:
        """The collective of a reduction program's instruction.

        Raises:
            InputError: it is an all-to-all, which reduces and copies nothing.
        """
        if self.collective is RequestKind.ALL_TO_ALL:
            rule = "is only of the programs of an all-to-all"
            raise InputError(f"instruction '{self}'", rule, "take a collective that reduces")
        return self.collective

    def __str__(self) -> str:
        place = f"{self.form.value} {self.slice}"
        return f"{self.collective.value} {place}" + (
            f" in {self.ancestor}" if self.ancestor else ""
        )


@dataclass(frozen=True, slots=True)
class Program:
    """A sequence of instructions, executed one after the other."""

    instructions: tuple[Instruction, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.instructions))

    def __len__(self) -> int:
        return len(self.instructions)


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A synthesis hierarchy: ``factors`` > 1, outermost first, and the name of each depth.

    ``aliases`` maps every level name of the topology (``root`` too) to its depth; the
    first name of a depth is the outermost and the one that is printed.
    """

    factors: tuple[int, ...]
    aliases: tuple[tuple[str, int], ...]

    @staticmethod
    def of(names: Sequence[str], factors: Sequence[int]) -> Hierarchy:
        """The hierarchy of these levels and their (merged) factors, ones included."""
        aliases, depth = [(ROOT, 0)], 0
        for name, factor in zip(names, factors, strict=True):
            depth += factor > 1
            aliases.append((name, depth))
        return Hierarchy(tuple(f for f in factors if f > 1), tuple(aliases))

    @staticmethod
    def plain(factors: Sequence[int]) -> Hierarchy:
        """The hierarchy of levels named l1, l2, ... from the outermost."""
        return Hierarchy.of([f"l{i + 1}" for i in range(len(factors))], factors)

    @property
    def size(self) -> int:
        """Number of devices in a reduction group."""
        return math.prod(self.factors)

    @property
    def depth(self) -> int:
        """Number of non-trivial levels."""
        return len(self.factors)

    def merged(self, depths: Sequence[int]) -> Hierarchy:
        """The hierarchy cut at these depths only (ascending, ends left out), levels merged between.

        An instruction over it forms the groups that its text stands for on this one.  A name
        that lies between two cuts stands for the inner one.
        """
        cuts = (0, *depths, self.depth)
        factors = [math.prod(self.factors[a:b]) for a, b in pairwise(cuts)]
        inner = [(name, bisect_left(cuts, depth)) for name, depth in self.aliases]
        kept = [depth in cuts for _, depth in self.aliases]
        return Hierarchy(
            tuple(factors),
            (*compress(inner, kept), *compress(inner, map(operator.not_, kept))),
        )

    def name(self, depth: int) -> str:
        """The printed name of a depth."""
        return next(name for name, d in self.aliases if d == depth)

    def depth_of(self, name: str) -> int:
        """The depth a level name stands for."""
        for known, depth in self.aliases:
            if known == name:
                return depth
        known_names = ", ".join(name for name, _ in self.aliases)
        raise InputError(f"level {name[:40]!r}", "is not in the hierarchy", f"use {known_names}")

    def grouping(self, instruction: Instruction) -> Grouping:
        """The grouping an instruction stands for, in canonical form."""
        inner = self.depth_of(instruction.slice)
        if instruction.form is Form.INSIDE_GROUP:
            found = Grouping(inner, self.depth)
        else:
            outer = self.depth_of(instruction.ancestor or ROOT)
            master = instruction.form is Form.MASTER and inner < self.depth
            found = Grouping(outer, inner, master)
        if found.outer >= found.inner:
            raise InputError(f"instruction '{instruction}'", "forms groups of one device")
        return found

    def instruction(self, collective: ProgramOperation, grouping: Grouping) -> Instruction:
        """The printed form: outermost slice, InsideGroup before Parallel before Master."""
        outer, inner = self.name(grouping.outer), self.name(grouping.inner)
        if grouping.inner == self.depth:
            return Instruction(collective, outer, Form.INSIDE_GROUP)
        form = Form.MASTER if grouping.master else Form.PARALLEL
        return Instruction(collective, inner, form, outer)

    def canonical(self, program: Program) -> Program:
        """The same program with every instruction in its printed form."""
        return Program(
            tuple(self.instruction(i.collective, self.grouping(i)) for i in program.instructions)
        )


def groupings(depth: int) -> tuple[Grouping, ...]:
    """Every distinct grouping of a hierarchy of this depth: depth squared of them."""
    inside = [Grouping(outer, depth) for outer in range(depth)]
    partial = [
        Grouping(outer, inner, master)
        for inner in range(1, depth)
        for outer in range(inner)
        for master in (False, True)
    ]
    return tuple(inside + partial)


def local_groups(factors: Sequence[int], grouping: Grouping) -> IntArray:
    """Positions 0..k-1 of each group's members: shape (groups, members), in device order."""
    positions = np.arange(math.prod(factors), dtype=np.int64).reshape(tuple(factors))
    if grouping.master:
        below = math.prod(factors[grouping.inner :])
        positions = np.where(positions % below == 0, positions, -1)
    varying = list(range(grouping.outer, grouping.inner))
    fixed = [d for d in range(len(factors)) if d not in varying]
    members = math.prod(factors[d] for d in varying)
    groups = positions.transpose(fixed + varying).reshape(-1, members)
    return groups[groups[:, 0] >= 0]


def lower(reduction_groups: IntArray, factors: Sequence[int], grouping: Grouping) -> IntArray:
    """Device groups of one step: the local groups inside every reduction group."""
    local = local_groups(factors, grouping)
    return reduction_groups[:, local].reshape(-1, local.shape[1])


_INSTRUCTION = re.compile(
    r"(?P<collective>[a-z-]+)\s+(?P<form>inside|parallel|master)\s+(?P<slice>[a-z][a-z0-9_-]*)"
    r"(?:\s+in\s+(?P<ancestor>[a-z][a-z0-9_-]*))?"
)
MAX_TEXT = 10_000


def operations_of(kind: AnyKind | None) -> tuple[ProgramOperation, ...]:
    """What the instructions of a request's programs may do; None: of any but an all-to-all."""
    if kind is RequestKind.ALL_TO_ALL:
        return (RequestKind.ALL_TO_ALL,)
    return tuple(Collective)


def parse_instruction(text: str, kind: AnyKind | None = None) -> Instruction:
    """An instruction such as ``all-reduce parallel node in root``, for a request of a kind."""
    found = _INSTRUCTION.fullmatch(text.strip())
    known = {operation.value: operation for operation in operations_of(kind)}
    names = list(known)
    if found is None or found["collective"] not in names:
        raise InputError(
            f"instruction '{text.strip()[:80]}'",
            "is not COLLECTIVE inside LEVEL, or COLLECTIVE parallel|master LEVEL in LEVEL",
            f"collectives are {', '.join(names)}",
        )
    form = Form(found["form"])
    if (form is Form.INSIDE_GROUP) == bool(found["ancestor"]):
        raise InputError(
            f"instruction '{text.strip()[:80]}'",
            "parallel and master, and only they, end in 'in LEVEL'",
        )
    return Instruction(known[found["collective"]], found["slice"], form, found["ancestor"])


def parse_program(text: str, kind: AnyKind | None = None) -> Program:
    """A program: instructions separated by semicolons.  ``parse_program(str(p)) == p``."""
    if len(text) > MAX_TEXT:
        raise InputError("program text", f"is longer than {MAX_TEXT} characters")
    return Program(
        tuple(parse_instruction(part, kind) for part in text.strip().split(";") if text.strip())
    )


# What it rests on that no program is missed: the word "optimal", or "complete", of programs.
# That an answer is valid rests on it only beyond 1,024 devices per group, where the checker takes
# small sizes instead of the real ones (:mod:`p2smt.programs.check`).


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
