"""What a calibration measures: every collective on every grouping, on real ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2smt.cli import run
from p2smt.cluster.file import load_topology, parse_topology
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective
from p2smt.errors import InputError
from p2smt.runtime.programs.regions import moves_of
from p2smt.runtime.ranks.measure import measurement_job, points
from tests.plans.host_plans import RACKS
from tests.strategies.clusters import switches

FOUR_RANKS = """
name: two-nodes
levels:
  - {name: node, size: 2, link: {kind: switch, bandwidth: 10 GB/s, latency: 50 us}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 10 GB/s, latency: 50 us}}
"""


def topology(*sizes: int) -> Topology:
    return switches(*((f"l{n}", size, 1e9) for n, size in enumerate(sizes)))


def test_every_collective_runs_on_every_grouping() -> None:
    job = measurement_job(topology(2, 1, 4), (1024, 2048))
    assert len(job.requests) == 4 * len(Collective) * 2
    assert {request.groups for request in job.requests} == {
        (tuple(range(8)),),
        ((0, 1, 2, 3), (4, 5, 6, 7)),
        ((0, 4), (1, 5), (2, 6), (3, 7)),
        ((0, 4),),
    }
    for request in job.requests:
        moves_of(request, request.steps, 8)  # raises where a step cannot be carried out


def test_points_and_requests_go_together() -> None:
    cluster = topology(2, 2)
    for point, request in zip(
        points(cluster, (64,)), measurement_job(cluster, (64,)).requests, strict=True
    ):
        assert request.steps[0].operation is point.collective
        assert request.payload_bytes == point.payload_bytes == 64


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_calibrate_measures_real_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, written = tmp_path / "given.yaml", tmp_path / "measured.yaml"
    given.write_text(FOUR_RANKS)
    arguments = ["calibrate", "-t", str(given), "--backend", "gloo", "--ranks", "4"]
    sizes = ["--sizes", "16KiB,64KiB,256KiB,1MiB", "--repeat", "2", "-o", str(written), "--json"]
    assert run([*arguments, *sizes]) in (0, 3)  # few repetitions: the errors may be large
    data = json.loads(capsys.readouterr().out)
    (table,) = data["tables"]
    assert table["times"] == 4 * len(Collective) * 4  # groupings, collectives, sizes
    fitted = {row["name"] for row in data["constants"] if row["fitted"]}
    rows = {f"{name}{part}" for name in ("all-reduce", "broadcast") for part in ("", "-simple")}
    assert rows & fitted  # which of its rows a few repetitions settle depends on their noise
    found = load_topology(str(written))
    assert found.sizes == (2, 2)
    assert found.library_name == "gloo"
    assert found.calibrated


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_without_a_library_the_times_show_what_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, written = tmp_path / "given.yaml", tmp_path / "measured.yaml"
    given.write_text(FOUR_RANKS)
    arguments = ["calibrate", "-t", str(given), "--backend", "gloo", "--library", "none"]
    sizes = ["--sizes", "16KiB,64KiB,256KiB,1MiB", "--repeat", "2", "-o", str(written), "--json"]
    assert run([*arguments, *sizes, "--allow-above-nominal"]) in (0, 3)
    data = json.loads(capsys.readouterr().out)
    times = {
        (level["level"], found["collective"]): found["times"]
        for level in data["levels"]
        for found in level["collectives"]
    }
    assert times[("node", "all-reduce")] == 12
    assert times[("gpu", "broadcast")] == 4
    found = load_topology(str(written))
    assert {collective for collective, _ in found.overrides} == set(Collective)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backend", "gloo", "x.txt"], "measures here"),
        (["--backend", "reference"], "no links to measure"),
        (["--backend", "gloo", "--ranks", "3"], "there are 4 devices"),
        (["--backend", "gloo", "--sizes", "1MiB,x"], "sizes"),
        (["--backend", "mpy"], "must be one of"),
    ],
)
def test_bad_input(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "given.yaml"
    given.write_text(FOUR_RANKS)
    assert run(["calibrate", "-t", str(given), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_levels_with_empty_places_are_not_measured() -> None:
    cluster = parse_topology(RACKS, "test")
    with pytest.raises(InputError, match="places without a host"):
        measurement_job(cluster, (64,))
