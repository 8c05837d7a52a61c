"""The cubes of a journal as a tree: roots, what they were split into, and how each was closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from p2smt.skeletons.cube import Closure, Cube, Member
from p2smt.skeletons.journal.agreement import contradicts, stronger
from p2smt.skeletons.journal.record import JournalEntry, SplitRecord
from p2smt.skeletons.space import Skeleton


@dataclass(frozen=True, slots=True)
class CubeTree:
    """Each cube once, whatever the order of the records and however often they stand there.

    Attributes:
        roots: the first cubes.
        splits: cubes and what each was replaced by.
        closed: cubes that were closed, by the strongest of their verdicts.
        members: all that are on record, each once, best first.
        repeated: how many verdicts were on cubes that had one.
        faults: what cannot be, in words, each with its line.
    """

    roots: tuple[Cube, ...]
    splits: Mapping[Cube, tuple[Cube, ...]]
    closed: Mapping[Cube, Closure]
    members: tuple[Member, ...]
    repeated: int
    faults: tuple[str, ...]

    @staticmethod
    def of(
        roots: tuple[Cube, ...], entries: Iterable[JournalEntry], skeleton: Skeleton
    ) -> CubeTree:
        """The tree of a journal's records."""
        made = _Made(skeleton)
        for entry in entries:
            made.add(entry)
        strangers = made.strangers(roots)
        nested = made.nested()
        faults = (*made.faults, *strangers, *nested)
        members = tuple(sorted(made.members))
        return CubeTree(roots, made.splits, made.closed, members, made.repeated, faults)


class _Made:
    """A tree in the making."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.skeleton = skeleton
        self.splits: dict[Cube, tuple[Cube, ...]] = {}
        self.closed: dict[Cube, Closure] = {}
        self.members: set[Member] = set()
        self.lines: dict[Cube, int] = {}
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

    def strangers(self, roots: tuple[Cube, ...]) -> Iterator[str]:
        """Cubes that are no root and no child of a split."""
        known = {*roots, *(child for some in self.splits.values() for child in some)}
        for cube, line in self.lines.items():
            if cube not in known:
                yield f"line {line}: {shown(cube)} is no first cube and comes of no split"

    def nested(self) -> Iterator[str]:
        """Closed parts of closed cubes that contradict these."""
        for cube, part in self.closed.items():
            for depth in range(len(cube.path)):
                whole = self.closed.get(Cube(cube.path[:depth]))
                if whole is not None and contradicts(whole, part, self.skeleton):
                    line = self.lines[cube]
                    yield f"line {line}: {shown(cube)} contradicts what {shown(whole.cube)} has"

    def _fault(self, line: int, text: str) -> None:
        self.faults.append(f"line {line}: {text}")


def shown(cube: Cube) -> str:
    """A cube in a message."""
    text = " / ".join(cube.path) if cube.path else "the whole space"
    return f"cube {text if len(text) <= 120 else text[:118] + '..'}"
