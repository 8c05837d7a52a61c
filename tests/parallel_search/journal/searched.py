"""A small search that writes a journal, for tests of what reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2smt.parallel_search.journal.journal import Journal
from p2smt.parallel_search.journal.journal_text import read_journal
from p2smt.parallel_search.journal.journal_verification import JournalReport, verify_records
from p2smt.parallel_search.journal.record import header_of
from p2smt.parallel_search.journal.tree import RebuiltSpace
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from tests.parallel_search.journal.words import Words, words_in

Lines = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Quiet:
    """Nobody tells a worker anything."""

    def stopped(self) -> bool:
        """Never."""
        return False

    def cutoff(self) -> Member | None:
        """None."""
        return None


def open_journal(path: Path, space: Words, top: int = 1) -> Journal:
    header = header_of(space, "words", top=top, scale="1", cube_rule="first letters")
    return Journal(str(path), header, space.member)


def search(path: Path, space: Words, top: int = 1, *, splits: bool = True, most: int = 99) -> None:
    """Close cubes until none is open, or ``most`` are closed; ``splits``: the first root."""
    best: list[Member] = []
    with open_journal(path, space, top) as journal:
        waiting = list(space.roots())
        if splits:
            journal.split(waiting[0], space.split(waiting[0]))
            waiting[:1] = space.split(waiting[0])
        for cube in waiting[:most]:
            closure = close(space, cube, best, top)
            for member in closure.best:
                journal.incumbent(member)
            best = sorted({*best, *closure.best})[:top]
            journal.closed(closure)


def close(space: Words, cube: Subproblem, best: list[Member], top: int) -> Closure:
    """By the formula where that suffices, else by the space."""
    if space.skeleton is SearchKind.OPTIMISE and len(best) == top:
        bound = space.bound(cube)
        if bound > best[-1].value:
            return Closure(cube, SubproblemVerdict.BOUNDED, bound, by_formula=True)
    found = space.close(SubproblemTask(cube, top, tuple(best)), Quiet())
    assert not isinstance(found, OverBudget)
    return found


def verified(
    path: Path, space: Words, sample: int | None = None, other: Words | None = None
) -> JournalReport:
    """The verification of a journal of this space; ``other`` solves again."""
    remade = RebuiltSpace(space, words_in, "words", False, other, "paper")
    return verify_records(read_journal(str(path)), "journal", remade, sample=sample)


def change(path: Path, edit: Callable[[Lines], Any]) -> None:
    """Edit the lines of a journal as data; what it gives, if it is a list, takes their place."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    edited = edit(lines)
    lines = edited if isinstance(edited, list) else lines
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def verdict(lines: Lines, name: str, number: int = 0) -> dict[str, Any]:
    return [line for line in lines if line.get("verdict") == name][number]
