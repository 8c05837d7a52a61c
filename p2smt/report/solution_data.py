"""A solution as plain data for ``--json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from p2smt.cluster.allocation import unstated_levels
from p2smt.cluster.error_class import Basis
from p2smt.cluster.topology import Topology
from p2smt.cost.accuracy import PriceBasis, PriceRange
from p2smt.cost.regime import regime
from p2smt.cost.requested_algorithms import topology_notes
from p2smt.cost.scene import NamedWay
from p2smt.parallelism.request import Problem
from p2smt.plans.explanation import (
    SEARCHED,
    Explanation,
    NearestTippingPoint,
    ProgramClaim,
)
from p2smt.plans.ranges import range_of, request_ranges, together
from p2smt.plans.solution import (
    Alternative,
    Gain,
    RankOrder,
    RequestAnswer,
    Solution,
    faster_orders,
    timed_steps,
)
from p2smt.programs.program import bases_of
from p2smt.report.order_tables import hosts_data, network_lines
from p2smt.report.outputs.programs import NamedAlgorithm
from p2smt.report.outputs.shape import range_data
from p2smt.report.outputs.solve import (
    AnswerFields,
    ChangedTopology,
    ComparedFields,
    ComparedLayout,
    EverywhereProgram,
    ExplainedAnswer,
    GainFields,
    NamedRequest,
    NearFields,
    NearPlacement,
    NearStatus,
    NumberFlip,
    RankedPlacement,
    SearchStats,
    SolveOutput,
    TimedStep,
)
from p2smt.report.tipping_points import tipping_point_text
from p2smt.report.what_if_rows import solve_data
from p2smt.result import SAME, SolveStats, known_bound

if TYPE_CHECKING:
    from p2smt.search.comparison import Comparison
    from p2smt.search.solve_what_if import SolvedChange


def solution_data(
    solution: Solution,
    beside: Comparison | None = None,
    rows: Sequence[SolvedChange] | None = None,
    *,
    explained: bool = False,
) -> SolveOutput:
    """What `solve` prints; ``plan`` is the plan file of the best alternative.

    ``beside``: the orders that an answer on named hosts is compared with, and ``explained``:
    whether it says what binds; ``rows``: what changes of the cluster gain.
    """
    return SolveOutput(
        **vars(_answer(solution, beside)),
        **vars(_gain(solution.gain)),
        **vars(_near(solution)),
        **vars(_compared(solution)),
        **vars(hosts_data(solution, beside, explained=explained)),
        stats=stats_data(solution.stats),
        what_if=None if rows is None else list(solve_data(rows)),
    )


def stats_data(stats: SolveStats) -> SearchStats:
    """How an answer was found."""
    return SearchStats(
        solver=stats.solver,
        wall_s=stats.wall_s,
        calls=stats.calls,
        counters=dict(stats.counters),
        effort=stats.effort,
        reason=stats.reason,
    )


def _answer(solution: Solution, beside: Comparison | None) -> AnswerFields:
    """The bounds are null where none is known, as for a rank list; the plan file has 0 there."""
    from p2smt.plans.file import plan_data

    best, topology = solution.best, solution.problem.topology
    objective_s = None if best is None else best.objective_s
    bounded, links_s = solution.bounded, solution.physical_bound_s
    if beside is not None and not beside.times_known:
        objective_s, bounded = None, False
    network = network_lines(beside) if beside else ()
    within = range_of(solution.problem, best) if best and objective_s is not None else None
    return AnswerFields(
        status=solution.status,
        basis=bases_of(solution.bases),
        interrupted=solution.interrupted,
        conflict=solution.conflict,
        notes=[*topology_notes(topology), *solution.notes, *network],
        objective=solution.problem.objective,
        objective_s=objective_s,
        bound_s=known_bound(solution.bound_s, objective_s) if bounded else None,
        physical_bound_s=known_bound(links_s, objective_s) if bounded else None,
        plan=None if best is None else plan_data(solution, best),
        ranking=solution.ranking,
        alternatives=[alternative_data(solution.problem, one) for one in solution.alternatives],
        **range_data(within, "range_basis"),
    )


def _gain(gain: Gain | None) -> GainFields:
    programs = None if gain is None else gain.programs
    error = None if gain is None else gain.error
    named = () if programs is None else programs.named
    return GainFields(
        gain=None if gain is None else gain.over_default,
        gain_measurable=None if gain is None else gain.measurable,
        accuracy=error,
        accuracy_basis=None if gain is None or error is None else _found_on(gain),
        accuracy_unknown=None if gain is None or error is not None else _unknown(gain),
        program_gain=None if programs is None else programs.over_singles,
        gain_by_choice=None if programs is None else programs.by_choice,
        named_algorithms=[
            NamedRequest(request=str(one), **vars(named_data(way))) for one, way in named
        ],
        gain_shown=None if gain is None or gain.over_default <= SAME else gain.shown.value,
        naming_advised=programs is not None and bool(named) and programs.advised,
    )


def _found_on(gain: Gain) -> Literal["in sample", "left out"]:
    """Only a calibration from a single table is judged by what it was fitted to."""
    seen = any(one.why == Basis.IN_SAMPLE.value for one in gain.sides)
    return "in sample" if seen else "left out"


def _unknown(gain: Gain) -> str | None:
    return next((one.why for one in gain.sides if one.basis is PriceBasis.ASSUMED), None)


def named_data(way: NamedWay) -> NamedAlgorithm:
    """A way that a library has and does not choose; seconds are of one execution."""
    return NamedAlgorithm(
        algorithm=way.cheapest.algorithm,
        protocol=way.cheapest.protocol,
        seconds=way.cheapest.seconds,
        settings=way.settings or None,
        chosen_algorithm=way.chosen.algorithm,
        chosen_protocol=way.chosen.protocol,
        chosen_s=way.chosen.seconds,
    )


def _near(solution: Solution) -> NearFields:
    """How many placements are near the optimum; each one, where they were asked for."""
    near, best, problem = solution.near, solution.best, solution.problem
    least_s = best.objective_s if best is not None else 0.0
    return NearFields(
        near_optimal=None if near is None else len(near.alternatives),
        near_optimal_status=None if near is None else cast(NearStatus, near.status.value),
        near_optimal_within=None if near is None else near.within,
        near_optimal_placements=[
            _near_placement(problem, one, least_s) for one in near.alternatives
        ]
        if near is not None and near.listed
        else None,
    )


_OF_NEAR = (
    *("matrix", "objective_s", "status", "programs", "chunks", "seconds", "regime"),
    *("range_s", "basis"),
)


def _near_placement(problem: Problem, alternative: Alternative, least_s: float) -> NearPlacement:
    """A placement with the programs that make it so fast, and how much slower than the best."""
    gap = alternative.objective_s / least_s - 1 if least_s > 0 else 0.0
    found = vars(alternative_data(problem, alternative))
    return NearPlacement(**{key: found[key] for key in _OF_NEAR}, gap=max(0.0, gap))


def _compared(solution: Solution) -> ComparedFields:
    topology = solution.problem.topology
    return ComparedFields(
        default_layout=_rank_order(solution.default, topology),
        compared_layout=_rank_order(solution.compared, topology),
        faster_layouts=[order.name for order in faster_orders(solution)],
        sensitivity=[
            ChangedTopology(
                what=one.what,
                level=one.level,
                factor=one.factor,
                winner_s=one.winner_s,
                optimum_s=one.optimum_s,
                holds=one.holds,
                status=one.status,
            )
            for one in solution.sensitivity
        ],
        explanation=explanation_data(solution.explanation),
    )


def alternative_data(problem: Problem, alternative: Alternative) -> RankedPlacement:
    """An alternative of a problem, without its groups; without times where the bandwidth of some
    level is not stated."""
    matrix, requests = alternative.matrix, alternative.requests
    topology = problem.topology
    known = not unstated_levels(topology)
    ranges = list(request_ranges(problem, alternative)) if known else []
    return RankedPlacement(
        matrix=matrix,
        ranks=None if matrix else alternative.ranks,
        objective_s=alternative.objective_s if known else None,
        status=alternative.status,
        peak_bytes=alternative.peak_bytes,
        programs=[None if r.program is None else str(r.program) for r in requests],
        chunks=[r.chunks for r in requests],
        checked_on=[r.checked for r in requests],
        seconds=[r.seconds if known else None for r in requests],
        regime=[regime(topology, r.steps, r.chunks) for r in requests],
        steps=[_steps(r, ranges[n].steps if known else None) for n, r in enumerate(requests)],
        **range_data(together(problem, [one.whole for one in ranges]) if known else None),
    )


def _steps(answer: RequestAnswer, ranges: Sequence[PriceRange | None] | None) -> list[TimedStep]:
    """Per step: instruction, time and range (None: no time is known), and the level whose worst
    link bounds it with its load."""
    steps = timed_steps(answer)
    return [
        TimedStep(
            instruction=step["instruction"],
            seconds=None if ranges is None else step["seconds"],
            bottleneck=step["bottleneck"],
            load_bytes=step["load_bytes"],
            **range_data(within),
        )
        for step, within in zip(steps, ranges or [None] * len(steps), strict=True)
    ]


def _rank_order(order: RankOrder | None, topology: Topology) -> ComparedLayout | None:
    if order is None:
        return None
    known = not unstated_levels(topology)
    return ComparedLayout(
        name=order.name,
        seconds=order.seconds if known else [None] * len(order.seconds),
        objective_s=order.objective_s if known else None,
        matrix=order.matrix,
        breaks=order.breaks,
        **range_data(order.within if known else None),
    )


# `solve --explain` as data.


def explanation_data(found: Explanation | None) -> ExplainedAnswer | None:
    """The explanation; None: it was not asked for."""
    if found is None:
        return None
    return ExplainedAnswer(
        why=found.why or None,
        linear=found.linear,
        searched=SEARCHED,
        nearest=_text(found.nearest()),
        nearest_proved=found.nearest_proved(),
        nearest_unsettled=found.unsettled(),
        nearest_by_hardware=_text(found.nearest(hardware=True)),
        nearest_by_hardware_proved=found.nearest_proved(hardware=True),
        nearest_by_hardware_unsettled=found.unsettled(hardware=True),
        flips=[_flip(flip) for flip in found.flips],
        model="rings, one protocol",
        programs=[_program(claim) for claim in found.programs],
        placements=found.placements,
    )


def _text(flip: NearestTippingPoint | None) -> str | None:
    return None if flip is None else tipping_point_text(flip)


def _flip(flip: NearestTippingPoint) -> NumberFlip:
    number = flip.number
    return NumberFlip(
        what=number.what,
        of=number.of,
        grows=number.grows,
        request=flip.request,
        outcome=flip.outcome,
        factor=flip.factor,
        exact=None if flip.exact is None else str(flip.exact),
        proved=flip.proved,
        tried=flip.tried,
        matrix=flip.matrix,
        program=None if flip.program is None else str(flip.program),
        why=flip.why or None,
    )


def _program(claim: ProgramClaim) -> EverywhereProgram:
    return EverywhereProgram(
        request=claim.request,
        program=str(claim.program),
        verdict=claim.verdict,
        among=[str(program) for program in claim.among],
        why=claim.why or None,
    )
