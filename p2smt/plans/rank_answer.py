"""The answer on a rank list: one collective per request, costed device by device."""

from __future__ import annotations

import math

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.rank_list import single_bound_s, single_time
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import Alternative, RequestAnswer, objective
from p2smt.programs.check import Checked, check_program
from p2smt.programs.program import Grouping, Hierarchy, Program
from p2smt.result import Status


def rank_alternative(problem: Problem, ranks: RankList) -> Alternative:
    """The rank list with one collective per request; whether rules allow it is not looked at.

    Its status is FEASIBLE: no program of several steps is tried on groups that no matrix gives.
    """
    answers = tuple(rank_answer(problem, request, ranks) for request in problem.requests)
    total_s = objective(problem, tuple(answer.seconds for answer in answers))
    return Alternative(None, answers, total_s, Status.FEASIBLE, ranks)


def flat_hierarchy(problem: Problem, request: Request) -> Hierarchy:
    """A request's group as one level: the groups of a rank list need not share any factors."""
    size = math.prod(problem.axis_sizes[i] for i in problem.axis_indices(request))
    names = problem.topology.names
    return Hierarchy.of(names, (size, *(1 for _ in names[1:])))


def check_single(kind: RequestKind, hierarchy: Hierarchy) -> Checked:
    """The one collective over a whole group, simulated: its rows and shards."""
    whole = Grouping(0, hierarchy.depth)
    program = Program((hierarchy.instruction(DIRECT[kind], whole),))
    return check_program(demand_of(kind), hierarchy, program)


def rank_step_groups(problem: Problem, request: Request, ranks: RankList) -> IntArray:
    """The groups of a request, in the order of the communicators that run it.

    On named hosts that of the ranks, which are started there; elsewhere processes are numbered as
    devices are, and only a send goes in the order of the ranks.
    """
    axes = problem.axis_indices(request)
    by_rank = request.kind is RequestKind.SEND or problem.topology.hosts is not None
    return ranks.lines(axes) if by_rank else ranks.groups(axes)


def rank_answer(problem: Problem, request: Request, ranks: RankList) -> RequestAnswer:
    """One request on a rank list; where programs might be faster no bound is known."""
    axes, hierarchy = problem.axis_indices(request), flat_hierarchy(problem, request)
    kind, payload = request.kind, request.payload_bytes
    given = problem.topology, ranks.rank_tensor(), axes, kind, payload
    step_s = single_time(*given)
    moved = hierarchy.size > 1
    several = moved and kind.has_programs
    checked = check_single(kind, hierarchy) if several else None
    bound_s = 0.0 if several else step_s.seconds
    return RequestAnswer(
        request=request,
        hierarchy=hierarchy,
        program=None,
        status=Status.FEASIBLE if several else Status.OPTIMAL,
        seconds=step_s.seconds,
        bound_s=bound_s,
        single_s=step_s.seconds,
        physical_bound_s=0.0 if several else min(bound_s, single_bound_s(*given)),
        steps=(step_s,) if moved else (),
        payloads=(float(payload),) if moved else (),
        peak_bytes=payload if several or not moved else 2 * payload,
        shards=None if checked is None else checked.trace.shards,
        checked="nothing to do" if not moved else checked.how if checked else "one fixed step",
    )
