"""The comparison with published tables: its arithmetic, and that its committed results hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.accuracy import accuracy
from experiments.accuracy.blind import blind_results
from experiments.accuracy.cells import Cell, bound_s, cells_of, digits_of_first, predictor
from experiments.accuracy.error_classes import both_text, system_of, yaml_text
from experiments.accuracy.hold_out import LARGER, HeldOut, held_out, samples_of
from experiments.accuracy.page import bytes_text, page
from experiments.accuracy.pairs import comparisons, pair_target
from experiments.accuracy.summary import Result, figures, targets
from experiments.accuracy.systems import has_preset, is_part, topology_name, topology_of
from experiments.tables.known import TABLES
from experiments.tables.tables import Published, tables
from p2smt.cluster.file import load_topology, parse_topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.accuracy import (
    ACCURACY_FILE,
    ANY,
    SIZE_CLASSES,
    BlindRows,
    PricedStep,
    _of_any,
    read_blind,
    size_class,
)

TEXT = """
name: two-nodes
levels:
  - {name: node, size: 2, link: {kind: switch, bandwidth: 1 GB/s, latency: 1 ms}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 4 GB/s, latency: 0.5 ms}}
algorithms: [ring]
"""


def table(name: str, nodes: int, ranks: int, *rows: tuple[int, float]) -> Published:
    return Published(name, "some", nodes, ranks, "all-reduce", "", "here", "", rows, ())


def result(name: str, nodes: int, *cells: tuple[int, float, float]) -> Result:
    """Cells of (bytes, measured, predicted)."""
    rows = [
        Cell(size, measured, predicted, "ring", "simple", 1.0)
        for size, measured, predicted in cells
    ]
    return Result(table(name, nodes, 8 * nodes), "some", "", tuple(rows))


def test_a_cell_by_hand() -> None:
    """Ring all-reduce of 4 ranks: 2 latencies across, 4 inside; 3/2 of 1 GB over 1 GB/s."""
    topology = parse_topology(TEXT, "here")
    (cell,) = cells_of(table("t", 2, 4, (10**9, 3.0)), topology)
    assert cell.predicted_s == pytest.approx(1.5 + 6 * 0.5e-3 + 2 * 0.5e-3, rel=0.01)
    assert cell.ratio == cell.predicted_s / 3.0
    assert cell.error == pytest.approx(1 - cell.ratio)
    assert cell.factor == pytest.approx(1 / cell.ratio)
    assert cell.bound_s <= cell.predicted_s


def test_ranks_fill_the_innermost_level_first() -> None:
    assert digits_of_first(load_topology("dgx-h100:2"), 16) == (((2, 1),), ((8, 1),))
    assert digits_of_first(load_topology("dgx-h100:1"), 4) == ((), ((4, 1),))
    for name, ranks in (("dgx-h100:2", 12), ("dgx-h100:1", 16)):
        with pytest.raises(ValueError, match=str(ranks)):
            digits_of_first(load_topology(name), ranks)


def test_a_part_of_a_rack_has_no_more_to_carry_than_its_ranks() -> None:
    rack = load_topology("gb200-nvl72:1")
    some, every = (bound_s(rack, ranks, RequestKind.ALL_TO_ALL, 2**30) for ranks in (4, 72))
    assert some < every
    assert predictor(rack, 4, RequestKind.ALL_REDUCE)(2**30).seconds > 0


def test_figures() -> None:
    small, large = (2**10, 1.0, 1.4), (2**20, 10.0, 20.0)
    tiny = (8, 1.0, 100.0)
    one = result("one", 2, tiny, small, large, (2**21, 0.5, 0.5), (2**22, 10.0, 11.0))
    found = figures([one])
    assert (found.cells, found.below_bound, found.above_two_nodes) == (5, 1, 3)
    assert found.large == pytest.approx(0.1)
    assert found.small == pytest.approx((0.4 + 99) / 2)
    assert found.worst is not None
    assert found.worst.factor == 2
    assert figures([result("other", 4, large)]).above_two_nodes == 0
    assert figures([result("none", 1)]).large is None


def test_targets_are_met_or_not() -> None:
    good = result("good", 2, (2**10, 1.1, 1.1), (2**20, 2.0, 2.2))
    assert all(one.met for one in targets([good]))
    bad = result("bad", 2, (2**10, 1.0, 4.0), (2**20, 0.5, 1.0))
    assert not any(one.met for one in targets([bad, bad]))


def test_a_whole_and_its_part() -> None:
    """At 1 KiB the model calls the wrong one faster, at 1 MiB not; at 2 KiB they are equal."""
    whole = result("whole", 2, (2**10, 2.0, 2.0), (2**11, 1.0, 1.0), (2**20, 2.0, 2.0))
    part = result("part", 1, (2**10, 1.0, 3.0), (2**11, 1.01, 0.5), (2**20, 1.5, 1.0))
    found = [one for one in comparisons([whole, part]) if one.calls == 1]
    assert [(one.whole, one.part) for one in found] == [("whole", "part")] * 3
    assert [one.agree for one in found] == [False, False, True]
    assert [one.tie for one in found] == [False, True, False]
    assert pair_target(found).found == "1"
    assert pair_target(found[1:]).met


def test_misses_are_named() -> None:
    """A far cell with what it took in place, a long one of two nodes, and a wrong comparison."""
    far = result("far", 2, (2**10, 4.0, 1.0), (2**11, 1.0, 1.3), (2**12, 1.0, 1.0))
    part = result("part", 1, (2**12, 2.0, 1.5))
    told = replace(far, table=replace(far.table, in_place=((2**10, 2.0),)))
    text = page([told, part], [], [], [])
    assert "beyond 3x: far at 1 KiB: 0.25 (in place 0.50)." in text
    assert "above 1.25: far at 2 KiB: 1.30." in text
    assert "called faster: far" not in text
    wrong = page([far, result("part", 1, (2**12, 2.0, 0.5))], [], [], [])
    assert "called faster: far and part at 4 KiB (measured 100.0 % apart)." in wrong


H100 = "8 x nvlink4 switch 450 GB/s, infiniband 400 GB/s"


def published(name: str, library: str, off: float) -> Result:
    """A known table whose cells are all off by as much."""
    cells = [Cell(size, s, s * (1 + off), "ring", "simple", s) for size, s in tables()[name].rows]
    return Result(tables()[name], "some", library, tuple(cells))


SMALL, LARGE = SIZE_CLASSES[0][0], SIZE_CLASSES[-1][0]
DELL, P5 = "dell-xe9680-h100-8xNDR400-2x8", "aws-p5-2x8"
EFA2 = "8 x nvlink4 switch 450 GB/s, efa2 400 GB/s"


def rows_of(seen: list[Result], blind: list[Result], *unseen: HeldOut) -> BlindRows:
    return read_blind(yaml_text(seen, unseen, blind), "here")


def test_hardware_of_several_systems_has_the_rows_of_what_was_left_out_whole() -> None:
    """Not of the fit, nor of one table left out of it; any system has those of all."""
    names = (("h100-nebius-2x8", "nccl-2.30"), (DELL, "nccl-2.20"))
    seen = [published(name, library, 0.0) for name, library in names]
    blind = [
        published(name, library, off)
        for (name, library), off in zip(names, (1.0, 0.25), strict=True)
    ]
    held = HeldOut("dgx-h100", (), DELL, LARGER, 0.1, 0.9, ((2**30, 0.7),))
    found = rows_of(seen, blind, held).ends
    assert found[H100, "nccl-2.20", "all-reduce", LARGE] == (0.8, 0.8)
    assert found[H100, "nccl-2.30", "all-reduce", SMALL] == (0.5, 0.5)
    assert found[ANY, ANY, ANY, LARGE] == (0.5, 0.8)
    assert (ANY, "nccl-2.20", "all-reduce", LARGE) not in found  # one or two systems are not any
    assert (ANY, ANY, "all-reduce", LARGE) not in found


def test_hardware_of_one_system_has_what_a_table_left_out_says() -> None:
    """As much wider as systems of one hardware lie apart: here sqrt(2) times either way."""
    seen = [
        published("h100-nebius-2x8", "nccl-2.30", 1.0),
        published(DELL, "nccl-2.20", 0.0),
        published(P5, "nccl-2.30", 0.25),
    ]
    held = HeldOut("aws-p5", (), P5, LARGER, 0.1, 0.9, ((2**30, 0.5),))
    found = rows_of(seen, [published(one.table.name, one.library, 9.0) for one in seen], held).ends
    wider = 2**0.5
    assert found[EFA2, "nccl-2.30", "all-reduce", LARGE] == pytest.approx(
        (0.5 / wider, 0.5 * wider), rel=0.01
    )
    alone = rows_of(seen[2:], [published(P5, "nccl-2.30", 9.0)]).ends
    assert alone[EFA2, "nccl-2.30", "all-reduce", SMALL] == (0.8, 0.8)


def test_a_profiles_table_tells_of_its_preset_what_was_not_fitted() -> None:
    seen = published("gcp-a4-gke-2x8-all-gather", "nccl-2.30", 0.0)
    other = published("gcp-a4-2x8", "nccl-2.30", 0.0)
    blind = [published(one.table.name, one.library, 0.25) for one in (seen, other)]
    found = rows_of([seen, other], blind).ends
    roce = "8 x nvlink5 switch 900 GB/s, roce 400 GB/s"
    assert (roce, "nccl-2.30", "all-gather", LARGE) not in found
    assert found[ANY, ANY, ANY, SMALL] == (0.8, 0.8)
    assert found[roce, "nccl-2.30", "all-reduce", LARGE] == (1.0, 1.0)


@pytest.mark.exhaustive
def test_a_range_of_any_system_holds_four_of_five_of_one_that_no_row_is_of() -> None:
    """With every system left out in turn, what is said of any by the others."""
    blind = blind_results()
    held: dict[str, list[bool]] = {name: [] for name, _ in SIZE_CLASSES}
    for system in {one.table.system for one in blind}:
        mine = [one for one in blind if one.table.system == system]
        others = [one for one in blind if one.table.system != system]
        found = rows_of(others, others)
        for one in mine:
            for cell in one.cells:
                step = PricedStep(one.table.collective, cell.size_bytes, 1.0, 0, 0)
                low, high = _of_any(found, one.library, step)
                inside = min(low, 1) <= 1 / cell.ratio <= max(high, 1)
                held[size_class(cell.size_bytes)].append(inside)
    assert all(sum(one) >= 0.79 * len(one) for one in held.values())


def test_every_table_is_predicted_by_constants_that_have_not_seen_its_system() -> None:
    """Other than those of all tables; a profile's on its preset, which has not seen it."""
    blind = {one.table.name: one for one in blind_results()}
    seen = {one.table.name: one for one in accuracy.results()}
    assert list(blind) == list(seen)
    for name, one in blind.items():
        assert [cell.measured_s for cell in one.cells] == [c.measured_s for c in seen[name].cells]
        assert "@" not in one.topology
    for name in (P5, "gb200-oci-32x4", "mi300x-cx7-2x8"):
        assert blind[name].cells != seen[name].cells
    text = page([], [], [], list(blind.values()))
    assert all(f"\n| {table.system} | " in text for table in tables().values() if has_preset(table))


