"""The cubes of a journal as a tree: roots, what they were split into, and how each was closed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from p2smt.errors import InputError
from p2smt.parallel_search.journal.record import JournalEntry, SplitRecord
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    SearchKind,
    Space,
    Subproblem,
    SubproblemVerdict,
)


@dataclass(frozen=True, slots=True)
class SubproblemTree:
    """Each cube once, whatever the order of the records and however often they stand there.

    Attributes:
        roots: the first cubes.
        splits: cubes and what each was replaced by.
        closed: cubes that were closed, by the strongest of their verdicts.
        members: all that are on record, each once, best first.
        repeated: how many verdicts were on cubes that had one.
        faults: what cannot be, in words, each with its line.
    """

    roots: tuple[Subproblem, ...]
    splits: Mapping[Subproblem, tuple[Subproblem, ...]]
    closed: Mapping[Subproblem, Closure]
    members: tuple[Member, ...]
    repeated: int
    faults: tuple[str, ...]

    @staticmethod
    def of(
        roots: tuple[Subproblem, ...], entries: Iterable[JournalEntry], skeleton: SearchKind
    ) -> SubproblemTree:
        """The tree of a journal's records."""
        made = _Made(skeleton)
        for entry in entries:
            made.add(entry)
        strangers = made.strangers(roots)
        nested = made.nested()
        faults = (*made.faults, *strangers, *nested)
        members = tuple(sorted(made.members))
        return SubproblemTree(roots, made.splits, made.closed, members, made.repeated, faults)


class _Made:
    """A tree in the making."""

    def __init__(self, skeleton: SearchKind) -> None:
        self.skeleton = skeleton
        self.splits: dict[Subproblem, tuple[Subproblem, ...]] = {}
        self.closed: dict[Subproblem, Closure] = {}
        self.members: set[Member] = set()
        self.lines: dict[Subproblem, int] = {}
        self.repeated = 0
        self.faults: list[str] = []

    def add(self, entry: JournalEntry) -> None:
        record = entry.record
        if isinstance(record, SplitRecord):
            self._split(record, entry.line)
        elif isinstance(record, Closure):
            self._close(record, entry.line)
        elif isinstance(record, Member):
            self.members.add(record)

    def _split(self, record: SplitRecord, line: int) -> None:
        self.lines.setdefault(record.cube, line)
        known = self.splits.setdefault(record.cube, record.children)
        if sorted(known) != sorted(record.children):
            self._fault(line, f"{shown(record.cube)} is split otherwise than before")

    def _close(self, closure: Closure, line: int) -> None:
        self.lines.setdefault(closure.cube, line)
        self.members.update(closure.best)
        known = self.closed.setdefault(closure.cube, closure)
        if known is closure:
            return
        self.repeated += not known.deaths  # one that was given up may be closed later
        if contradicts(known, closure, self.skeleton):
            self._fault(line, f"{shown(closure.cube)} has a verdict that contradicts its first")
        self.closed[closure.cube] = stronger(known, closure)

    def strangers(self, roots: tuple[Subproblem, ...]) -> Iterator[str]:
        """Cubes that are no root and no child of a split."""
        known = {*roots, *(child for some in self.splits.values() for child in some)}
        for cube, line in self.lines.items():
            if cube not in known:
                yield f"line {line}: {shown(cube)} is no first cube and comes of no split"

    def nested(self) -> Iterator[str]:
        """Closed parts of closed cubes that contradict these."""
        for cube, part in self.closed.items():
            for depth in range(len(cube.path)):
                whole = self.closed.get(Subproblem(cube.path[:depth]))
                if whole is not None and contradicts(whole, part, self.skeleton):
                    line = self.lines[cube]
                    yield f"line {line}: {shown(cube)} contradicts what {shown(whole.cube)} has"

    def _fault(self, line: int, text: str) -> None:
        self.faults.append(f"line {line}: {text}")


def shown(cube: Subproblem) -> str:
    """A cube in a message."""
    text = " / ".join(cube.path) if cube.path else "the whole space"
    return f"cube {text if len(text) <= 120 else text[:118] + '..'}"


# Whether two verdicts can both be true.
# A verdict is a claim on a set of members; late and duplicate results bring several on the same
# cube, or on a cube and a part of it.


