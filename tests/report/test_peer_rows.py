"""Other planners beside a plan: what is faster says so, and the bytes shown are those capped."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from p2smt.cluster.file import load_topology
from p2smt.interop.arrays.peers.compare_peers import PeerRow
from p2smt.report.resharding_tables import peers_table
from p2smt.resharding.search import solve_redistribution
from p2smt.resharding.types import ArrayType, ElementType, parse_layout, parse_mesh


@pytest.mark.parametrize("capped", [False, True])
def test_a_faster_plan_names_the_memory_that_allows_it(capped: bool) -> None:
    mesh = parse_mesh("a=8")
    kinds = [
        ArrayType(mesh, (64, 64), ElementType.F32, parse_layout(text, mesh))
        for text in ("S(a),R", "R,S(a)")
    ]
    topology = load_topology("azure-ndv4:1").nominal()
    plan = solve_redistribution(kinds[0], kinds[1], topology, memory=8192 if capped else None)
    ours = plan.objective_s
    rows = [
        PeerRow("fast", ours / 2, 4096, 65536, True, (), ""),
        PeerRow("same", ours, 1024, 2048, False, (), "known"),
        PeerRow("slow", ours * 2, 4096, 65536, True, (), ""),
        PeerRow("none", None, None, None, False, (), "torch is not installed"),
    ]
    out = io.StringIO()
    Console(file=out, width=80).print(peers_table(plan, rows, short=True))
    assert "none: torch is not installed" in out.getvalue()
    Console(file=out, width=200).print(peers_table(plan, rows))
    told = {line.split()[0]: line for line in out.getvalue().splitlines() if line.strip()}
    assert "0.5x" in told["fast"]
    assert "faster, over the cap: --memory 65536B allows it" in told["fast"]
    assert "faster" not in told["same"] + told["slow"]
    assert ("64 KiB over the cap" if capped else "4 KiB over the cap") in told["fast"]
    assert ("largest step" if capped else "largest state") in told["planner"]