def test_a_table_inside_a_node_is_of_any_network() -> None:
    known = tables()
    assert system_of(known["aws-p5-1x8"]) == "8 x nvlink4 switch 450 GB/s"
    assert system_of(known["aws-p5-2x8"]) == "8 x nvlink4 switch 450 GB/s, efa2 400 GB/s"
    assert system_of(known["gb300-1x4"]) == "4 of 72 x nvlink5 switch 900 GB/s"


def test_parts_of_others() -> None:
    known = tables()
    h100, p5 = known["dell-xe9680-h100-8xNDR400-2x8"], known["aws-p5-1x8"]
    assert is_part(h100, p5)
    assert not is_part(p5, h100)
    assert not is_part(h100, known["a100-node-1x8"])
    assert not is_part(h100, known["aws-p5-2x8"])


def test_every_known_table_is_there() -> None:
    found = tables()
    assert list(found) == [one.name for one in TABLES]
    assert all(one.source and one.rows for one in found.values())
    for one in found.values():
        if has_preset(one):
            assert topology_of(one).devices >= one.ranks


def test_samples_of_a_table() -> None:
    p5 = tables()["aws-p5-1x8"]
    (first, *_) = samples_of(p5, load_topology("aws-p5:2"))
    assert (first.payload_bytes, first.seconds, first.grouping.outer) == (8, 12.9e-6, 1)
    (alone, *_) = samples_of(p5, load_topology("aws-p5:1"))
    assert (alone.grouping.outer, alone.outermost) == (0, 1)
    assert topology_name(p5) == "aws-p5:1"