_STRENGTH = {
    SubproblemVerdict.UNKNOWN: 0,
    SubproblemVerdict.BOUNDED: 1,
    SubproblemVerdict.SOLVED: 2,
    SubproblemVerdict.EMPTY: 2,
    SubproblemVerdict.LISTED: 2,
}


def lower_bound(claim: Closure) -> float | None:
    """What no member of the cube costs less than, in ticks, by its verdict; None: unknown."""
    match claim.verdict:
        case SubproblemVerdict.EMPTY:
            return math.inf
        case SubproblemVerdict.SOLVED:
            return claim.best[0].value
        case SubproblemVerdict.LISTED if claim.count == 0:
            return math.inf
        case _:
            return claim.bound


def stronger(one: Closure, other: Closure) -> Closure:
    """The one of two agreeing claims on a cube that says more; the first if they say the same."""
    return max(one, other, key=_strength)


def _strength(claim: Closure) -> tuple[int, float]:
    bound = lower_bound(claim)
    return _STRENGTH[claim.verdict], -math.inf if bound is None else bound


def contradicts(whole: Closure, part: Closure, skeleton: SearchKind) -> bool:
    """Whether a claim on a cube and one on a part of it, or on itself, cannot both be true."""
    if skeleton is SearchKind.DECIDE:  # a solved cube shows any of its members, not its best
        return (_empty(whole) and bool(part.best)) or (
            whole.cube == part.cube and _empty(part) and bool(whole.best)
        )
    return (
        any(_excludes(whole, member) for member in part.best)
        or (_empty(whole) and bool(part.count))
        or (whole.cube == part.cube and _differ(whole, part))
    )


def _excludes(claim: Closure, member: Member) -> bool:
    """Whether a member that is said to be in the cube cannot be in it."""
    if claim.verdict is SubproblemVerdict.SOLVED:
        return place(member) < place(claim.best[0])
    bound = lower_bound(claim)
    return bound is not None and member.value < bound


def place(member: Member) -> tuple[int, tuple[int, ...]]:
    """What members are compared by; several may share a place, and any of them will do."""
    return member.value, member.tie


def _empty(claim: Closure) -> bool:
    return lower_bound(claim) == math.inf


def _differ(one: Closure, other: Closure) -> bool:
    """Of the same cube: whether the members that both have in full are not the same."""
    if any(_excludes(other, member) for member in one.best) or (_empty(other) and one.count):
        return True
    if one.verdict is not other.verdict:
        return False
    if (
        one.verdict is SubproblemVerdict.SOLVED
    ):  # one may be cut short where a better cutoff was known
        return any(place(a) != place(b) for a, b in zip(one.best, other.best, strict=False))
    return one.verdict is SubproblemVerdict.LISTED and (one.count, one.digest) != (
        other.count,
        other.digest,
    )


# A space made again from a journal's header, with what verifies a search of it.


Share = Callable[[Subproblem], Fraction]
"""How much of all there is lies in a cube: a number of things, or a part of the whole.

Things are counted by their cubes' decisions whether they are members or not, and by other code
than that which makes the cubes.  Cubes of which neither is a part of the other share nothing, so
cubes without such a pair are everything if their shares add up to that of the cube without
decisions.  It raises InputError for a cube with a decision that there is not.
"""


HALVES = "space of decisions"
"""What :func:`boolean_share` counts, in words: the whole is 1."""


@dataclass(frozen=True, slots=True)
class RebuiltSpace:
    """What a verification needs.

    Attributes:
        space: the space, as it was searched.
        share: the independent count of its cubes.
        counted: what that counts, in words ("matrices").
        exact: whether it counts the members of the space, and nothing else.
        other: the same space, its cubes closed by another solver; None: there is no other.
        solver: which one closes cubes again: that of ``other``, or else of ``space``.
    """

    space: Space
    share: Share
    counted: str
    exact: bool = False
    other: Space | None = None
    solver: str = ""


def boolean_share(names: Sequence[str]) -> Share:
    """The share of a prefix of yes/no decisions, written ``name=1`` or ``name=0``: 2^-depth.

    ``names`` are decided in this order in every cube.
    """

    def share(cube: Subproblem) -> Fraction:
        for depth, decision in enumerate(cube.path):
            known = [f"{name}={value}" for name in names[depth : depth + 1] for value in (0, 1)]
            if decision not in known:
                rule = "is decided out of order, or not by 0 or 1"
                raise InputError(f"decision {decision[:60]!r}", rule)
        return Fraction(1, 2 ** len(cube.path))

    return share
