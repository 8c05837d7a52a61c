"""The study of redistributions: its page says what its data says; its cases are planned again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiments.redistribution import page, summary
from experiments.redistribution.cases import THREE_AXES, Case, groups
from experiments.redistribution.clusters import LIBRARY, NOMINAL, cluster_of, topology_of
from experiments.redistribution.study import committed, main, shardy_functions
from experiments.testbed.written import results as written
from p2smt.errors import InputError
from p2smt.interop.arrays.peers.compare_peers import read_shardy
from p2smt.resharding.types import mesh_text, parse_layout, parse_mesh

MLIR = Path(__file__).parents[1] / "interop/arrays/peers/resharding.mlir"
SHARDY = read_shardy(MLIR.read_text(), MLIR.name).cases
DATA = committed()
CASES: list[dict[str, Any]] = DATA["cases"]


def key(case: Case) -> tuple[str, ...]:
    return (case.group, case.name, case.cluster, mesh_text(case.source.mesh))


def test_the_page_is_that_of_the_results() -> None:
    wanted = page.page(DATA)
    assert page.PAGE.read_text() == wanted, "run: python -m experiments.redistribution.page"


def test_the_page_of_times_is_that_of_the_results() -> None:
    pytest.importorskip("torch")
    from experiments.redistribution import measured

    found = measured.page(written.read(measured.RESULTS))
    assert measured.PAGE.read_text(encoding="utf-8") == found


def test_every_case_of_the_script_has_its_row() -> None:
    rows = Counter(one["group"] for one in CASES)
    made = groups(())
    assert {group: rows[group] for group in made} == {g: len(found) for g, found in made.items()}
    keys = [(one["group"], one["name"], one["cluster"], one["mesh"]) for one in CASES]
    assert [key(case) for found in made.values() for case in found] == [
        one for one in keys if not one[0].startswith("shardy")
    ]
    assert len(set(keys)) == len(keys)


def test_the_135_pairs_and_the_three_axes() -> None:
    made = groups(())
    assert len(made["dtensor 4x8"]) == len(made["dtensor 8x8"]) == 135
    assert len(made["dtensor 2x2x8"]) == len(THREE_AXES) + 20
    for case in made["random"]:
        assert case.source.layout != case.target.layout
        assert topology_of(case.cluster, NOMINAL).devices == case.source.mesh.size


@pytest.mark.exhaustive
def test_numbers_of_a_row_hold_together() -> None:
    for one in CASES:
        mesh = parse_mesh(one["mesh"])
        ends = [parse_layout(one[end], mesh) for end in ("from", "to")]
        assert [len(end.dims) for end in ends] == [len(one["shape"])] * 2
        assert topology_of(one["cluster"], NOMINAL).devices == mesh.size
        for plan in one["plans"].values():
            assert plan["physical_bound_s"] <= plan["objective_s"] * (1 + 1e-5)
            assert plan["bound_s"] <= plan["objective_s"] * (1 + 1e-5)
            assert plan["peak_bytes"] <= plan["cap_bytes"]
            if plan["status"] == "optimal":
                assert plan["bound_s"] == pytest.approx(plan["objective_s"], rel=1e-5)
            for peer in plan["peers"].values():
                over = peer.get("peak_bytes", 0) > plan["cap_bytes"]
                assert over == peer.get("over_cap", False)


def test_a_proved_plan_is_never_slower_than_a_peers_under_the_cap() -> None:
    for prices in (NOMINAL, LIBRARY):
        for group in summary.groups_of(CASES):
            for rows in summary.beside(CASES, group, prices).values():
                for row in rows:
                    free = row.plan["status"] == "optimal" and row.plan["max_steps"] is None
                    if free and not row.peer.get("over_cap"):
                        assert row.verdict != "worse"


def test_verdicts_and_ratios() -> None:
    plan: dict[str, Any] = {"objective_s": 2.0, "cap_bytes": 10, "steps": ["x"]}
    faster = summary.Beside({}, plan, {"seconds": 1.0, "peak_bytes": 40, "over_cap": True})
    assert (faster.ratio, faster.verdict, faster.over) == (0.5, "worse", 4.0)
    slower = summary.Beside({}, plan, {"seconds": 8.0, "peak_bytes": 8})
    assert (slower.ratio, slower.verdict, slower.over) == (4.0, "better", 0.0)
    same = summary.Beside({}, plan, {"seconds": 2.0, "peak_bytes": 8})
    assert same.verdict == "equal"
    none = summary.Beside({}, plan, {"note": "why"})
    assert (none.ratio, none.verdict) == (None, "outside")
    assert summary.geometric([faster, slower, none]) == pytest.approx(2**0.5)


def test_cases_of_a_shardy_file() -> None:
    made = groups(SHARDY)
    names = [case.name for case in made["shardy azure-ndv4"]]
    assert names == ["sub_axes", "other_order", "from_replicated", "wrong_end"]
    for case in made["shardy dgx-h100"]:
        assert 200 * 2**20 < case.source.global_bytes < 330 * 2**20
        assert not any(size % case.source.mesh.size for size in case.source.shape)
    assert cluster_of("azure-ndv4", 8) == "azure-ndv4:2 gpu=4"
    assert cluster_of("azure-ndv4", 6) == "azure-ndv4:2 gpu=3"
    assert cluster_of("dgx-h100", 64) == "dgx-h100:8"


def test_arguments() -> None:
    given = ["--shardy", str(MLIR), "random"]
    assert len(shardy_functions(given)) == len(SHARDY)
    assert given == ["random"]
    with pytest.raises(InputError, match="needs a file"):
        shardy_functions(["--shardy"])
    with pytest.raises(InputError, match="are none of dtensor"):
        main(["nothing"])
    with pytest.raises(InputError, match="1 arguments: none is expected"):
        page.main(["x"])


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("every", "start"),
    [(9, 0), *(pytest.param(3, start, marks=pytest.mark.evidence) for start in range(3))],
)
@pytest.mark.parametrize("group", ["dtensor 2x2x8", "random"])
def test_committed_plans_hold(group: str, every: int, start: int) -> None:
    pytest.importorskip("torch")
    from experiments.redistribution.planned import entry

    rows = {one["name"]: one for one in CASES if one["group"] == group}
    for case in groups(())[group][start::every]:
        found, wanted = entry(case), rows[case.name]
        for prices, plan in found["plans"].items():
            known = wanted["plans"][prices]
            if plan["max_steps"] is known["max_steps"] is None:
                assert plan["objective_s"] == pytest.approx(known["objective_s"], rel=1e-5)
            assert plan["peers"] == known["peers"]
