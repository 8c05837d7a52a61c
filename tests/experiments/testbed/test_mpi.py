"""Ranks of MPI across network namespaces: right programs, tables that are read, a page of data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.mpi_on_testbed import predicted, study, table, winners
from experiments.mpi_on_testbed.mpis import TITLES, ran
from experiments.testbed.model import topology_yaml
from experiments.testbed.network import cluster, why_not
from experiments.testbed.spec import regular
from p2smt.collectives.names import Collective
from p2smt.interop.osu import parse_osu
from tests.runtime.ranks.mpis import Mpi, mpi

__all__ = ["mpi"]


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_ranks_of_nodes_run_right_and_print_tables(
    tmp_path: Path, mpi: Mpi, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := why_not():
        pytest.skip(reason)
    monkeypatch.setattr(study, "PROGRAM_SIZES", ("4KiB",))
    spec, nodes = regular(study.NODES, study.UPLINK_BYTES_PER_S), tmp_path / "nodes.yaml"
    nodes.write_text(topology_yaml(spec, study.PER_NODE))
    words = ("-m", "experiments.mpi_on_testbed.osu", "allgather", "64,512", "--iterations", "2")
    with cluster(spec):
        told = ran(mpi.name, spec, study.PER_NODE, words)
        (run,) = study.program_beside(mpi.name, spec, nodes)
    ((operation, found),) = parse_osu(told, "printed")
    assert operation is Collective.ALL_GATHER
    assert [timing.size_bytes for timing in found.timings] == [64, 512]
    assert (run["payload_bytes"], run["verified"]) == (4096, True)


def test_the_pages_have_the_tables_of_the_committed_results() -> None:
    for path, text in table.pages(table.results()).items():
        assert path.read_text(encoding="utf-8") == text, (
            "run: python -m experiments.mpi_on_testbed.table"
        )


def test_a_cell_is_median_least_and_most() -> None:
    assert table.spread([0.5, 0.0021, 0.1]) == "100 [2.1-500]"
    runs = [{"payload_bytes": 2**20, "samples_s": [1.0, 2.0, 3.0], "baseline_samples_s": [4.0]}]
    (row,) = table.program_rows("X", runs)
    assert row == "| X | 1 MiB | 4000 [4000-4000] | 2000 [1000-3000] | 2.00x |"


@pytest.mark.parametrize("name", ["results.json", "files.json"])
def test_every_run_of_the_study_is_verified_and_whole(name: str) -> None:
    data: dict[str, Any] = json.loads((table.HERE / name).read_text(encoding="utf-8"))
    assert all(run["verified"] for runs in data["programs"].values() for run in runs)
    counts = [
        len(samples)
        for arms in data["collectives"].values()
        for arm in arms.values()
        for rows in arm.values()
        for samples in rows.values()
    ]
    assert min(counts) >= data["rounds"]


def test_what_a_file_changes_is_told_beyond_the_spreads_alone() -> None:
    own = [1.0, 2.0]
    told = {
        "faster": table.FileCell("X", "all-reduce", 2**20, own, [0.8, 0.9]),
        "slower": table.FileCell("X", "all-reduce", 2**20, own, [2.1, 3.0]),
        "no difference": table.FileCell("X", "all-reduce", 2**20, own, [0.5, 1.5]),
    }
    for word, cell in told.items():
        assert cell.row.endswith(f"| {word} |")


# Which algorithm is fastest, and which is said to be.


SIZES = (2**18, 2**20, 2**22)


@pytest.mark.slow
def test_times_that_the_model_made_are_predicted_by_it() -> None:
    times: dict[str, dict[str, dict[str, list[float]]]] = {name: {} for name in TITLES}
    for name, by_algorithm in times.items():
        for size in SIZES:
            priced = predicted.prices(predicted.nominal("mpich"), "mpich", name, size)
            for way, seconds in priced.items():
                by_algorithm.setdefault(way, {})[str(size)] = [seconds]
    names = {"mpich": predicted.predictions("mpich", times)}
    found = list(predicted.cells({"times": {"mpich": times}, "predicted": names}))
    assert len(found) == len(TITLES) * len(SIZES)
    assert predicted.mean_regret(found) < 1e-6


def test_a_prediction_is_right_where_its_times_and_the_fastest_ones_overlap() -> None:
    cell = predicted.Cell("openmpi", "allreduce", 2**20, "ring", "linear", [1.0, 2.0], [2.0, 4.0])
    assert cell.right
    assert cell.regret == pytest.approx(1.0)
    assert not replace(cell, predicted_s=[2.1, 4.0]).right
    cells = [cell, replace(cell, predicted_s=[3.0])]
    assert table.winner_sentence(cells).startswith("Of all 2 cells 1 are right (50 %); what is")


def test_the_committed_times_are_whole() -> None:
    data: dict[str, Any] = table.results("winners.json")
    assert {
        (mpi, collective, way)
        for mpi, of in data["times"].items()
        for collective, by in of.items()
        for way in by
    } == set(winners.arms())
    counts = [
        len(samples)
        for of in data["times"].values()
        for by in of.values()
        for by_size in by.values()
        for samples in by_size.values()
    ]
    assert min(counts) >= data["rounds"]
