"""Where a request runs on a rank list: its groups, their slices, and what steps take there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from p2smt.collectives.demand import demand_of
from p2smt.collectives.dispatch import AnyKind
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import groups_model, single_bound_s, single_time
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
from p2smt.programs.parts import CheckedParts, CutGroup, by_size, check_on_parts, step_groups
from p2smt.programs.program import Hierarchy, Instruction, Program


@dataclass(frozen=True, slots=True)
class RankScene:
    """Where a request runs on a rank list: its groups, and how the levels cut each.

    ``groups`` has the shape (groups, members), each in the order of its communicator.  ``cut`` is
    empty where the request is one collective.
    """

    problem: Problem
    request: Request
    ranks: RankList
    groups: IntArray
    cut: tuple[CutGroup, ...] = ()
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
        found = RankScene.of_single(problem, request, ranks)
        groups = found.groups.tolist()
        return replace(found, cut=tuple(CutGroup.of(problem.topology, one) for one in groups))

    @staticmethod
    def of_single(problem: Problem, request: Request, ranks: RankList) -> RankScene:
        """The scene of a request that is one collective, or one fixed step."""
        return RankScene(problem, request, ranks, rank_step_groups(problem, request, ranks))

    @property
    def hierarchy(self) -> Hierarchy:
        """The group as one level: the groups of a rank list need not share any factors."""
        names = self.problem.topology.names
        return Hierarchy.of(names, (self.size, *(1 for _ in names[1:])))

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

    def fixed_time(self, kind: AnyKind, payload_bytes: int) -> StepTime:
        """Time of a send or an exchange, or of the single collective of other requests."""
        axes = self.problem.axis_indices(self.request)
        given = self.problem.topology, self.ranks.rank_tensor(), axes
        return single_time(*given, kind, payload_bytes)

    def least_s(self, _: Request) -> float:
        """Nothing is known: that no program is faster is not looked at."""
        return 0.0

    def physical_bound_s(self, request: Request) -> float:
        """What the links allow; 0 where programs might be faster: it is not known."""
        if request.kind.has_programs and self.size > 1:
            return 0.0
        axes = self.problem.axis_indices(self.request)
        given = self.problem.topology, self.ranks.rank_tensor(), axes
        return single_bound_s(*given, request.kind, request.payload_bytes)

    def timed(self, program: Program, payload_rows: Sequence[int]) -> Pipelined:
        """The program in the problem's number of chunks, or the best one."""
        counts = chunk_counts(self.problem.pipeline, len(program))
        return best_chunks(counts, lambda n: self.program_times(program, payload_rows, n))

    def timed_in(self, program: Program, payload_rows: Sequence[int], chunks: int) -> Pipelined:
        """The program in so many chunks."""
        steps = self.program_times(program, payload_rows, chunks)
        return Pipelined(chunks, program_s(steps, chunks), steps)


def rank_step_groups(problem: Problem, request: Request, ranks: RankList) -> IntArray:
    """The groups of a request, in the order of the communicators that run it.

    On named hosts that of the ranks, which are started there; elsewhere processes are numbered as
    devices are, and only a send goes in the order of the ranks.
    """
    axes = problem.axis_indices(request)
    by_rank = request.kind is RequestKind.SEND or problem.topology.hosts is not None
    return ranks.lines(axes) if by_rank else ranks.groups(axes)


# A program on a rank list: what it means on its groups.


def check_on_ranks(scene: RankScene, program: Program) -> CheckedParts:
    """The run of a program on every group, by the semantics.

    Raises:
        InputError: the program names a level that is not there.
        TooLarge: a group has more members than states are checked for.
    """
    return check_on_parts(demand_of(scene.request.kind), scene.cut, program)
