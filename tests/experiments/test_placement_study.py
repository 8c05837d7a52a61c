"""The placement study: a part is computed again and must equal the committed results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.placement_448x.cases import Case, cases, matrices, splits
from experiments.placement_448x.model import beyond, exact
from experiments.placement_448x.model.iterations import ITERATIONS, iteration_data
from experiments.placement_448x.model.solving import LIBRARY, RING
from experiments.placement_448x.model.study import paper_bytes, study
from experiments.placement_448x.model.summary import by_name, gains, ratios
from experiments.placement_448x.model.systems import SYSTEMS, system
from experiments.placement_448x.report.values import EFFECTIVE
from experiments.testbed.written.results import read, write
from tests.oracles.placements import all_matrices


def as_json(value: Any) -> Any:
    """What becomes of a value that is written and read."""
    return json.loads(json.dumps(value))


def named(found: dict[str, Any]) -> list[list[Any]]:
    """The runs with the programs by name instead of number."""
    program, pipelined = (found["run_columns"].index(n) for n in ("program", "pipelined_program"))
    rows = [list(row) for row in found["runs"]]
    for row in rows:
        row[program], row[pipelined] = (found["programs"][row[i]] for i in (program, pipelined))
    return rows


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "payloads"),
    [
        ("paper-gcp-a100-2", (2**20, 2**32)),
        ("paper-gcp-v100-2", (2**30,)),
        pytest.param("paper-gcp-a100-4", (), marks=pytest.mark.exhaustive),
        pytest.param("paper-gcp-v100-4", (), marks=pytest.mark.exhaustive),
        pytest.param("dgx1-v100-4", (2**20,), marks=pytest.mark.exhaustive),
    ],
)
def test_the_committed_results_hold(name: str, payloads: tuple[int, ...]) -> None:
    committed, found = by_name(name).data, as_json(study(system(name), payloads)[0])
    for part in ("system", "cases", "scenes"):
        assert found[part] == committed[part]
    wanted = set(payloads) or {row[1] for row in committed["runs"]}
    assert named(found) == [row for row in named(dict(committed)) if row[1] in wanted]
    if not payloads or found["system"]["paper_payload_bytes"] in payloads:
        assert found["programs_per_scene"] == committed["programs_per_scene"]


def test_the_committed_ratios_hold() -> None:
    committed = read(exact.RESULTS)
    for way, name in exact.NAMES.items():
        assert as_json(exact.result(name)) == committed[way]
    assert committed["effective"]["ratio"] > exact.PAPER > committed["nominal"]["ratio"]


def test_the_committed_iterations_hold() -> None:
    committed = read(beyond.RESULTS)
    for one in (0, 3):
        assert as_json(iteration_data(ITERATIONS[one])) == committed["iterations"][one]
    results = by_name("paper-gcp-a100-4")
    for part, function in (("multi_axis", beyond.multi_axis), ("together", beyond.together)):
        (entry,) = (e for e in committed[part] if e["system"] == results.label)
        assert as_json(function(results)) == entry


def test_every_system_was_studied() -> None:
    for one in SYSTEMS:
        data = by_name(one.name).data
        topology = one.topology()
        assert data["system"]["levels"] == dict(zip(topology.names, topology.sizes, strict=True))
        assert data["system"]["paper_payload_bytes"] == paper_bytes(topology)


def test_splits_and_cases() -> None:
    assert list(splits(8, 2)) == [(2, 4), (4, 2)]
    assert list(splits(8, 3)) == [(2, 2, 2)]
    assert list(splits(1, 1)) == []
    found = list(cases(4))
    assert found == [
        Case((4,), (0,)),
        Case((2, 2), (0,)),
        Case((2, 2), (1,)),
        Case((2, 2), (0, 1)),
    ]
    assert str(found[3]) == "(2),(2)"


def test_every_placement_is_there() -> None:
    assert set(matrices((4, 4), (2, 8))) == set(all_matrices((4, 4), (2, 8)))


def test_the_paper_s_case() -> None:
    """Axes 4 and 16 on 4 nodes of 16: inside a node against across all nodes.

    Which of them is better, and that their ratio nears 16 groups on a card times the links' ratio,
    whatever the links are; their bandwidths are guesses.
    """
    for name in exact.NAMES.values():
        results = by_name(name)
        links = results.data["system"]["bytes_per_s"]
        limit = 16 * links["gpu"] / links["node"]
        for way in (RING, LIBRARY):
            found = {one.case: one for one in ratios(results.outcomes(0, way))}
            case = found[Case((4, 16), (0,))]
            assert case.best.matrix == ((1, 4), (4, 4))
            assert case.worst.matrix == ((4, 1), (1, 16))
            assert 0.99 * limit < case.ratio < limit


def test_on_two_nodes_only_rings_leave_something_to_gain() -> None:
    """A double tree sends over two nodes' cards what every program must."""
    for name, most in (("paper-gcp-a100-2", 1.02), ("paper-gcp-a100-4", 4 / 3)):
        assert gains(by_name(name).outcomes(0, LIBRARY)).largest < most
    rings = gains(by_name("paper-gcp-a100-2").outcomes(0, RING))
    assert 1.5 < rings.largest < 2 * 31 / 32


def test_no_program_gains_more_than_the_ring_limit() -> None:
    """For large payloads, where latencies are small beside the rest."""
    for name in EFFECTIVE:
        for one in by_name(name).outcomes(0, "ring"):
            assert one.pipelined_speedup <= one.ring_limit * 1.001
            assert one.bound_s <= one.pipelined_s * (1 + 1e-8)
            assert one.pipelined_s <= one.best_s <= one.default_s


def test_gains_of_nothing() -> None:
    assert gains([]).share == 0
    assert gains([]).mean == 1


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    data = {"header": {"a": 1}, "rows": [[1, 2.5, "x"], [2, 3.5, "y"]], "none": [], "text": "t"}
    write(tmp_path / "data.json", data)
    assert read(tmp_path / "data.json") == data
    assert len((tmp_path / "data.json").read_text().splitlines()) == 9
