"""A case planned here and by its peers, at two kinds of prices."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from experiments.redistribution.cases import Case
from experiments.redistribution.clusters import LIBRARY, NOMINAL, topology_of
from experiments.testbed.written.results import rounded
from p2smt.interop.arrays.peers.compare_peers import VARIANTS, PeerRow, dtensor_row, priced_row
from p2smt.resharding.endpoints import ends_of
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.search import solve_redistribution
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.types import Mesh, Uneven, layout_text, mesh_text
from p2smt.result import SearchLimits

ONE_A_HOST = (
    ("dtensor graph, one device a host", "GRAPH", False),
    ("dtensor graph, one device a host, flattened meshes", "GRAPH", True),
)
"""The graph planner where a process sees one device only, as some launchers have it."""
LIMITS = SearchLimits(time_limit_s=60.0, workers=2)
DIGITS = 6


def entry(case: Case) -> dict[str, Any]:
    """All that is written of a case."""
    mesh = case.source.mesh
    return {
        "group": case.group,
        "name": case.name,
        "cluster": case.cluster,
        "mesh": mesh_text(mesh),
        **_devices(mesh, case.target.mesh),
        "shape": list(case.source.shape),
        **({} if case.source.uneven is Uneven.REFUSE else {"uneven": case.source.uneven.value}),
        "dtype": case.source.element.value,
        "from": layout_text(case.source.layout, mesh),
        "to": layout_text(case.target.layout, mesh),
        "plans": {prices: _planned(case, prices) for prices in (NOMINAL, LIBRARY)},
    }


def _devices(source: Mesh, target: Mesh) -> dict[str, list[int]]:
    ends = {"device_ids": source, "to_device_ids": target}
    return {key: list(mesh.devices) for key, mesh in ends.items() if not mesh.in_order}


def _planned(case: Case, prices: str) -> dict[str, Any]:
    topology = topology_of(case.cluster, prices)
    start = time.process_time()
    plan = solve_redistribution(
        case.source, case.target, topology, max_steps=case.max_steps, limits=LIMITS
    )
    planning_s = time.process_time() - start
    frame = plan.frame
    return {
        "status": plan.status.value,
        "max_steps": plan.max_steps,
        "digits": len(frame.digits),
        "objective_s": rounded(plan.objective_s, DIGITS),
        "bound_s": rounded(plan.bound_s, DIGITS),
        "physical_bound_s": rounded(plan.physical_bound_s, DIGITS),
        "peak_bytes": plan.peak_bytes,
        "cap_bytes": plan.memory.limit_bytes,
        "planning_s": round(planning_s, 2),
        "steps": [one.step.text(frame) for one in plan.steps],
        "peers": {row.name: _peer(row) for row in _peers(case, plan)},
    }


def _peers(case: Case, plan: RedistributionPlan) -> Iterator[PeerRow]:
    if case.shardy is not None:
        ends, path = case.shardy.path(ends_of(case.source, case.target))
        prices = StepPrices(plan.topology, ends.frame)
        yield priced_row("shardy", ends, path, prices, plan.memory)
        return
    asked = [(*variant, None) for variant in VARIANTS] + [(*variant, 1) for variant in ONE_A_HOST]
    for name, which, flattened, host in asked:
        yield dtensor_row(
            *(name, which, flattened, plan.topology, case.source, case.target, plan.memory),
            devices_per_host=host,
        )


def _peer(row: PeerRow) -> dict[str, Any]:
    found: dict[str, Any] = {"steps": len(row.steps)}
    if row.seconds is not None:
        found |= {"seconds": rounded(row.seconds, DIGITS), "peak_bytes": row.peak_bytes}
    if row.over_cap:
        found["over_cap"] = True
    return found | ({"note": row.note} if row.note else {})
