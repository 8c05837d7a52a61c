"""Whether a plan is the best one: its problem is solved again, under its own restrictions.

A plan holds its problem, its restrictions and the limits of the search that found it.  The
search knows nothing of the plan's answer, so what it proves is evidence of its own.  Of a plan on
named hosts their orders are searched; and which of them stay idle, where the plan names those, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from p2smt.cluster.allocation import unstated_levels
from p2smt.cost.scene import Scene
from p2smt.errors import EncodingBug, InputError, OutOfTimeError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.rank_list import RankMap
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.check.check_plan import PlanReport, check_plan
from p2smt.plans.file_model import AnyPlan, LimitsModel, PlanModel
from p2smt.plans.problem import allocation_problem, plan_problem
from p2smt.plans.sides import plan_sides
from p2smt.plans.solution import PlanProof, ProofStatus, Solution
from p2smt.plans.untimed import told
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.allocation.host_search import fastest_on_hosts
from p2smt.search.joint import ProgressCallback
from p2smt.search.one_request import answer_request
from p2smt.search.programs_pipelined import Catalogs
from p2smt.search.solve import solve
from p2smt.solvers.ask import Solver, solver_of

TICK = 2.0**-24
"""One tick of the coarsest scale in which a search settles an optimum, as a part of it."""


def prove(
    plan: AnyPlan,
    source: str = "plan",
    *,
    limits: SearchLimits | None = None,
    report: PlanReport | None = None,
    progress: ProgressCallback | None = None,
) -> PlanProof:
    """Solve a plan's problem again and compare.

    Args:
        plan: a valid plan of version 2.
        source: what messages call it.
        limits: instead of those in the plan.
        report: what :func:`~p2smt.plans.check.check_plan.check_plan` says of it, where that is at
            hand.
        progress: called with (best objective so far or None, proved bound), in seconds.

    Raises:
        InputError: the plan is not valid, or is of version 1, whose restrictions are words.
        EncodingBug: an answer failed its check, or the search finds a valid plan impossible, or
            its time below the bound.

    An interrupt leaves the plan open, with the best bound until then; so do bounds of the plan
    that the search did not settle.
    """
    if not isinstance(plan, PlanModel):
        rule = "of version 1 has its restrictions in words, under which nothing can be solved again"
        raise InputError(source, rule, "write it anew with `p2smt solve -o`")
    report = report or check_plan(plan, source)
    if not report.valid:
        raise InputError(source, "is not valid, so that there is nothing to prove", "verify it")
    watch = StopWatch.start(limits or stated_limits(plan.limits))
    proofs = []
    for side in plan_sides(plan, source):
        times = zip(side.plan.requests, side.numbers, strict=True)
        own_s = sum(one.times * report.seconds[n] for one, n in times)
        objective_s = own_s if side.name else report.objective_s
        if isinstance(side.plan, PlanModel):
            proofs.append(_proved(side.plan, source, objective_s, watch, progress))
    return proofs[0] if len(proofs) == 1 else _together(proofs)


def _together(proofs: Sequence[PlanProof]) -> PlanProof:
    """What is proved of a plan of two matrices, each of whose sides is a plan of its own.

    The plan is refuted by the side that is: the better one has that side's programs, the others
    staying as they are.
    """
    order = (ProofStatus.REFUTED, ProofStatus.OPEN, ProofStatus.PROVED)
    weakest = min(proofs, key=lambda one: order.index(one.status))
    others_s = sum(one.objective_s for one in proofs if one is not weakest)
    better = weakest.better
    return replace(
        weakest,
        objective_s=weakest.objective_s + others_s,
        bound_s=sum(one.bound_s for one in proofs),
        better=better and replace(better, objective_s=better.objective_s + others_s),
        unsettled=tuple(name for one in proofs for name in one.unsettled),
        weaker=tuple(text for one in proofs for text in one.weaker),
    )


def _proved(
    plan: PlanModel,
    source: str,
    objective_s: float,
    watch: StopWatch,
    progress: ProgressCallback | None,
) -> PlanProof:
    """The proof of a plan of one matrix, or of a rank list, which takes so long."""
    problem, where = plan_problem(plan, source)
    solver = solver_of(plan.limits.solver)
    on_hosts = plan.matrix is None and problem.topology.hosts is not None
    left = watch.left()
    if on_hosts:
        problem = allocation_problem(plan, problem, source)
        found = fastest_on_hosts(problem, None, left, solver, progress=progress)
    else:
        found = solve(problem, top=1, limits=left, solver=solver, progress=progress)
    if plan.matrix is not None or on_hosts:
        _check_agreement(objective_s, plan.matrix or plan.ranks, found)
    proof = _proof(objective_s, found, plan.matrix is None, on_hosts)
    if proof.status is not ProofStatus.PROVED or unstated_levels(problem.topology):
        return proof  # of the bounds in it nothing can be told
    claims = [_link_claim(plan, found), *_requests(plan, where, found, watch)]
    return _with_low(_with_claims(proof, claims), plan)


def stated_limits(model: LimitsModel) -> SearchLimits:
    """The limits of the search that found a plan."""
    return SearchLimits(model.time_limit_s, None, model.seed, model.workers)


def _proof(objective_s: float, found: Solution, listed: bool, on_hosts: bool) -> PlanProof:
    """What is proved of the objective; only a finished search has proved anything but a bound.

    What is proved of matrices does not bound rank lists: such a plan is refuted or open.  What is
    proved of orders of named hosts does (``on_hosts``).
    """
    best, least_s = found.best, objective_s * (1 - TICK)
    unbounded = listed and not on_hosts
    bound_s = 0.0 if unbounded else min(found.bound_s, objective_s)
    proof = PlanProof(ProofStatus.OPEN, objective_s, bound_s, None, (), found, listed, on_hosts)
    if best is not None and best.objective_s < least_s:
        return replace(proof, status=ProofStatus.REFUTED, better=best)
    proved = not unbounded and (found.status is Status.OPTIMAL or bound_s >= least_s)
    return replace(proof, status=ProofStatus.PROVED) if proved else proof


def _check_agreement(
    objective_s: float, matrix: Sequence[int] | Sequence[Sequence[int]], found: Solution
) -> None:
    """Nothing proved of matrices, or of orders of hosts, may speak against a valid plan on one.

    Raises:
        EncodingBug: the search finds that there is none, or none as fast.
    """
    if found.status is Status.INFEASIBLE:
        raise EncodingBug("a valid plan answers it", found.problem, matrix)
    if found.bound_s > objective_s * (1 + TICK):
        text = f"a valid plan takes {objective_s} s, less than the bound {found.bound_s} s"
        raise EncodingBug(text, found.problem, matrix)


@dataclass(frozen=True, slots=True)
class _Claim:
    """A bound that a plan tells beside that of its time.

    ``least_s`` is no less than what it bounds: a larger one is false.  ``proved_s`` is no more: a
    smaller one is true.  What lies between is not settled.
    """

    name: str
    said_s: float
    proved_s: float
    least_s: float

    @property
    def false(self) -> bool:
        return self.said_s > self.least_s

    @property
    def settled(self) -> bool:
        return self.false or self.said_s <= self.proved_s


def _with_claims(proof: PlanProof, claims: Sequence[_Claim]) -> PlanProof:
    """The proof of a plan's time with what is known of its other bounds."""
    false = [one for one in claims if one.false]
    unsettled = tuple(one.name for one in claims if not one.settled)
    texts = tuple(f"{x.name} says {x.said_s}, the search finds {x.least_s}" for x in false)
    status = ProofStatus.OPEN if unsettled else proof.status
    status = ProofStatus.REFUTED if texts else status
    return replace(proof, status=status, false=texts, unsettled=unsettled)


