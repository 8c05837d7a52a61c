"""The cost of requests and programs as plain data for ``--json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from p2smt.cluster.topology import Topology
from p2smt.cost.regime import regime
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Alternative, RequestAnswer, timed_steps

if TYPE_CHECKING:
    from p2smt.plans.sweep import Sweep


def cost_data(problem: Problem, candidates: Sequence[Alternative]) -> dict[str, Any]:
    """Of one request with one program its own fields, with several a list ``programs`` of those;
    of several requests a list ``requests``, and the objective."""
    if len(problem.requests) > 1:
        (found,) = candidates
        requests = [request_data(answer, problem.topology) for answer in found.requests]
        return {"objective_s": found.objective_s, "requests": requests}
    programs = [request_data(found.requests[0], problem.topology) for found in candidates]
    return programs[0] if len(programs) == 1 else {"programs": programs}


def sweep_data(sweep: Sweep) -> dict[str, Any]:
    """Per size: its bytes, and the fields that the command gives for it alone."""
    return {
        "sizes": [
            {"bytes": size, **cost_data(sweep.problem, at)}
            for size, at in zip(sweep.sizes, sweep.by_size, strict=True)
        ]
    }


def request_data(answer: RequestAnswer, topology: Topology) -> dict[str, Any]:
    """One request: of one execution ``seconds``, per iteration ``total_s``, of one chunk the steps.

    ``program`` is None where there is one fixed step, or nothing to do; ``regime`` is what decides
    its time (:mod:`p2smt.cost.regime`), None where it takes none.
    """
    request = answer.request
    return {
        "kind": request.kind.value,
        "axes": list(request.axes),
        "bytes": request.payload_bytes,
        "times": request.times,
        "total_s": answer.total_s,
        "program": None if answer.program is None else str(answer.program),
        "chunks": answer.chunks,
        "seconds": answer.seconds,
        "single_collective_s": answer.single_s,
        "algorithm_bound_s": answer.bound_s,
        "physical_bound_s": answer.physical_bound_s,
        "regime": regime(topology, answer.steps, answer.chunks),
        "checked": answer.checked,
        "steps": timed_steps(answer),
    }