def test_sizes_are_readable() -> None:
    assert [bytes_text(n) for n in (8, 2**10, 3 * 2**20, 2**34)] == [
        "8 B",
        "1 KiB",
        "3 MiB",
        "16 GiB",
    ]


@pytest.mark.exhaustive
def test_the_committed_results_hold() -> None:
    """To a hundredth where a fit is a numerical optimum."""
    found, unseen, blind = accuracy.results(), held_out(), blind_results()
    committed = json.loads(accuracy.RESULTS.read_text(encoding="utf-8"))
    computed = json.loads(json.dumps(accuracy.data(found, unseen, blind)))
    fits, again = committed.pop("held_out"), computed.pop("held_out")
    assert computed == committed
    assert len(fits) == len(again)
    for one, other in zip(fits, again, strict=True):
        assert one == {
            **other,
            "median": pytest.approx(other["median"], abs=0.01),
            "largest": one["largest"],
        }
    rows, found_rows = (
        read_blind(text, "here").ends
        for text in (ACCURACY_FILE.read_text(encoding="utf-8"), yaml_text(found, unseen, blind))
    )
    assert rows.keys() == found_rows.keys()
    for place, ends in rows.items():
        assert ends == pytest.approx(found_rows[place], rel=0.02)


def test_the_committed_rows_of_two_algorithms_are_those_of_the_tables() -> None:
    text = ACCURACY_FILE.read_text(encoding="utf-8")
    assert text.endswith(both_text(accuracy.results()))
    ways = {place[-2:] for place in read_blind(text, "here").both}
    assert ways == {("tree", "ring")}


def test_the_page_says_what_the_results_say() -> None:
    """Every prediction is computed again; tables left out are taken as committed."""
    found = accuracy.results()
    written = Path(accuracy.PAGE).read_text(encoding="utf-8")
    computed = page(found, accuracy.apart(), [], blind_results())
    parts = [part for part in computed.split("\n## ") if not part.startswith("Tables left out")]
    for part in parts:
        assert part.rstrip() in written


def test_pages_quote_the_blind_errors_of_the_results() -> None:
    """Wherever a page says how far off prices are of systems that no fit has seen."""
    root = ACCURACY_FILE.parents[2]
    results = (root / "experiments/accuracy/RESULTS.md").read_text()
    found = re.search(r"^\| all \| \d+ \|.*\| ([\d.]+ %) \| ([\d.]+ %) \|$", results, re.M)
    assert found
    for page_name in ("README.md", "docs/cost-model.md", "experiments/accuracy/README.md"):
        text = " ".join((root / page_name).read_text().split())
        assert re.search(rf"{found[1]} .{{0,30}}from 1 MiB up and {found[2]} below", text), (
            page_name
        )
