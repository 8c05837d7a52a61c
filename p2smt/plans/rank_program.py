"""A program on a rank list: what it means on its groups, and the answer that it is."""

from __future__ import annotations

from dataclasses import replace

from p2smt.collectives.demand import demand_of
from p2smt.cost.pipeline import Pipelined
from p2smt.cost.scene import step_payloads
from p2smt.parallelism.rank_list import RankList
from p2smt.plans.rank_answer import rank_answer
from p2smt.plans.rank_scene import RankScene
from p2smt.plans.solution import RequestAnswer
from p2smt.programs.check_parts import CheckedParts, check_on_parts
from p2smt.programs.program import Program
from p2smt.programs.semantics import Trace
from p2smt.result import Status

ON_DEVICES = "devices"
"""What programs on rank lists are run on: every member of every group."""


def check_on_ranks(scene: RankScene, program: Program) -> CheckedParts:
    """The run of a program on every group, by the semantics.

    Raises:
        InputError: the program names a level that is not there.
        TooLarge: a group has more members than states are checked for.
    """
    return check_on_parts(demand_of(scene.request.kind), scene.cut, program)


def rank_program_answer(
    scene: RankScene, ranks: RankList, program: Program, trace: Trace, timed: Pipelined
) -> RequestAnswer:
    """A valid program as the answer to a request on a rank list.

    FEASIBLE, and without a bound: that no other program is faster is not known.
    """
    request = scene.request
    single = rank_answer(scene.problem, request, ranks)
    rows = step_payloads(trace.payload_rows, scene.size, request.payload_bytes, timed.chunks)
    return replace(
        single,
        program=program,
        status=Status.FEASIBLE,
        seconds=timed.seconds,
        steps=timed.steps,
        payloads=rows,
        peak_bytes=-(-request.payload_bytes * trace.peak_rows // scene.size),
        shards=trace.shards,
        checked=ON_DEVICES,
        chunks=timed.chunks,
    )
