"""The programs and requests that are run: a small set that touches every kind of call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from p2smt.collectives.names import Collective, RequestKind
from p2smt.programs.program import Hierarchy, Program, local_groups, parse_program
from p2smt.result import SearchLimits
from p2smt.runtime.job import Groups, JobRequest, JobStep, ordered
from p2smt.search.programs import Task, list_programs

SHAPES = {2: ((2,),), 4: ((4,), (2, 2))}
"""Levels by number of ranks."""

PAYLOAD_BYTES = 10_006
"""No multiple of four ranks' rows in any type, so that rows are padded."""

LENGTH = 2
CLASSICS = (
    "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1",
    "reduce-scatter parallel l1 in root; all-reduce inside l1; all-gather parallel l1 in root",
    "reduce inside l1; all-reduce master l1 in root; broadcast inside l1",
)
"""Programs of length 3 on two levels that everybody knows."""

PIPELINED = 3
OneStep = Literal[RequestKind.ALL_TO_ALL, RequestKind.SEND]
ONE_STEP: tuple[OneStep, ...] = (RequestKind.ALL_TO_ALL, RequestKind.SEND)


@dataclass(frozen=True, slots=True)
class Case:
    """A request on so many ranks; ``name`` says what it is."""

    name: str
    ranks: int
    request: JobRequest


def cases(ranks: int) -> list[Case]:
    """All cases for 1, 2 or 4 ranks, the plainest first."""
    if ranks == 1:
        return [_alone()]
    found = [case for factors in SHAPES[ranks] for case in _on(factors)]
    return found + [_exchange(kind, groups) for kind in ONE_STEP for groups in _group_sets(ranks)]


def _alone() -> Case:
    whole: Groups = ((0,),)
    steps = (JobStep("all-reduce", Collective.ALL_REDUCE, whole),)
    request = JobRequest("all-reduce", RequestKind.ALL_REDUCE, whole, steps, PAYLOAD_BYTES)
    return Case("one rank alone", 1, request)


def _on(factors: Sequence[int]) -> Iterator[Case]:
    for kind in (k for k in RequestKind if k.has_programs):
        task = Task(kind, Hierarchy.plain(factors), LENGTH)
        for program in list_programs(task, SearchLimits())[0].value or ():
            yield _program(kind, factors, program)
    for text in CLASSICS if len(factors) > 1 else ():
        yield _program(RequestKind.ALL_REDUCE, factors, parse_program(text))
        yield _program(RequestKind.ALL_REDUCE, factors, parse_program(text), PIPELINED)


def _program(kind: RequestKind, factors: Sequence[int], program: Program, chunks: int = 1) -> Case:
    hierarchy, ranks = Hierarchy.plain(factors), math.prod(factors)
    steps = tuple(
        JobStep(
            str(i), i.collective, ordered(local_groups(factors, hierarchy.grouping(i)).tolist())
        )
        for i in program.instructions
    )
    pieces = f", {chunks} chunks" if chunks > 1 else ""
    name = f"{kind.value} on {'x'.join(map(str, factors))}{pieces}: {program}"
    whole: Groups = (tuple(range(ranks)),)
    return Case(name, ranks, JobRequest(name, kind, whole, steps, PAYLOAD_BYTES, chunks=chunks))


def _group_sets(ranks: int) -> tuple[Groups, ...]:
    """All ranks in one group; of four, also pairs that are no neighbours."""
    whole: Groups = (tuple(range(ranks)),)
    return (whole, ((0, 2), (1, 3))) if ranks == 4 else (whole,)


def _exchange(kind: OneStep, groups: Groups) -> Case:
    name = f"{kind.value} among {' and '.join(str(list(group)) for group in groups)}"
    steps = (JobStep(kind.value, kind, groups),)
    ranks = sum(map(len, groups))
    return Case(name, ranks, JobRequest(name, kind, groups, steps, PAYLOAD_BYTES))
