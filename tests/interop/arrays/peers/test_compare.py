"""Peers beside a plan: the same prices, the same cap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from p2smt.cluster.file import load_topology
from p2smt.errors import InputError
from p2smt.interop.arrays.peers.compare_peers import VARIANTS, PeerRow, compare_peers, read_shardy
from p2smt.resharding.endpoints import ends_of
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import MemoryLimit
from p2smt.resharding.types import ArrayType, ElementType, Uneven, parse_layout, parse_mesh
from p2smt.result import SearchLimits, SolveStats, Status

TOPOLOGY = load_topology("azure-ndv4:1").nominal()
FILE = Path(__file__).parent / "resharding.mlir"


def plan(
    source: str, target: str, uneven: Uneven = Uneven.REFUSE, shape: tuple[int, ...] = (1024, 512)
) -> RedistributionPlan:
    """A plan without steps: what is compared are its ends, its prices and its cap."""
    mesh = parse_mesh("x=4,y=2")
    first, last = (
        ArrayType(mesh, shape, ElementType.F32, parse_layout(text, mesh), uneven)
        for text in (source, target)
    )
    ends = ends_of(first, last)[0]
    stats = SolveStats("none")
    return RedistributionPlan(
        TOPOLOGY,
        first,
        last,
        ends.frame,
        ends.source,
        (),
        MemoryLimit(ends.states_limit_bytes),
        Status.OPTIMAL,
        0.0,
        0.0,
        None,
        False,
        SearchLimits(),
        stats,
    )


def rows(asked: RedistributionPlan, *names: str, file: Path | None = None) -> dict[str, PeerRow]:
    return {row.name: row for row in compare_peers(asked, names, file)}


def test_dtensors_four_ways() -> None:
    pytest.importorskip("torch")
    asked = plan("S(x,y),R", "R,S(x,y)")
    found = rows(asked, "dtensor", "dtensor")
    assert list(found) == [name for name, _, _ in VARIANTS]
    greedy = found["dtensor greedy"]
    prices = StepPrices(TOPOLOGY, ends_of(asked.source, asked.target)[0].frame)
    assert greedy.seconds == sum(prices.step(step).seconds for step in greedy.steps)
    assert len(greedy.steps) == 3
    assert greedy.over_cap
    assert greedy.peak_bytes == 1024 * 512 * 4 // 4
    wide = rows(plan("R,R;P(x);P(y)", "R,R"), "dtensor")["dtensor greedy"]
    assert not wide.over_cap
    assert wide.peak_bytes == 1024 * 512 * 4


def test_types_that_dtensor_does_not_have() -> None:
    pytest.importorskip("torch")
    for row in compare_peers(plan("S(x:(1)2),R", "R,R"), ["dtensor"]):
        assert row.seconds is None
        assert "whole mesh axes" in row.note


def test_padded_arrays_are_compared_as_padded() -> None:
    pytest.importorskip("torch")
    asked = plan("S(x,y),R", "R,S(x,y)", Uneven.PADDED, (1023, 509))
    found = rows(asked, "dtensor")["dtensor greedy"]
    assert found.note == "of the padded array"
    assert found.peak_bytes == 1024 * 512 * 4 // 4


def test_devices_that_do_not_increase_are_noted() -> None:
    pytest.importorskip("torch")
    asked = plan("S(x,y),R", "R,S(x,y)")
    turned = replace(asked.source.mesh, devices=(1, 0, *range(2, 8)))
    ends = (replace(end, mesh=turned) for end in (asked.source, asked.target))
    source, target = ends
    asked = replace(asked, source=source, target=target)
    assert "moves wrong data" in rows(asked, "dtensor")["dtensor greedy"].note


def test_the_memory_that_a_plan_needs_allows_it() -> None:
    pytest.importorskip("torch")
    asked = plan("S(x,y),R", "R,S(x,y)")
    needed = rows(asked, "dtensor")["dtensor greedy"].peak_step_bytes
    assert needed is not None
    for size, over in ((needed, False), (needed - 1, True)):
        capped = replace(asked, memory=MemoryLimit(size, of_steps=True))
        assert rows(capped, "dtensor")["dtensor greedy"].over_cap == over


def test_without_torch_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p2smt.interop.arrays.peers.compare_peers.find_spec", lambda _: None)
    (row,) = compare_peers(plan("S(x),R", "R,R"), ["dtensor"])
    assert "torch is not installed" in row.note


def test_shardy_has_nothing_to_run() -> None:
    (row,) = compare_peers(plan("S(x),R", "R,R"), ["shardy"])
    assert row.seconds is None
    assert "no package to run" in row.note


def test_shardys_sequence_of_a_file() -> None:
    asked = plan("S(x,y),R", "S(x:(1)2),S(x:(2)2)")
    (row,) = compare_peers(asked, ["shardy"], FILE)
    assert row.note.startswith("@sub_axes")
    same = "there of an array" in row.note
    assert same == (read_shardy(FILE.read_text(), "file").cases[0].shape != asked.source.shape)
    other = plan("S(x,y),R", "S(x:(1)2),S(x:(2)2)", shape=(2048, 512))
    (changed,) = compare_peers(other, ["shardy"], FILE)
    assert "@sub_axes, there of an array of " in changed.note
    assert len(row.steps) == 3
    assert row.seconds is not None
    assert row.seconds > 0
    assert not row.over_cap
    (none,) = compare_peers(plan("S(x),R", "R,R"), ["shardy"], FILE)
    assert "has no function with this mesh" in none.note


def test_unknown_peers_and_missing_files_are_refused() -> None:
    with pytest.raises(InputError, match="peer 'gspmd'"):
        compare_peers(plan("S(x),R", "R,R"), ["gspmd"])
    with pytest.raises(InputError, match=r"none\.mlir"):
        compare_peers(plan("S(x),R", "R,R"), ["shardy"], Path("none.mlir"))
