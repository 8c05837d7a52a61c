"""What the cubes of a search for a schedule decide, in an order that the question alone sets.

Where chunks are only copied: whether a rank holds a chunk after a step, ``c0.r3.s1``; at times at
which it can, and is of use there.  In an all-reduce: whether a message of a chunk goes over an edge
in a step, ``c0.e3.s1``.  Chunks, ranks, edges are numbered from 0, steps from 1.

One chunk is decided after the other, each from the first step on.  So the chunks that are not
decided yet stay alike where they were, which the solver makes use of.  And of chunks that are alike
(the same root, the same goals) those with the greater decisions, as words of 0 and 1, come first:
whatever is sought can have its chunks so numbered.  In a cube no chunk may come before one that is
decided and alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby, islice

from p2smt.errors import InputError
from p2smt.problems.schedule import ChunkThere, DisseminationProblem
from p2smt.problems.sums import AllReduceProblem, ChunkSent

DecisionPoint = tuple[int, int, int]
"""Chunk, rank or edge, step of a decision."""
MOST = 4096
"""Decisions after which a cube is not split any more."""


def there_names(problem: DisseminationProblem) -> tuple[str, ...]:
    """The decisions about a problem of copies, at most ``MOST``."""
    return tuple(f"c{c}.r{v}.s{s}" for c, v, s in islice(_open_times(problem), MOST))


def _open_times(problem: DisseminationProblem) -> Iterator[tuple[int, int, int]]:
    """(chunk, rank, step) where both are possible, as far as distances tell."""
    near = cache(lambda root: problem.distances([root]))
    left = cache(lambda goals: problem.distances(goals, back=True))
    for c, chunk in enumerate(problem.chunks):
        spans = list(zip(near(chunk.root), left(chunk.goals), strict=True))
        for s in range(1, problem.steps + 1):
            for v, (come, go) in enumerate(spans):
                known = v == chunk.root or (s == problem.steps and v in chunk.goals)
                reached = come is not None and go is not None and come <= s <= problem.steps - go
                if reached and not known:
                    yield c, v, s


def sent_names(problem: AllReduceProblem) -> tuple[str, ...]:
    """The decisions about an all-reduce, at most ``MOST``."""
    every = (
        f"c{c}.e{e}.s{s}"
        for c in range(problem.chunks)
        for s in range(1, problem.steps + 1)
        for e in range(len(problem.edges))
    )
    return tuple(islice(every, MOST))


def decided_there(problem: DisseminationProblem, path: Sequence[str]) -> DisseminationProblem:
    """The problem of copies, narrowed to the cube of a path.

    Raises:
        InputError: it decides something else, or out of order.
    """
    read = tuple(_read(path, there_names(problem)))
    alike = [
        [d for d in range(c + 1, len(problem.chunks)) if problem.chunks[d] == chunk]
        for c, chunk in enumerate(problem.chunks)
    ]
    return replace(
        problem,
        decided=tuple(ChunkThere(*at, yes) for at, yes in read),
        excluded=tuple(
            tuple(ChunkThere(*at, True) for at in some) for some in _too_early(read, alike)
        ),
    )


def decided_sent(problem: AllReduceProblem, path: Sequence[str]) -> AllReduceProblem:
    """The problem of an all-reduce, narrowed to the cube of a path.

    Raises:
        InputError: it decides something else, or out of order.
    """
    read = tuple(_read(path, sent_names(problem)))
    alike = [list(range(c + 1, problem.chunks)) for c in range(problem.chunks)]
    return replace(
        problem,
        decided=tuple(ChunkSent(c, e, s - 1, yes) for (c, e, s), yes in read),
        excluded=tuple(
            tuple(ChunkSent(c, e, s - 1, True) for c, e, s in some)
            for some in _too_early(read, alike)
        ),
    )


def _too_early(
    read: Sequence[tuple[DecisionPoint, bool]], alike: Sequence[Sequence[int]]
) -> Iterator[tuple[DecisionPoint, ...]]:
    """Decisions that, all with yes, would make a chunk greater than a decided one before it.

    It is greater where that has a 0, if until there it has a 1 wherever that has one.
    """
    for chunk, own in groupby(read, lambda one: one[0][0]):
        ones: list[tuple[int, int]] = []
        greater: list[tuple[tuple[int, int], ...]] = []
        for (_, place, step), yes in own:
            if yes:
                ones.append((place, step))
            else:
                greater.append((*ones, (place, step)))
        for other in alike[chunk]:
            yield from (tuple((other, *at) for at in some) for some in greater)


def check_path(path: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a path that is none of a cube.

    Raises:
        InputError: it decides something that has not these names, or out of order.
    """
    for _ in _read(path, names):
        pass


def _read(path: Sequence[str], names: Sequence[str]) -> Iterator[tuple[DecisionPoint, bool]]:
    """The three numbers of each decision, and whether it is yes."""
    if len(path) > len(names):
        raise InputError(f"a cube of {len(path)} decisions", f"there are {len(names)}")
    for decision, name in zip(path, names, strict=False):
        if decision not in (f"{name}=0", f"{name}=1"):
            raise InputError(f"decision {decision[:60]!r}", f"is not {name}=0 or {name}=1")
        first, second, third = (int(part[1:]) for part in name.split("."))
        yield (first, second, third), decision.endswith("1")
