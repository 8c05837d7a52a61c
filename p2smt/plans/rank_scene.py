"""Where a request runs on a rank list: its groups, their slices, and what steps take there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from p2smt.collectives.demand import demand_of
from p2smt.cost.bounds import groups_model
from p2smt.cost.scene import step_payloads
from p2smt.cost.step_time import (
    Pipelined,
    StepCostModel,
    StepTime,
    best_chunks,
    chunk_counts,
    program_s,
)
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import RequestAnswer, rank_answer, rank_step_groups
from p2smt.programs.parts import CheckedParts, CutGroup, by_size, check_on_parts, step_groups
from p2smt.programs.program import Instruction, Program
from p2smt.programs.semantics import Trace
from p2smt.result import Status


@dataclass(frozen=True, slots=True)
class RankScene:
    """Where a request runs on a rank list: its groups, and how the levels cut each.

    ``groups`` has the shape (groups, members), each in the order of its communicator.
    """

    problem: Problem
    request: Request
    groups: IntArray
    cut: tuple[CutGroup, ...]
    _models: dict[Instruction, StepCostModel] = field(
        default_factory=dict, compare=False, repr=False
    )

    @staticmethod
    def of(problem: Problem, request: Request, ranks: RankList) -> RankScene:
        """The scene of a request.

        Raises:
            InputError: the topology names no hosts: programs need processes in the ranks' order.
        """
        if problem.topology.hosts is None:
            rule = "names no hosts; on a rank list there a request is one collective"
            raise InputError(f"topology {problem.topology.name}", rule, "give --hosts")
        groups = rank_step_groups(problem, request, ranks)
        cut = tuple(CutGroup.of(problem.topology, group) for group in groups.tolist())
        return RankScene(problem, request, groups, cut)

    @property
    def size(self) -> int:
        """Members of a group; the payload has as many rows."""
        return int(self.groups.shape[1])

    def step_groups(self, instruction: Instruction) -> tuple[tuple[int, ...], ...]:
        """Groups of devices of one step; see :func:`p2smt.programs.parts.step_groups`."""
        return step_groups(self.cut, self.groups, instruction)

    def step_time(self, instruction: Instruction, payload_bytes: float) -> StepTime:
        """Time of one instruction on all groups at once."""
        if instruction not in self._models:
            groups = by_size(self.step_groups(instruction))
            found = groups_model(self.problem.topology, groups, instruction.collective)
            self._models[instruction] = found
        return self._models[instruction].time(payload_bytes)

    def program_times(
        self, program: Program, payload_rows: Sequence[int], chunks: int = 1
    ) -> tuple[StepTime, ...]:
        """Time of each step for one of so many chunks.

        A step's payload is that of its largest group, of so many of the rows.
        """
        payloads = step_payloads(payload_rows, self.size, self.request.payload_bytes, chunks)
        both = zip(program.instructions, payloads, strict=True)
        return tuple(self.step_time(instruction, payload) for instruction, payload in both)

    def timed(self, program: Program, payload_rows: Sequence[int]) -> Pipelined:
        """The program in the problem's number of chunks, or the best one."""
        counts = chunk_counts(self.problem.pipeline, len(program))
        return best_chunks(counts, lambda n: self.program_times(program, payload_rows, n))

    def timed_in(self, program: Program, payload_rows: Sequence[int], chunks: int) -> Pipelined:
        """The program in so many chunks."""
        steps = self.program_times(program, payload_rows, chunks)
        return Pipelined(chunks, program_s(steps, chunks), steps)


# A program on a rank list: what it means on its groups, and the answer that it is.


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
