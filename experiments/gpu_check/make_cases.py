"""Makes ``cases.json``: a small set of work that touches every kind of call.

    python -m experiments.gpu_check.make_cases

The search and the solvers take part here alone; what is run on GPUs needs only the file.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import p2smt
from experiments.gpu_check.case_sets import FILE, CaseSet, text_of
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.programs.program import Hierarchy, Program, local_groups, parse_program
from p2smt.result import SearchLimits
from p2smt.runtime.arrays.rank_steps import array_job
from p2smt.runtime.job import Groups, Job, JobRequest, JobStep, ordered
from p2smt.runtime.programs.plan_job import Changes, plan_job, requests_job
from p2smt.runtime.schedules.schedule_job import schedule_job
from p2smt.search.program_synthesis import Task, list_programs

PAYLOAD_BYTES = 10_006
"""No multiple of four ranks' rows in any type, so that rows are padded."""

LARGE_BYTES = 64 << 20
LENGTH = 2
CLASSICS = (
    "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1",
    "reduce-scatter parallel l1 in root; all-reduce inside l1; all-gather parallel l1 in root",
    "reduce inside l1; all-reduce master l1 in root; broadcast inside l1",
)
"""Programs of length 3 on two levels that everybody knows."""

MASTERS = "reduce inside node; all-reduce master node in root; broadcast inside node"

PIPELINED = 3
OneStep = Literal[RequestKind.ALL_TO_ALL, RequestKind.SEND]
ONE_STEP: tuple[OneStep, ...] = (RequestKind.ALL_TO_ALL, RequestKind.SEND)
REDISTRIBUTIONS = (
    ("dp=2,tp=2", (4096, 4096), "f32", "S(dp,tp),R", "R,S(dp,tp)", "refuse", None),
    ("dp=2,tp=2", (512, 256), "f32", "S(dp),S(tp)", "S(tp),S(dp)", "refuse", None),
    ("dp=2,tp=2", (512, 256), "f32", "S(dp),R;P(tp)", "R,S(dp,tp)", "refuse", None),
    ("dp=2,tp=2", (512, 256), "i32", "S(dp),R", "R,S(tp)", "refuse", (3, 1, 0, 2)),
    ("dp=2,tp=2", (513, 251), "bf16", "S(dp,tp),R", "R,S(dp)", "nested", None),
    ("a=4", (9,), "f32", "S(a)", "R", "nested", None),
    ("a=4", (9, 6), "f32", "R,R;P(a)", "S(a),R", "nested", None),
)
"""Mesh, shape, dtype, from, to, rule of uneven dimensions, devices afterwards (None: the same); of
9 over 4 the last shard is empty."""


def case_sets() -> tuple[CaseSet, ...]:
    """All sets, the plainest first."""
    topology = two_by_two()
    return (
        CaseSet("programs on 2 ranks", Job(2, tuple(_programs((2,), ())))),
        CaseSet("programs on one level of 4", Job(4, tuple(_programs((4,), ())))),
        CaseSet("programs on 2 x 2", Job(4, tuple(_programs((2, 2), ())))),
        CaseSet("known programs", Job(4, tuple(_programs((2, 2), CLASSICS))), every_type=True),
        *_plans(topology),
        *_redistributions(topology),
    )


def two_by_two() -> Topology:
    """Two nodes of two GPUs: what predictions are for."""
    return p2smt.trimmed(p2smt.load_topology("dgx-a100:2"), {"gpu": 2})


def _programs(factors: Sequence[int], known: Sequence[str]) -> Iterator[JobRequest]:
    """Every short program, or those that are known, and exchanges among all ranks and in pairs."""
    for text in known:
        for chunks in (1, PIPELINED):
            yield _program(RequestKind.ALL_REDUCE, factors, parse_program(text), chunks)
    for kind in (k for k in RequestKind if k.has_programs and not known):
        task = Task(kind, Hierarchy.plain(factors), LENGTH)
        for program in list_programs(task, SearchLimits())[0].value or ():
            yield _program(kind, factors, program)
    for groups in _group_sets(math.prod(factors)) if known or len(factors) == 1 else ():
        yield from (_exchange(kind, groups) for kind in ONE_STEP)


def _program(
    kind: RequestKind, factors: Sequence[int], program: Program, chunks: int = 1
) -> JobRequest:
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
    return JobRequest(name, kind, whole, steps, PAYLOAD_BYTES, chunks=chunks)


def _group_sets(ranks: int) -> tuple[Groups, ...]:
    """All ranks in one group; of four, also pairs that are no neighbours."""
    whole: Groups = (tuple(range(ranks)),)
    return (whole, ((0, 2), (1, 3))) if ranks == 4 else (whole,)


def _exchange(kind: OneStep, groups: Groups) -> JobRequest:
    name = f"{kind.value} among {' and '.join(str(list(group)) for group in groups)}"
    return JobRequest(name, kind, groups, (JobStep(kind.value, kind, groups),), PAYLOAD_BYTES)


def _plans(topology: Topology) -> Iterator[CaseSet]:
    """A solved plan, small and large; its programs beside another; its all-reduce as MSCCL XML."""
    axes = p2smt.parse_axes("dp=4")
    kinds = (p2smt.reduce, p2smt.reduce_scatter, p2smt.all_gather, p2smt.all_to_all)
    requests = tuple(kind("dp=64MiB") for kind in kinds)
    problem = p2smt.Problem(topology, axes, requests)
    solution = p2smt.solve(problem)
    with tempfile.TemporaryDirectory() as folder:
        file, xml = Path(folder) / "plan.json", Path(folder) / "plan.xml"
        p2smt.write_plan(solution, file)
        plan = p2smt.read_plan(file)
        p2smt.write_plan_schedules(plan, xml, group=1)
        schedule = p2smt.read_schedule(xml)
    yield CaseSet("plan on 2 x 2, 64 KiB", plan_job(plan, "plan", Changes(64 << 10)), timed=True)
    yield CaseSet(
        "plan on 2 x 2, 64 MiB", plan_job(plan, "plan", Changes()), timed=True, large=True
    )
    one = p2smt.Problem(topology, axes, requests[:1])
    best = solution.best
    assert best is not None
    assert isinstance(best.placement, p2smt.Placement)
    job = requests_job(one, best.placement, [parse_program(MASTERS)])
    yield CaseSet("masters on 2 x 2, 64 MiB", job, timed=True, large=True)
    for name, size in (("64 KiB", 64 << 10), ("64 MiB", LARGE_BYTES)):
        seconds = p2smt.schedule_cost(schedule, topology, size).time_s
        work = schedule_job(schedule, size)
        what, large = f"the plan's all-reduce as MSCCL XML, {name}", size == LARGE_BYTES
        yield CaseSet(what, work, timed=True, large=large, predicted_s=seconds)


def _redistributions(topology: Topology) -> Iterator[CaseSet]:
    for mesh, shape, dtype, first, last, uneven, devices in REDISTRIBUTIONS:
        source = p2smt.array_type(mesh, shape, dtype, first, uneven=uneven)
        target = p2smt.array_type(mesh, shape, dtype, last, uneven=uneven, devices=devices)
        plan = p2smt.redistribute(source, target, topology)
        size = ",".join(map(str, shape))
        moved = f", devices {','.join(map(str, devices))}" if devices else ""
        name = f"{dtype}[{size}] on {mesh}: {first} to {last}{moved}"
        large = source.global_bytes >= LARGE_BYTES
        yield CaseSet(name, array_job(plan), timed=True, large=large)


def main() -> int:
    """Write the file."""
    FILE.write_text(text_of(case_sets()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
