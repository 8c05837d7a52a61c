"""What `cost` tells a person about a plan file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType

from p2smt.parallelism.rank_list import RankList
from p2smt.plans.check.plan import PlanReport
from p2smt.plans.file_model import AnyPlan, RequestModel, told
from p2smt.plans.solution import TIMED_STEP
from p2smt.report.costs.request_table import layout_table, peak_line, planned, request_table
from p2smt.report.tables import bound_text
from p2smt.units import format_time


def plan_tables(plan: AnyPlan, report: PlanReport) -> Iterator[RenderableType]:
    """Time per iteration, placement, and the requests step by step, as `solve` shows them.

    Where nobody stated the bandwidth of uplinks, the placement alone.
    """
    if not report.unstated:
        yield from _headline(plan)
        yield ""
    levels = [level.name for level in plan.topology.levels]
    sizes = [(axis.name, axis.size) for axis in plan.axes]
    order = RankList(tuple(plan.ranks), tuple(axis.size for axis in plan.axes))
    yield layout_table(sizes, levels, plan.matrix, order.text())
    if not report.unstated:
        yield ""
        yield request_table(map(planned, plan.requests, report.regimes))


def _headline(plan: AnyPlan) -> Iterator[str]:
    what = "total" if plan.objective == "sum" else "largest request"
    objective_s = told(plan.objective_s)
    yield f"{format_time(objective_s)} per iteration ({what})"
    yield bound_text("link-level", told(plan.physical_bound_s), objective_s)
    yield peak_line(plan.peak_bytes)


def plan_requests(plan: AnyPlan, report: PlanReport) -> list[dict[str, Any]]:
    """Its requests with the fields that `cost` gives of any request; without times none."""
    if report.unstated:
        return []
    return list(map(_request, plan.requests, report.regimes, report.checked_on))


def _request(model: RequestModel, decides: str | None, checked: str) -> dict[str, Any]:
    keys = ("program", "chunks", "seconds", "single_collective_s", "physical_bound_s")
    return {
        "kind": model.kind.value,
        "axes": model.axes,
        "bytes": model.bytes,
        "times": model.times,
        "total_s": model.times * told(model.seconds),
        **{key: getattr(model, key) for key in keys},
        "regime": decides,
        "checked": checked,
        "steps": [{key: getattr(s, key) for key in TIMED_STEP} for s in model.steps],
    }
