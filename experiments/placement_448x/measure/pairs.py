"""What the measured study times: the (placement, program) pairs of every case of a cluster.

A pair belongs to a case (:mod:`experiments.placement_448x.cases`).  Pairs whose steps have the
same groups and collectives are one *entry*, which is timed for all of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from experiments.placement_448x.cases import Case, cases, matrices
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.programs.program import Hierarchy, Program
from p2smt.result import SearchLimits, Status
from p2smt.runtime.job import JobRequest
from p2smt.runtime.programs.plan_job import program_job
from p2smt.search.program_synthesis import Task, list_programs

KIND = RequestKind.ALL_REDUCE
LENGTH = 3
CLOSE = 1.5
"""Programs predicted within this factor of the best of their placement are timed most often."""
SHORT_S, OFTEN = 0.1, 5
"""Programs predicted to take less are timed so many times in every round, whatever they are
predicted beside the best: where processes wait for processors, short times vary most."""
Key = tuple[object, ...]


@dataclass(slots=True)
class Pairs:
    """``cases`` lists (case, [(matrix, entries of its programs, best predicted first)]).

    ``entries`` are requests to time, ``factors`` the members of their groups per level, and
    ``close`` the numbers of those that are timed in every round.
    """

    entries: list[JobRequest] = field(default_factory=list)
    factors: list[tuple[int, ...]] = field(default_factory=list)
    close: set[int] = field(default_factory=set)
    cases: list[tuple[Case, list[tuple[Matrix, list[int]]]]] = field(default_factory=list)
    _known: dict[Key, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of (placement, program) pairs over all cases."""
        return sum(len(numbers) for _, rows in self.cases for _, numbers in rows)

    def add(self, factors: tuple[int, ...], requests: Sequence[JobRequest]) -> list[int]:
        """The entries of a placement's programs, new ones being added."""
        limit = CLOSE * min(map(predicted_s, requests))
        found = []
        for request in requests:
            number = self._known.setdefault(key(request), len(self.entries))
            if number == len(self.entries):
                self.entries.append(request)
                self.factors.append(factors)
            if is_single(request) or predicted_s(request) <= limit:
                self.close.add(number)
            found.append(number)
        return found

    def rounds(self, repeat: int, seed: int) -> list[list[int]]:
        """Numbers of the entries of every round: a shuffled order, rotated in every round.

        Entries that are neither close nor short have one timing, in one of the rounds.
        """
        short = {n for n, request in enumerate(self.entries) if predicted_s(request) < SHORT_S}
        order, found = list(range(len(self.entries))), []
        random.Random(seed).shuffle(order)
        for turn in range(repeat):
            start = turn * len(order) // repeat
            rotated = order[start:] + order[:start]
            once = [n for n in rotated if n in self.close | short or n % repeat == turn]
            found.append(once + [n for n in rotated if n in short] * (OFTEN - 1))
        return found

    def as_data(self) -> list[dict[str, Any]]:
        """The cases as plain data; placements as (matrix, entries)."""
        return [
            {"axes": case.axes, "reduced": case.reduced, "placements": rows}
            for case, rows in self.cases
        ]


def pairs_of(topology: Topology, payload_bytes: int, singles_only: bool = False) -> Pairs:
    """All pairs of a cluster, or its single all-reduces; times as ``topology`` predicts them."""
    found = Pairs()
    known: dict[tuple[object, ...], list[int]] = {}  # one listing per set of groups
    for case in cases(topology.devices):
        rows = []
        for matrix in matrices(topology.sizes, case.axes):
            placement = Placement(matrix)
            factors = placement.factors(case.reduced)
            same = (factors, *sorted(map(tuple, placement.groups(case.reduced).tolist())))
            if same not in known:
                requests = [
                    request
                    for request in _requests(topology, case, matrix, payload_bytes)
                    if is_single(request) or not singles_only
                ]
                known[same] = found.add(factors, sorted(requests, key=predicted_s))
            rows.append((matrix, known[same]))
        found.cases.append((case, rows))
    return found


def _requests(
    topology: Topology, case: Case, matrix: Matrix, payload_bytes: int
) -> Iterator[JobRequest]:
    placement = Placement(matrix)
    for program in programs(Scene.of(topology, placement, case.reduced).hierarchy):
        yield from program_job(
            topology, placement, case.reduced, KIND, program, payload_bytes, name=str(program)
        ).requests


@lru_cache(maxsize=256)
def programs(hierarchy: Hierarchy) -> tuple[Program, ...]:
    """Every all-reduce program up to the length limit, proved complete by the solver."""
    found, _ = list_programs(Task(KIND, hierarchy, LENGTH), SearchLimits())
    if found.status is not Status.COMPLETE:
        raise RuntimeError(f"the list of programs is {found.status.value}")
    return found.value or ()


def key(request: JobRequest) -> Key:
    """Equal for requests that do the same on the same ranks, in whatever order of groups."""
    steps = tuple((step.operation, frozenset(step.groups)) for step in request.steps)
    return (frozenset(request.groups), steps)


def is_single(request: JobRequest) -> bool:
    """Whether the program is the default: one all-reduce over the whole group."""
    return len(request.steps) == 1


def predicted_s(request: JobRequest) -> float:
    """Predicted time in seconds."""
    if request.predicted_s is None:
        raise ValueError(f"{request.name} has no predicted time")
    return request.predicted_s
