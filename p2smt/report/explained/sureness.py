"""How sure what is said of flips is: proved, tried at some factors, or open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from p2smt.plans.explanation import SEARCHED, FlipOutcome, NearestFlip, exact_flips

Subjects = Mapping[str, Sequence[NearestFlip]]
"""The flips of the placement and of each program, by its name in words."""


def by_subject(flips: Sequence[NearestFlip]) -> Subjects:
    """Flips by what would change, in their order."""
    found: dict[str, list[NearestFlip]] = {}
    for flip in flips:
        subject = "the placement" if flip.request is None else f"the program of {flip.request}"
        found.setdefault(subject, []).append(flip)
    return found


def how_sure(subjects: Subjects) -> Iterator[str]:
    """One line each for what was tried at some factors, at the largest only, and what is exact.

    Nothing is called exact of a placement or a program of which a flip is open.
    """
    guessed = {name: _guessed(flips) for name, flips in subjects.items()}
    tried = {name: [f for f in flips if f.tried] for name, flips in guessed.items()}
    if any(tried.values()):
        counts = [flip.tried for flips in tried.values() for flip in flips]
        yield (
            f"tried {_span(counts)} factors of each number up to {SEARCHED}x"
            f"{_of(tried, subjects)}; between them none was looked for"
        )
    blind = {name: [f for f in flips if not f.tried] for name, flips in guessed.items()}
    if any(blind.values()):
        where = _of(blind, subjects)
        yield f"only solved again at {SEARCHED}x{where}; nearer nothing was looked for"
    exact = {name: flips if exact_flips(flips) else [] for name, flips in subjects.items()}
    if any(exact.values()):
        yield f"exact{_of(exact, subjects)}: none is nearer, and where none is named there is none"


def _guessed(flips: Sequence[NearestFlip]) -> list[NearestFlip]:
    return [f for f in flips if not f.proved and f.outcome is not FlipOutcome.OPEN]


def _of(some: Subjects, subjects: Subjects) -> str:
    """For which subjects something holds; nothing where it holds for all."""
    named = [name for name, flips in some.items() if flips]
    return "" if len(named) == len(subjects) else f" for {', '.join(named)}"


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"
