"""A solution as plain data for ``--json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from p2smt.cluster.allocation import unstated_levels
from p2smt.cluster.topology import Topology
from p2smt.cost.regime import regime
from p2smt.cost.requested_algorithms import topology_notes
from p2smt.cost.scene import NamedWay
from p2smt.parallelism.request import Problem
from p2smt.plans.explanation import SEARCHED, ChangedNumber, Explanation, NearestFlip, ProgramClaim
from p2smt.plans.solution import (
    Alternative,
    Gain,
    RankOrder,
    RequestAnswer,
    Solution,
    faster_orders,
    timed_steps,
)
from p2smt.plans.untimed import without_times
from p2smt.programs.check import basis_names
from p2smt.report.orders import hosts_data, network_lines
from p2smt.result import known_bound

if TYPE_CHECKING:
    from p2smt.search.comparison import Comparison


_CHANGED = ("what", "level", "factor", "winner_s", "optimum_s")


def solution_data(solution: Solution, beside: Comparison | None = None) -> dict[str, Any]:
    """The fields that tools rely on; ``plan`` is the plan file of the best alternative.

    ``beside``: the orders that an answer on named hosts is compared with.  The bounds are null
    where none is known, as for a rank list; the plan file has 0 there.
    """
    from p2smt.plans.file import plan_data

    best, topology = solution.best, solution.problem.topology
    objective_s = None if best is None else best.objective_s
    bounded, links_s = solution.bounded, solution.physical_bound_s
    if beside is not None and not beside.times_known:
        objective_s, bounded = None, False
    return {
        "status": solution.status.value,
        "basis": basis_names(solution.bases),
        "interrupted": solution.interrupted,
        "conflict": list(solution.conflict),
        "notes": [
            *topology_notes(topology),
            *solution.notes,
            *(network_lines(beside) if beside else ()),
        ],
        "objective": solution.problem.objective,
        "objective_s": objective_s,
        "bound_s": known_bound(solution.bound_s, objective_s) if bounded else None,
        "physical_bound_s": known_bound(links_s, objective_s) if bounded else None,
        "plan": None if best is None else plan_data(solution, best),
        "ranking": solution.ranking.value,
        "alternatives": [alternative_data(a, topology) for a in solution.alternatives],
        **_gain_data(solution.gain),
        **_near_data(solution),
        "default_layout": _rank_order(solution.default, topology),
        "compared_layout": _rank_order(solution.compared, topology),
        "faster_layouts": [order.name for order in faster_orders(solution)],
        "sensitivity": [
            {
                **{key: getattr(p, key) for key in _CHANGED},
                "holds": p.holds,
                "status": p.status.value,
            }
            for p in solution.sensitivity
        ],
        "explanation": explanation_data(solution.explanation),
        **hosts_data(solution, beside),
        "stats": {**asdict(solution.stats), "counters": dict(solution.stats.counters)},
    }


def _gain_data(gain: Gain | None) -> dict[str, Any]:
    """What is gained over the default layout, whether who measures would find it, and by what."""
    if gain is None:
        keys = ("gain", "gain_measurable", "accuracy", "accuracy_basis", "accuracy_unknown")
        empty: dict[str, Any] = dict.fromkeys((*keys, "program_gain", "gain_by_choice"))
        return {**empty, "named_algorithms": []}
    known, programs = gain.accuracy, gain.programs
    named = () if programs is None else programs.named
    return {
        "gain": gain.over_default,
        "gain_measurable": gain.measurable,
        "accuracy": known.error,
        "accuracy_basis": None if known.basis is None else known.basis.value,
        "accuracy_unknown": known.unknown or None,
        "program_gain": None if programs is None else programs.over_singles,
        "gain_by_choice": None if programs is None else programs.by_choice,
        "named_algorithms": [{"request": str(one), **named_data(way)} for one, way in named],
    }


def named_data(way: NamedWay) -> dict[str, Any]:
    """A way that a library has and does not choose; seconds are of one execution."""
    return {
        "algorithm": way.cheapest.algorithm,
        "protocol": way.cheapest.protocol,
        "seconds": way.cheapest.seconds,
        "settings": way.settings or None,
        "chosen_algorithm": way.chosen.algorithm,
        "chosen_protocol": way.chosen.protocol,
        "chosen_s": way.chosen.seconds,
    }


def _near_data(solution: Solution) -> dict[str, Any]:
    """How many placements are near the optimum; each one, where they were asked for."""
    near, best = solution.near, solution.best
    if near is None:
        keys = ("near_optimal", "near_optimal_status", "near_optimal_within")
        return dict.fromkeys((*keys, "near_optimal_placements"))
    least_s = best.objective_s if best is not None else 0.0
    topology = solution.problem.topology
    listed = [_near_placement(one, topology, least_s) for one in near.alternatives]
    return {
        "near_optimal": len(near.alternatives),
        "near_optimal_status": near.status.value,
        "near_optimal_within": near.within,
        "near_optimal_placements": listed if near.listed else None,
    }


def _near_placement(alternative: Alternative, topology: Topology, least_s: float) -> dict[str, Any]:
    """A placement with the programs that make it so fast, and how much slower than the best."""
    keys = ("matrix", "objective_s", "status", "programs", "chunks", "seconds", "regime")
    data = alternative_data(alternative, topology)
    gap = alternative.objective_s / least_s - 1 if least_s > 0 else 0.0
    return {**{key: data[key] for key in keys}, "gap": max(0.0, gap)}


def alternative_data(alternative: Alternative, topology: Topology) -> dict[str, Any]:
    """An alternative on its topology, without its groups."""
    matrix = alternative.matrix
    data = {
        "matrix": matrix and [list(row) for row in matrix],
        "ranks": None if matrix else list(alternative.ranks),
        "objective_s": alternative.objective_s,
        "status": alternative.status.value,
        "peak_bytes": alternative.peak_bytes,
        "programs": [None if r.program is None else str(r.program) for r in alternative.requests],
        "chunks": [r.chunks for r in alternative.requests],
        "checked_on": [r.checked for r in alternative.requests],
        "seconds": [r.seconds for r in alternative.requests],
        "regime": [regime(topology, r.steps, r.chunks) for r in alternative.requests],
        "steps": [_steps(r) for r in alternative.requests],
    }
    return _as_told(data, topology)


def _as_told(data: dict[str, Any], topology: Topology) -> dict[str, Any]:
    """Without times where the bandwidth of some level is not stated."""
    found: dict[str, Any] = without_times(data) if unstated_levels(topology) else data
    return found


def _steps(answer: RequestAnswer) -> list[dict[str, Any]]:
    """Per step: instruction, time, and the level whose worst link bounds it with its load."""
    keys = ("instruction", "seconds", "bottleneck", "load_bytes")
    return [{key: step[key] for key in keys} for step in timed_steps(answer)]


def _rank_order(order: RankOrder | None, topology: Topology) -> dict[str, Any] | None:
    return None if order is None else _as_told(asdict(order), topology)


# `solve --explain` as data.


def explanation_data(found: Explanation | None) -> dict[str, Any] | None:
    """The explanation; None: it was not asked for."""
    if found is None:
        return None
    placed = found.placements
    return {
        "why": found.why or None,
        "linear": found.linear,
        "searched": SEARCHED,
        "nearest": _text(found.nearest()),
        "nearest_proved": found.nearest_proved(),
        "nearest_unsettled": found.unsettled(),
        "nearest_by_hardware": _text(found.nearest(hardware=True)),
        "nearest_by_hardware_proved": found.nearest_proved(hardware=True),
        "nearest_by_hardware_unsettled": found.unsettled(hardware=True),
        "flips": [_flip(flip) for flip in found.flips],
        "model": "rings, one protocol",
        "programs": [_program(claim) for claim in found.programs],
        "placements": placed
        and {
            "others": placed.others,
            "never_better": placed.never,
            "rivals": [[list(row) for row in matrix] for matrix in placed.rivals],
            "unsettled": placed.unsettled,
            "axes": list(placed.axes),
            "whole": placed.whole,
        },
    }


def _text(flip: NearestFlip | None) -> str | None:
    return None if flip is None else flip_text(flip)


def _flip(flip: NearestFlip) -> dict[str, Any]:
    number = flip.number
    return {
        "what": number.what,
        "of": number.of,
        "grows": number.grows,
        "request": flip.request,
        "outcome": flip.outcome.value,
        "factor": flip.factor,
        "exact": None if flip.exact is None else str(flip.exact),
        "proved": flip.proved,
        "tried": flip.tried,
        "matrix": flip.matrix and [list(row) for row in flip.matrix],
        "program": flip.program and str(flip.program),
        "why": flip.why or None,
    }


def _program(claim: ProgramClaim) -> dict[str, Any]:
    return {
        "request": claim.request,
        "program": str(claim.program),
        "verdict": claim.verdict.value,
        "among": [str(program) for program in claim.among],
        "why": claim.why or None,
    }


# Flips in words.


_WAYS = {
    ("bandwidth", False): "slower",
    ("bandwidth", True): "faster",
    ("latency", False): "shorter",
    ("latency", True): "longer",
    ("call", False): "cheaper",
    ("call", True): "dearer",
    ("payload", False): "smaller",
    ("payload", True): "larger",
}


def changed_thing(number: ChangedNumber) -> str:
    """What changes, such as ``node links``."""
    match number.what:
        case "bandwidth":
            return f"{number.of} links"
        case "latency":
            return f"{number.of} latencies"
        case "call":
            return "calls"
        case _:
            return f"{number.of}"


def way(number: ChangedNumber) -> str:
    """In which direction, such as ``slower``."""
    return _WAYS[number.what, number.grows]


def times(factor: float) -> str:
    """A factor from 1 on; one that rounds to 1 is shown with what it has beyond it."""
    if factor == 1:
        return "1x"
    text = f"{factor:.3g}"
    return f"{factor:.6g}x" if text == "1" else f"{text}x"


def winner(flip: NearestFlip) -> str:
    """What wins beyond a flip."""
    if flip.request is not None:
        return f"{flip.request}: {flip.program}"
    return f"placement {matrix_text(flip.matrix or ())}"


def programs_text(problem: Problem, *, many: bool = False) -> str:
    """The programs that a problem allows: whatever is said of all is said of these."""
    kind, length = "programs" if many else "program", problem.max_length
    allowed = (
        " that the restrictions allow" if problem.forbidden_forms or problem.step_limits else ""
    )
    return f"{kind} of at most {length} instruction{'s' if length > 1 else ''}{allowed}"


def matrix_text(matrix: tuple[tuple[int, ...], ...]) -> str:
    """A matrix as everywhere."""
    return "[" + ",".join("[" + ",".join(map(str, row)) + "]" for row in matrix) + "]"


def flip_text(flip: NearestFlip) -> str:
    """A flip as one sentence."""
    number = flip.number
    if flip.factor is None:
        return f"{changed_thing(number)} {way(number)}: none up to {SEARCHED}x"
    if flip.factor == 1:
        return f"with {changed_thing(number)} ever so little {way(number)}, {winner(flip)} wins"
    return f"with {changed_thing(number)} {times(flip.factor)} {way(number)}, {winner(flip)} wins"
