"""Small jobs over positions 0..k-1, and the collectives that could stand in their programs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Collective, RequestKind
from p2smt.problems.placement import InstructionSet, ProgramProblem
from p2smt.programs.program import Hierarchy, groupings, local_groups, parse_program
from p2smt.runtime.job import Groups, Job, JobRequest, JobStep, ordered
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.programs.reference_backend import run_reference
from p2smt.runtime.summary import RunResult, summarize
from tests.oracles.programs import all_programs

ALL, SCATTER, GATHER = RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER, RequestKind.ALL_GATHER
KINDS = (ALL, SCATTER, GATHER)
REFERENCE = RunOptions(backend="reference")
BLUE = "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1"
RAILS = "reduce-scatter parallel l1 in root; all-reduce inside l1; all-gather parallel l1 in root"
MASTERS = "reduce inside l1; all-reduce master l1 in root; broadcast inside l1"


def steps_of(
    text: str, factors: Sequence[int], kind: RequestKind | None = None
) -> tuple[JobStep, ...]:
    """A program over levels l1, l2, .. on positions."""
    hierarchy = Hierarchy.plain(factors)
    return tuple(
        JobStep(
            str(i), i.collective, ordered(local_groups(factors, hierarchy.grouping(i)).tolist())
        )
        for i in parse_program(text, kind).instructions
    )


def every_step(factors: Sequence[int]) -> tuple[JobStep, ...]:
    """Each collective on each grouping."""
    return tuple(
        JobStep(c.value, c, ordered(local_groups(factors, grouping).tolist()))
        for c in Collective
        for grouping in groupings(len(factors))
    )


def request(
    kind: RequestKind,
    steps: Sequence[JobStep],
    groups: Groups,
    payload_bytes: int = 100,
    *,
    chunks: int = 1,
    name: str = "request",
    shards: tuple[int, ...] | None = None,
) -> JobRequest:
    """A request with these steps."""
    return JobRequest(name, kind, groups, tuple(steps), payload_bytes, 1, chunks, shards)


def whole(ranks: int) -> Groups:
    """One group of all ranks."""
    return (tuple(range(ranks)),)


def program_request(
    kind: RequestKind, text: str, factors: Sequence[int], payload_bytes: int = 100, chunks: int = 1
) -> JobRequest:
    """A program over one reduction group."""
    steps, groups = steps_of(text, factors, kind), whole(math.prod(factors))
    return request(kind, steps, groups, payload_bytes, chunks=chunks, name=text)


def valid_programs(
    kind: RequestKind, factors: tuple[int, ...], length: int
) -> list[tuple[JobStep, ...]]:
    """Every valid program up to a length, by brute force."""
    problem = ProgramProblem(demand_of(kind), factors, length, InstructionSet.of(len(factors)))
    steps = every_step(factors)
    return [tuple(steps[i] for i in program) for program in sorted(all_programs(problem))]


def reference(*requests: JobRequest, options: RunOptions = REFERENCE) -> RunResult:
    """The result of the reference executor."""
    ranks = 1 + max(rank for r in requests for group in r.groups for rank in group)
    job = Job(ranks, requests)
    return summarize(job, run_reference(job, options))
