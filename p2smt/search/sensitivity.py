"""Whether the winner still wins if the bandwidth of a level, or the cost of a call, is off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from p2smt.cluster.topology import Topology
from p2smt.cost.bounds import single_time
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import program_s
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Alternative, Perturbation, RequestAnswer, Solution, objective
from p2smt.result import Status, StopWatch
from p2smt.search.joint import JointSearch
from p2smt.search.programs_pipelined import Catalogs
from p2smt.solvers.ask import Solver

FACTORS = (0.8, 1.2)
"""Of a level's bandwidth."""
CALL_FACTORS = (0.5, 1.5)
"""Of the cost of every call, which is known less well, as it depends on the host, too.  Hops
included, two nodes with 8 H100 each take 45.7 us (h100-nebius), 68.5 us (dell-xe9680-h100-8xNDR400)
or 135.8 us (gcp-a3-mega) for an all-reduce of 8 bytes (``experiments/tables``): a factor of three,
as between these."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A topology with one thing off: a level's bandwidth, or (``level`` None) the cost of calls."""

    level: str | None
    factor: float
    topology: Topology


def changes(topology: Topology) -> list[Changed]:
    """What an answer is tried on; without a library calls cost nothing that could be off."""
    found = [
        Changed(level.name, factor, topology.with_bandwidth_factor(j, factor))
        for j, level in enumerate(topology.levels)
        for factor in FACTORS
    ]
    if topology.library:
        found += [Changed(None, f, topology.with_call_factor(f)) for f in CALL_FACTORS]
    return found


def perturbations(
    problem: Problem,
    winner: Alternative,
    watch: StopWatch,
    solver: Solver,
    listings: Catalogs | None = None,
) -> tuple[Perturbation, ...]:
    """Re-cost the winner and re-solve the problem on each of the changed topologies.

    All cases share the time limit.  Fewer cases than ``changes``: the search was interrupted.
    ``listings`` may pass the lists of programs of an earlier search.
    """
    listings = listings or Catalogs()

    def again(changed: Problem) -> Solution:
        return JointSearch(changed, watch.left(), solver, listings=listings).run(top=1)

    return perturbed(problem, problem, winner, again)


def perturbed(
    problem: Problem, used: Problem, winner: Alternative, again: Callable[[Problem], Solution]
) -> tuple[Perturbation, ...]:
    """The same where ``again`` solves a problem; ``used`` is the one on the cluster of the winner's
    own ranks, which on named hosts is that of the hosts that have some."""
    found: list[Perturbation] = []
    for case, own in zip(changes(problem.topology), changes(used.topology), strict=True):
        solution = again(replace(problem, topology=case.topology))
        if solution.interrupted:
            break
        cost = recost(replace(used, topology=own.topology), winner)
        best = min([cost, *(a.objective_s for a in solution.alternatives)])
        status = solution.status if solution.alternatives else Status.UNKNOWN
        found.append(Perturbation(case.level, case.factor, cost, best, status))
    return tuple(found)


def recost(problem: Problem, winner: Alternative) -> float:
    """The objective of the winner's matrix and programs on another topology."""
    seconds = tuple(_seconds(problem, winner, answer) for answer in winner.requests)
    return objective(problem, seconds)


def _seconds(problem: Problem, winner: Alternative, answer: RequestAnswer) -> float:
    chosen = problem.axis_indices(answer.request)
    if isinstance(winner.placement, RankList):
        ranks = winner.placement.rank_tensor()
        kind, payload = answer.request.kind, answer.request.payload_bytes
        return single_time(problem.topology, ranks, chosen, kind, payload).seconds
    scene = Scene.of(problem.topology, winner.placement, chosen)
    if answer.program is None:
        moved = answer.hierarchy.size > 1
        request = answer.request
        return scene.fixed_time(request.kind, request.payload_bytes).seconds if moved else 0.0
    steps = [
        scene.step_time(instruction.collective, answer.hierarchy.grouping(instruction), payload)
        for instruction, payload in zip(answer.program.instructions, answer.payloads, strict=True)
    ]
    return program_s(steps, answer.chunks)
