"""`p2smt export`: every row of its table, files written whole, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cli.export_command import export
from p2smt.interop.exports import WRITERS, writer_named
from tests.cli.tools import EXIT_CODES, assert_one_error, cli
from tests.interop.launchers.plans import plan_data, topology, unnamed, written_plan
from tests.interop.launchers.trainings import nodes, training_data
from tests.strategies.json_values import json_values

LAUNCHERS = ("csv", "hostlist", "rankfile", "slurm", "torchrun")


@pytest.fixture
def file(tmp_path: Path, plan: dict[str, Any]) -> str:
    """A plan file on two nodes of four devices."""
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    return str(path)


def test_rows_have_names_of_their_own_and_help_has_them() -> None:
    names = [writer.name for writer in WRITERS]
    assert len(set(names)) == len(names)
    assert set(LAUNCHERS) <= set(names)
    for name in names:
        assert writer_named(name).name == name
    assert all(name in cli("export", "--help").out for name in LAUNCHERS)
    assert export.__doc__


@pytest.mark.parametrize("name", LAUNCHERS)
def test_stdout_or_a_file(name: str, file: str, tmp_path: Path) -> None:
    extra = ["--by-host"] if name == "torchrun" else []
    out = cli("export", file, "--to", name, *extra)
    path = tmp_path / "out"
    assert (out.code, out.out[-1:]) == (0, "\n"), out.err
    written = cli("export", file, "--to", name, "-o", str(path), *extra)
    assert (written.code, written.out) == (0, "")
    assert path.read_text() == out.out
    assert all(line.startswith("note: ") for line in written.err.splitlines())
    assert name == "csv" or str(path) in written.err


def test_a_table_names_the_hosts_that_are_given(file: str, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("b,a\n")
    out = cli("export", file, "--to", "csv", "--hosts", str(hosts)).out
    assert {line.split(",")[1] for line in out.splitlines()[1:]} == {"a", "b"}
    halves = cli("export", file, "--to", "csv", "--devices-per-host", "2").out
    assert {line.split(",")[1] for line in halves.splitlines()[1:]} == {
        *("node0", "node1", "node2", "node3")
    }


def test_a_rack_is_no_machine(tmp_path: Path) -> None:
    data = plan_data(unnamed(2, (72,)), {"dp": 144}, range(144))
    path = tmp_path / "rack.json"
    path.write_text(json.dumps(data))
    said = "give --devices-per-host (4 for trays of NVL72)"
    assert said in cli("export", str(path), "--to", "slurm").err
    assert said not in cli("export", str(path), "--to", "slurm", "--devices-per-host", "4").err
    assert said not in cli("export", str(path), "--to", "device-mesh").err
    racks = nodes(2).replace("name: gpu, size: 2", "name: gpu, size: 32")
    path.write_text(json.dumps(training_data("pp=8,dp=8", racks)))
    assert said in cli("export", str(path), "--to", "sbatch").err
    assert said not in cli("export", str(path), "--to", "sbatch", "--devices-per-host", "4").err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{plan}", "--to", "slrum"], "did you mean 'slurm'?"),
        (["{plan}"], "--to"),
        (["none.json", "--to", "csv"], "does not exist"),
        (["{folder}", "--to", "csv"], "is not a regular file"),
        (["{hosts}", "--to", "csv"], "is not JSON"),
        (["{empty}", "--to", "csv"], "is no plan"),
        (["{schedule}", "--to", "csv"], "is not JSON"),
        (["{plan}", "--to", "csv", "--hosts", "{hosts}"], "names 3: plan"),
        (["{plan}", "--to", "csv", "--hosts", "{empty}"], "characters that no host has"),
        (["{plan}", "--to", "csv", "--hosts", "none"], "--hosts names 1: plan"),
        (["{plan}", "--to", "csv", "--hosts", "{folder}/none"], "No such file"),
        (["{plan}", "--to", "csv", "--devices-per-host", "3"], "which they must divide"),
        (["{plan}", "--to", "csv", "--devices-per-host", "x"], "--devices-per-host"),
        (["{plan}", "--to", "csv", "-o", "{plan}"], "is a file that is read"),
        (["{plan}", "--to", "csv", "--hosts", "{hosts}", "-o", "{hosts}"], "is a file that is"),
        (["{plan}", "--to", "csv", "-o", "{folder}/none/f"], "cannot be written"),
        (["{plan}", "--to", "csv", "--to", "slurm"], "takes one value"),
        (["{plan}", "--to", "torchrun"], "are not one block of consecutive ranks"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, file: str, tmp_path: Path
) -> None:
    names = {"plan": file, "folder": str(tmp_path)}
    contents = {"hosts": "a\nb\nc\n", "empty": "{}", "schedule": "<algo/>"}
    for name, text in contents.items():
        names[name] = str(tmp_path / name)
        (tmp_path / name).write_text(text)
    before = {path: path.read_text() for path in tmp_path.iterdir()}
    outcome = cli("export", *(word.format(**names) for word in arguments))
    assert_one_error(outcome)
    assert message in outcome.err
    assert {path: path.read_text() for path in tmp_path.iterdir()} == before


MUTATIONS = st.tuples(
    st.sampled_from(["ranks", "matrix", "axes", "topology", "schema_version", "requests"]),
    json_values(),
)


@given(MUTATIONS, st.sampled_from(LAUNCHERS))
def test_any_plan_is_exported_or_refused_in_a_line(
    tmp_path_factory: pytest.TempPathFactory,
    plan: dict[str, Any],
    change: tuple[str, object],
    name: str,
) -> None:
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    path.write_text(json.dumps({**plan, change[0]: change[1]}))
    outcome = cli("export", str(path), "--to", name)
    assert outcome.code in EXIT_CODES
    if outcome.code:
        assert_one_error(outcome)


def test_a_job_must_have_the_hosts_of_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By $SLURM_JOB_NODELIST, for what starts ranks, unless --hosts says otherwise."""
    path = written_plan(tmp_path / "plan.json", topology((("n1", "n3"), ("n2",)), (2,)), range(6))
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2,4]")
    refused = cli("export", path, "--to", "csv")
    assert_one_error(refused)
    assert "has ranks on n3, which the job lacks; p2smt order" in refused.err
    for hosts in ("all", "n[1-5]"):
        done = cli("export", path, "--to", "csv", "--hosts", hosts)
        assert {line.split(",")[1] for line in done.out.splitlines()[1:]} == {"n1", "n2", "n3"}
    assert cli("export", path, "--to", "device-mesh").code == 0
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-3]")
    assert cli("export", path, "--to", "csv").code == 0
