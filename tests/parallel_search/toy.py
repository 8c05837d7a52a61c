"""A toy space: bit strings whose ones pay their weights, those with forbidden sums left out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from p2smt.errors import InputError
from p2smt.parallel_search.best import digest_of
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Signals,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)

Bits = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Toy:
    """Bit strings of one weight each; their value modulo ``modulus`` must not be ``forbidden``.

    Weights may be negative.  A cube is a prefix, the roots those of ``depth`` bits; each cube
    takes ``pause_s`` seconds of work.
    """

    weights: tuple[int, ...]
    modulus: int = 1
    forbidden: int = -1
    depth: int = 1
    asked: SearchKind = SearchKind.OPTIMISE
    pause_s: float = 0.0
    splits_at: int = 0
    """Cubes of fewer bits than this exceed any budget."""

    @property
    def skeleton(self) -> SearchKind:
        return self.asked

    def description(self) -> Mapping[str, object]:
        return {"weights": list(self.weights), "modulus": self.modulus, "asked": self.asked.value}

    def roots(self) -> tuple[Subproblem, ...]:
        return tuple(Subproblem(tuple(bits)) for bits in product("01", repeat=self.depth))

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:
        if len(cube.path) == len(self.weights):
            return ()
        return (cube.under("0"), cube.under("1"))

    def bound(self, cube: Subproblem) -> int:
        rest = self.weights[len(cube.path) :]
        fixed = sum(w for w, bit in zip(self.weights, cube.path, strict=False) if bit == "1")
        return fixed + sum(min(w, 0) for w in rest)

    def members_in(self, cube: Subproblem) -> Iterator[Member]:
        """All members of a cube, one bit string after another."""
        rest = len(self.weights) - len(cube.path)
        for tail in product((0, 1), repeat=rest):
            bits = (*map(int, cube.path), *tail)
            if self._allowed(bits):
                yield self._member(bits)

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        if task.budget_s is not None and len(task.cube.path) < self.splits_at:
            return OverBudget(task.cube, tuple(sorted(self.members_in(task.cube))[:1]))
        if not self._worked(task, signals):
            return Closure(task.cube, SubproblemVerdict.UNKNOWN)
        members = sorted(self.members_in(task.cube))
        if not members:
            return Closure(task.cube, SubproblemVerdict.EMPTY)
        if self.asked is SearchKind.ENUMERATE:
            digest = digest_of(m.witness for m in members)
            best = tuple(members[: task.top])
            listed = SubproblemVerdict.LISTED
            return Closure(task.cube, listed, best=best, count=len(members), digest=digest)
        return self._best(task, members, signals.cutoff())

    def member(self, witness: str) -> Member:
        bits = tuple(json.loads(witness))
        if len(bits) != len(self.weights) or not self._allowed(bits):
            raise InputError(witness, "is no member of the toy")
        return self._member(bits)

    def _best(self, task: SubproblemTask, members: list[Member], cutoff: Member | None) -> Closure:
        if cutoff is None and len(task.known) == task.top:
            cutoff = task.known[-1]
        best = tuple(m for m in members[: task.top] if cutoff is None or m < cutoff)
        bound = members[0].value
        if best:
            return Closure(task.cube, SubproblemVerdict.SOLVED, bound, best)
        return Closure(task.cube, SubproblemVerdict.BOUNDED, bound)

    def _worked(self, task: SubproblemTask, signals: Signals) -> bool:
        """Spend the time of a cube; whether it was not cut short."""
        started_s = time.monotonic()
        while (spent_s := time.monotonic() - started_s) < self.pause_s:
            late = task.deadline_s is not None and spent_s >= task.deadline_s
            if signals.stopped() or late:
                return False
            time.sleep(min(0.01, self.pause_s - spent_s))
        return True

    def _allowed(self, bits: Bits) -> bool:
        return self._value(bits) % self.modulus != self.forbidden

    def _value(self, bits: Bits) -> int:
        return sum(w for w, bit in zip(self.weights, bits, strict=True) if bit)

    def _member(self, bits: Bits) -> Member:
        return Member(self._value(bits), bits, json.dumps(bits))
