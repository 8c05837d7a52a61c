"""Numbers that tell contributions apart: what a sum was made of shows in its value.

Each contribution gets ``width`` random integers of 64 bits, and sums are taken modulo 2^64.  Two
different multisets whose counts differ by an odd number somewhere have the same sum with
probability 2^-(64 width); where all counts differ by multiples of 2^v, v bits are lost.  So no
doubled, missing or foreign contribution goes unnoticed in practice.  Memory that was never written
holds other random integers, which differ from chunk to chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from p2smt.collectives.contract import Contract, Contribution, Goal

    Words = NDArray[np.uint64]


WIDTH = 2
"""Integers of 64 bits per contribution and chunk, if nothing else is asked for."""


def contributions_of(contract: Contract) -> dict[Contribution, int]:
    """Every contribution that a contract names, numbered in a fixed order."""
    given = {one for chunks in contract.starts for one in chunks if one is not None}
    named = {part for goal in contract.goals for part in goal.parts}
    return {one: number for number, one in enumerate(sorted(given | named))}


def goals_of(contract: Contract) -> list[list[Goal]]:
    """The goals of each rank."""
    goals: list[list[Goal]] = [[] for _ in contract.starts]
    for goal in contract.goals:
        goals[goal.rank].append(goal)
    return goals


@dataclass(frozen=True, slots=True)
class Values:
    """The numbers of a run; ``goals`` by rank, ``table`` a row per contribution."""

    width: int
    seed: int
    numbers: Mapping[Contribution, int]
    goals: list[list[Goal]]
    table: Words

    @staticmethod
    def of_contract(contract: Contract, seed: int, width: int) -> Values:
        """Numbers for all contributions of a contract."""
        numbers = contributions_of(contract)
        table = _random(width, seed, 0, len(numbers))
        return Values(width, seed, numbers, goals_of(contract), table)

    def of(self, contribution: Contribution) -> Words:
        """The numbers of one contribution."""
        found: Words = self.table[self.numbers[contribution]]
        return found

    def total(self, goal: Goal) -> Words:
        """What a goal asks for."""
        chosen = self.table[[self.numbers[part] for part in goal.parts]]
        total: Words = chosen.sum(axis=0, dtype=np.uint64)
        return total

    def garbage(self, rank: int, rows: int) -> Words:
        """What the memory of a rank holds before anything is written there."""
        return _random(self.width, self.seed, rank + 1, rows)


def _random(width: int, seed: int, stream: int, rows: int) -> Words:
    draw = np.random.default_rng((seed, stream))
    return draw.integers(0, 2**64, (rows, width), np.uint64)
