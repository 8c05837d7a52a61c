"""A library that a topology file names by its file: what is read, embedded and refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from p2smt.cluster.file import dump_topology, load_topology, parse_topology, topology_from_data
from p2smt.cluster.library.file import packaged_text, read_library
from p2smt.cluster.library.model import ADDED, Library
from p2smt.cluster.library.registry import library_of, register_library
from p2smt.cluster.topology import Topology
from p2smt.files.yaml_text import dump_yaml
from tests.cli.tools import TINY, assert_one_error, cli
from tests.refusals import refusal
from tests.schemas.tools import complaints

OWN = packaged_text("rccl").replace("name: rccl", "name: own-rccl")
SCENE = ("--axes", "dp=2,tp=4", "--reduce", "tp=1GiB")
PLACED = ("--axes", "dp=2,tp=4", "--placement", "[[1,2],[2,2]]", "--reduce", "tp=1GiB")


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A topology in a folder of its own that names a library in the one above."""
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "clusters").mkdir()
    path = tmp_path / "clusters" / "tiny.yaml"
    path.write_text(naming("../own.yaml"))
    return path


def naming(library: str) -> str:
    return TINY.replace("library: none\nalgorithms: [ring]\n", f"library: {library}\n")


def own_of(topology: Topology) -> Library:
    return topology.known_library


def test_a_file_is_looked_for_from_the_topology_on(
    named: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = own_of(load_topology(str(named)))
    assert found == read_library(str(named.parents[1] / "own.yaml"))
    assert found.name == "own-rccl"
    assert own_of(load_topology(f"{named}:4")) == found
    monkeypatch.chdir(named.parent)
    assert own_of(load_topology("tiny.yaml")) == found
    named.write_text(naming(str(named.parents[1] / "own.yaml")))
    assert own_of(load_topology("tiny.yaml")) == found


def test_topologies_know_their_own_library_alone(named: Path) -> None:
    """Two of one name do not mix: a file that was changed is read anew."""
    first = load_topology(str(named))
    (named.parents[1] / "own.yaml").write_text(OWN.replace("in_flight: 8", "in_flight: 4"))
    second = load_topology(str(named))
    assert (own_of(first).in_flight, own_of(second).in_flight) == (8, 4)
    assert ADDED.libraries == {}


def test_what_is_written_has_all_of_it(named: Path) -> None:
    topology = load_topology(str(named))
    data = dump_topology(topology)
    shutil.rmtree(named.parent)
    (named.parents[1] / "own.yaml").unlink()
    for again in (
        topology_from_data(json.loads(json.dumps(data)), "plan"),
        parse_topology(dump_yaml(data), "written"),
    ):
        assert again == topology
        assert own_of(again) == own_of(topology)
        assert json.dumps(dump_topology(again)) == json.dumps(data)
    assert complaints("topology", data) == []


def test_a_name_that_all_know_stays_a_name(named: Path) -> None:
    (named.parents[1] / "own.yaml").write_text(packaged_text("rccl"))
    assert dump_topology(load_topology(str(named)))["library"] == "rccl"


def test_what_a_program_registered_is_written_too(named: Path) -> None:
    register_library(read_library(str(named.parents[1] / "own.yaml")))
    topology = load_topology("dgx-a100").under("own-rccl")
    data = dump_topology(topology)
    ADDED.libraries.clear()
    assert topology_from_data(data, "plan") == topology


def test_a_mapping_of_collectives_is_still_what_overrides_are() -> None:
    found = parse_topology(TINY.replace("library: none", "library: {broadcast: binomial}"), "old")
    assert (found.library, len(found.overrides)) == (None, 1)


def test_plans_and_answers_stand_alone(named: Path, tmp_path: Path) -> None:
    """A plan that was moved is verified, priced and shown without the files it was made from."""
    plan, answers = tmp_path / "plan.json", tmp_path / "moved"
    assert cli("solve", "-t", str(named), *SCENE, "-o", str(plan)).code == 0
    price = cli("cost", "-t", str(named), *PLACED, "--json").json()["seconds"]
    for same in (str(tmp_path / "own.yaml"), "rccl"):
        found = cli("cost", "-t", str(named), *PLACED, "--library", same, "--json").json()
        assert found["seconds"] == price
    ADDED.libraries.clear()
    shutil.rmtree(named.parent)
    (tmp_path / "own.yaml").unlink()
    answers.mkdir()
    moved = str(shutil.move(plan, answers / "plan.json"))
    assert complaints("plan", json.loads(Path(moved).read_text())) == []
    assert cli("verify", moved, "--json").json()["verdict"] == "valid"
    assert cli("cost", moved).code == 0
    assert cli("report", moved, "-o", str(answers / "page.html")).code == 0
    assert cli("export", moved, "--to", "python", "-o", str(answers / "run.py")).code == 0
    data: dict[str, Any] = json.loads(Path(moved).read_text())
    assert data["topology"]["library"]["name"] == "own-rccl"
    data["topology"]["library"]["in_flight"] = 0
    Path(moved).write_text(json.dumps(data))
    outcome = cli("verify", moved)
    assert_one_error(outcome)
    assert "topology.library: own-rccl: in_flight" in outcome.err


def test_a_search_by_processes_knows_it(named: Path, tmp_path: Path) -> None:
    more = ("--processes", "1", "--journal", str(tmp_path / "journal"), "--json")
    split = cli("solve", "-t", str(named), *SCENE, *more).json()
    assert (
        split["objective_s"]
        == cli("solve", "-t", str(named), *SCENE, "--json").json()["objective_s"]
    )
    assert cli("verify", str(tmp_path / "journal")).code == 0


@pytest.mark.parametrize(
    ("library", "message"),
    [
        ("absent.yaml", "library: library file '{0}/absent.yaml': cannot be read"),
        ("tiny.yaml", "library: {0}/tiny.yaml: is no library: it is YAML with the keys name"),
        ("./", "library: library file '{0}/./': is a directory"),
        ("own", "library 'own': is not known; the libraries are"),
        ("../gloo.yaml", "library: library gloo: another library has this name; rename yours"),
        ("../half.yaml", "library: {0}/../half.yaml: calls.send: is missing"),
        ("{name: own, runs: {}}", "library: own: vendor: this key is missing"),
        ("[own.yaml]", "must be the name of a library, its file or all of it"),
    ],
)
def test_what_is_no_library_is_one_line(named: Path, library: str, message: str) -> None:
    folder = named.parents[1]
    (folder / "gloo.yaml").write_text(OWN.replace("own-rccl", "gloo"))
    (folder / "half.yaml").write_text(
        packaged_text("gloo").replace("name: gloo", "name: half").replace("  send: 50 us\n", "")
    )
    named.write_text(naming(library))
    said = refusal(load_topology, str(named))
    assert message.format(named.parent) in said
    outcome = cli("topology", "check", str(named))
    assert_one_error(outcome)


def test_data_without_a_folder_name_no_file(named: Path) -> None:
    data = dump_topology(load_topology(str(named))) | {"library": "own.yaml"}
    assert "names a file, and only a topology file has a folder" in refusal(
        topology_from_data, data, "plan"
    )
    assert own_of(topology_from_data(data | {"library": "gloo"}, "plan")) == library_of("gloo")