def _with_low(proof: PlanProof, plan: PlanModel) -> PlanProof:
    """The proof with the bounds in the plan that are less than is proved, to rounding by ticks.

    They are true, but one is none: a search that finds the optimum knows what the links allow.
    """
    proved = {"bound_s": proof.bound_s, "physical_bound_s": proof.solution.physical_bound_s}
    rounded = 1 - 1e-6 - len(plan.requests) * TICK
    low = {
        name: f"{name} says {getattr(plan, name)}, the search proves {least_s}"
        for name, least_s in proved.items()
        if getattr(plan, name) < least_s * rounded
    }
    false = proof.false
    if plan.status is Status.OPTIMAL and "physical_bound_s" in low:
        false = (*false, low.pop("physical_bound_s"))
    status = ProofStatus.REFUTED if false else proof.status
    return replace(proof, status=status, false=false, weaker=tuple(low.values()))


def _link_claim(plan: PlanModel, found: Solution) -> _Claim:
    """The least that the links allow over all placements; a finished search has it."""
    proved_s = found.physical_bound_s * (1 + 1e-6)
    least_s = proved_s if found.status is Status.OPTIMAL else math.inf
    return _Claim("physical_bound_s", told(plan.physical_bound_s), proved_s, least_s)


def _requests(
    plan: PlanModel, where: RankMap, found: Solution, watch: StopWatch
) -> Iterator[_Claim]:
    """The bounds of requests whose own programs need not be the best: the largest hides them.

    Where the objective is the sum, each program of a best plan is the best one.
    """
    problem = found.problem
    if problem.objective == "sum" or not isinstance(where, Placement):
        return
    ask, stopped = _Programs(problem, solver_of(plan.limits.solver), Catalogs()), found.interrupted
    for n, model in enumerate(plan.requests):
        request = problem.requests[n]
        scene = Scene.of(problem.topology, where, problem.axis_indices(request))
        proved_s, least_s = scene.least_s(request), math.inf
        try:
            if not stopped and told(model.bound_s) > proved_s * (1 + TICK):
                proved_s, least_s = ask.between(request, scene, watch.left())
        except KeyboardInterrupt:
            stopped = True
        name = f"request {n + 1} bound_s"
        yield _Claim(name, told(model.bound_s), proved_s * (1 + TICK), least_s * (1 + TICK))


@dataclass(frozen=True, slots=True)
class _Programs:
    """Asks for the best programs of a problem's requests on scenes on which they have one."""

    problem: Problem
    solver: Solver
    listings: Catalogs

    def between(self, request: Request, scene: Scene, limits: SearchLimits) -> tuple[float, float]:
        """What no program beats, and the time of the best one found: seconds.

        Raises:
            EncodingBug: none is said to be possible.
        """
        try:
            answer = answer_request(
                self.problem, request, scene, limits, self.solver, self.listings
            )
        except OutOfTimeError:
            return scene.least_s(request), math.inf
        if answer is None:
            raise EncodingBug("a valid program answers it", request, str(scene))
        return answer.bound_s, answer.seconds
