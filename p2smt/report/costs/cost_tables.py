"""What `cost` tells a person about requests and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from p2smt.cluster.topology import Topology
from p2smt.cost.regime import regime
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Alternative, RequestAnswer, in_chunks
from p2smt.report.costs.request_table import shown_steps
from p2smt.report.tables import gap, table
from p2smt.units import format_time


def cost_tables(problem: Problem, candidates: Sequence[Alternative]) -> Iterator[RenderableType]:
    """Each request, or each program of the one request, step by step with its times."""
    if len(problem.requests) > 1:
        (found,) = candidates
        for answer in found.requests:
            yield from (f"{answer.request}", *_answer(answer, problem.topology), "")
        what = "total" if problem.objective == "sum" else "largest request"
        yield f"{format_time(found.objective_s)} per iteration ({what})"
        return
    for number, found in enumerate(candidates):
        (answer,) = found.requests
        if len(candidates) > 1:
            yield from ("", f"{answer.program}") if number else (f"{answer.program}",)
        yield from _answer(answer, problem.topology)
    if len(candidates) > 1:
        best = min(candidates, key=lambda found: found.objective_s).requests[0]
        yield f"\nfastest: {best.program} ({format_time(best.seconds)})"


def _answer(answer: RequestAnswer, topology: Topology) -> Iterator[RenderableType]:
    title = "steps" if answer.chunks == 1 else "steps of one chunk"
    rows = [step.cells for step in shown_steps(answer)]
    if rows:
        yield table(title, ["instruction", ">time", "algorithm", "bottleneck"], rows)
        yield ""
    yield "; ".join(_parts(answer, topology))


def _parts(answer: RequestAnswer, topology: Topology) -> Iterator[str]:
    seconds, bound = answer.seconds, answer.physical_bound_s
    yield format_time(seconds) + in_chunks(answer.chunks)
    if answer.request.times > 1:
        yield f"{answer.request.times} times {format_time(answer.total_s)}"
    if answer.program is not None:
        yield f"single collective {format_time(answer.single_s)}"
        least = answer.bound_s
        yield f"algorithm bound {format_time(least)} (gap {gap(seconds, least)})"
        yield f"link-level bound {format_time(bound)} (gap {gap(seconds, bound)})"
    decides = regime(topology, answer.steps, answer.chunks)
    if decides is not None:
        yield f"decided by {decides}"
    yield f"checked on {answer.checked}" if answer.program is not None else answer.checked
