"""The test cluster of experiments/testbed where nothing is built: bad input, its topology."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.testbed import ownership, system
from experiments.testbed.calibration import cluster_topology
from experiments.testbed.model import topology, topology_yaml
from experiments.testbed.network import why_not
from experiments.testbed.ownership import clean, namespaces
from experiments.testbed.ranks import cluster_data
from experiments.testbed.spec import NetworkSpec, nodes_of, parse_rate, regular
from experiments.testbed.testbed import main
from p2smt.cluster.file import load_topology, parse_topology
from p2smt.cluster.library.registry import library_of
from p2smt.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
GOOD = ("--nodes", "2", "--rate", "200mbit")
NOBODY = 65534


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """The one line of an error, without what every such line begins with."""
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("testbed: error: ")
    return err.removeprefix("testbed: error: ").strip()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the following arguments are required: --nodes, --rate"),
        (("--nodes", "2"), "the following arguments are required: --rate"),
        ((*GOOD, "--speed", "9"), "unrecognized arguments: --speed 9"),
        (("clean", "all"), "the following arguments are required"),
        (("--nodes", "1", "--rate", "200mbit"), "1 racks of 1 nodes: a cluster has 2 to 64"),
        (("--nodes", "65", "--rate", "200mbit"), "1 racks of 65 nodes: a cluster has 2 to 64"),
        (("--nodes", "two", "--rate", "200mbit"), "--nodes 'two': is not a whole number"),
        (("--nodes", "2", "--rate", "200"), "--rate '200': is not a non-negative decimal"),
        (("--nodes", "2", "--rate", "9kbit"), "uplink rate 0.009 Mbit/s: must be from 1 Mbit/s"),
        (("--nodes", "2", "--rate", "101gbit"), "uplink rate 101000 Mbit/s: must be from 1"),
        ((*GOOD, "--racks", "2"), "2 racks without a rack rate: two or more racks, and only they"),
        ((*GOOD, "--rack-rate", "9mbit"), "1 racks with a rack rate: two or more racks, and only"),
        ((*GOOD, "--racks", "2", "--rack-rate", "9kbit"), "rack rate 0.009 Mbit/s: must be from"),
        (("--nodes", "3+0", "--rate", "9mbit"), "--nodes '0': is not a whole number"),
        (("--nodes", "3+", "--rate", "9mbit"), "--nodes '': is not a whole number"),
        (("--nodes", "3+2", "--rate", "9mbit"), "2 racks without a rack rate: two or more racks"),
        (
            ("--nodes", "60+5", "--rate", "9mbit", "--rack-rate", "9mbit"),
            "2 racks of 60+5 nodes: a cluster has 2 to 64 nodes in all",
        ),
        (
            ("--nodes", "3+2", "--racks", "2", "--rate", "9mbit"),
            "--nodes 3+2: has the nodes of each rack, so it says how many racks there are",
        ),
        ((*GOOD, "--racks", "65"), "--racks '65': is not a whole number from 1 to 64"),
        ((*GOOD, "--hosts", "a"), "1 hosts: the cluster has 2 nodes"),
        ((*GOOD, "--hosts", "a,a"), "hosts a, a: two have one name"),
        ((*GOOD, "--hosts", "a,"), "host list 'a,': has an empty name"),
        ((*GOOD, "--hosts", "a,b/c"), "host list 'a,b/c':"),
        ((*GOOD, "--name", "A/b"), "cluster name 'A/b': must be 1 to 12 lower-case letters"),
        ((*GOOD, "--ranks-per-node", "0"), "--ranks-per-node '0': is not a whole number"),
        ((*GOOD, "--topology-out", "/no/such"), "--topology-out /no/such: cannot be written"),
        ((*GOOD, "--"), "--: must be followed by a command"),
        ((*GOOD, "--", "no-such-command"), "command 'no-such-command': is not a command"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert message in refused(capsys, *arguments)


@pytest.mark.parametrize("text", ["200mbit", "0.2gbit", "200 Mb/s", "25 MB/s", "200000kbit"])
def test_rates_are_written_as_tc_or_p2smt_write_them(text: str) -> None:
    assert parse_rate(text, "rate") == 25e6


def test_others_than_root_are_told() -> None:
    """A process that loads all it needs first, since others may not be able to read this Python."""
    code = (
        "import os, sys\n"
        "from experiments.testbed.network import why_not\n"
        "from experiments.testbed.testbed import main\n"
        "from p2smt.cluster.library.registry import library_of\n"
        "library_of('gloo')\n"
        f"if os.geteuid() == 0: os.setuid({NOBODY})\n"
        "print(main(sys.argv[1:]), main(['clean']), why_not())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *GOOD], cwd=ROOT, capture_output=True, text=True, check=True
    )
    user_id = os.geteuid() or NOBODY
    line = f"user id {user_id}: building network namespaces needs root; "
    line += "run it as root, for instance by sudo"
    assert done.stderr == f"testbed: error: {line}\n" * 2
    assert done.stdout == f"2 2 {line}\n"


def test_missing_tools_have_a_code_of_their_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "/no/such")
    line = refused(capsys, *GOOD, code=5)
    assert line.startswith("ip: is not found")
    assert line.endswith("install iproute2 (Debian, Ubuntu: apt install iproute2)")
    assert why_not() == line


@pytest.mark.parametrize(
    ("tool", "part", "feature"),
    [
        ("ip", "netns add", "network namespaces"),
        ("ip", "type bridge", "bridges (module bridge)"),
        ("ip", "type veth", "veth pairs (module veth)"),
        ("tc", "tbf", "token bucket filters (module sch_tbf)"),
    ],
)
def test_a_kernel_that_lacks_something_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, part: str, feature: str
) -> None:
    """With stand-ins for ``ip`` and ``tc``: they do nothing, and one refuses one thing."""
    script = (
        f"#!/bin/sh\ncase \"$0 $*\" in *'/{tool} '*'{part}'*) echo 'Error: no' >&2; exit 2;; esac\n"
    )
    for name in system.TOOLS:
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(ownership, "LOCKS", tmp_path)
    said = why_not()
    assert said is not None
    assert f"the kernel or container does not allow {feature} (Error: no); run it as" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ip", "tc"]


def test_clean_looks_at_its_own_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "LOCKS", tmp_path)
    monkeypatch.setattr(ownership, "NAMESPACES", tmp_path / "none")
    monkeypatch.setattr(ownership, "HOST_NAMES", tmp_path / "none")
    for name in ("p2smt-testbed-old.lock", "p2smt-testbed-Not_ours.lock", "other.lock"):
        (tmp_path / name).touch()
    with ownership.held("new"):
        assert clean() == (["old"], ["new"])
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "other.lock",
        "p2smt-testbed-Not_ours.lock",
    ]


def test_names_that_only_look_like_ours_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "NAMESPACES", tmp_path)
    ours = ["p2smt-a-core", "p2smt-a-node0", "p2smt-a-probe", "p2smt-a-rack12"]
    for name in (*ours, "p2smt-ab-core", "p2smt-a-node", "p2smt-a-node0-x", "a-node0", "p2smt-a"):
        (tmp_path / name).touch()
    assert namespaces("a") == ours


def test_nodes_know_their_rack_and_network() -> None:
    spec = regular(2, 25e6, racks=2, rack_bytes_per_s=10e6, name="x")
    nodes = nodes_of(spec)
    assert [(n.rank, n.rack, n.address) for n in nodes[1:3]] == [
        (1, 0, "10.77.0.2"),
        (2, 1, "10.77.0.3"),
    ]
    assert nodes[3].prefix == ("ip", "netns", "exec", "p2smt-x-node3")
    assert nodes[3].variables["NODE_RANK"] == nodes[3].variables["PET_NODE_RANK"] == "3"
    assert {n.variables["MASTER_ADDR"] for n in nodes} == {nodes[0].address}


def test_nodes_of_unequal_racks_have_names() -> None:
    spec = NetworkSpec((3, 2, 1), 25e6, 10e6, ("b", "e", "f", "a", "d", "c"))
    nodes = nodes_of(spec)
    assert [node.rack for node in nodes] == [0, 0, 0, 1, 1, 2]
    assert [node.host for node in nodes] == [*spec.hosts]
    assert nodes[3].variables["NODE_NAME"] == "a"
    assert {node.variables["NNODES"] for node in nodes} == {"6"}
    assert [node.host for node in nodes_of(regular(2, 25e6))] == ["node0", "node1"]


def test_unequal_racks_lie_in_a_regular_cluster() -> None:
    spec = NetworkSpec((3, 2, 1), 25e6, 10e6, ("b", "e", "f", "a", "d", "c"))
    found = topology(spec, 1)
    assert (found.sizes, found.installed, found.uneven) == ((3, 3, 1), 6, True)
    assert [found.host_of(device) for device in sorted(found.places)] == [*spec.hosts]
    assert sorted(found.places) == [0, 1, 2, 3, 4, 6]
    assert parse_topology(topology_yaml(spec, 1), "test") == found
    assert cluster_topology(cluster_data(spec, 1)) == found
    assert cluster_topology(cluster_data(regular(2, 25e6, 2, 10e6), 2)).hosts is None
    named = topology(NetworkSpec((2,), 25e6, hosts=("x", "y")), 1).hosts
    assert named is not None
    assert (named.names, named.switches) == (("x", "y"), ())
    unnamed = topology(NetworkSpec((2, 1), 25e6, 10e6), 1).hosts
    assert unnamed is not None
    assert unnamed.names == ("node0", "node1", "node2")


def test_every_new_spec_has_a_name_of_its_own() -> None:
    assert len({regular(2, 25e6).name for _ in range(100)}) == 100
    with pytest.raises(InputError, match="1 racks of 1 nodes"):
        regular(1, 25e6)


def test_gloo_runs_on_the_test_cluster() -> None:
    found = topology(regular(2, 25e6), 4)
    assert found.library_name == "gloo"
    assert found.algorithms == library_of("gloo").algorithms
    assert (found.names, found.node_level) == (("node", "gpu"), 0)


def test_the_topology_has_the_shaped_rates(tmp_path: Path) -> None:
    spec = regular(2, 25e6, racks=3, rack_bytes_per_s=10e6)
    read = parse_topology(topology_yaml(spec, 4), "test")
    assert read == topology(spec, 4)
    assert (read.names, read.sizes) == (("rack", "node", "gpu"), (3, 2, 4))
    assert [level.link.bandwidth_bytes_per_s for level in read.levels[:2]] == [10e6, 25e6]
    assert topology(regular(5, 25e6), 1).sizes == (5, 1)
    assert "to be calibrated" in read.description
    path = tmp_path / "cluster.yaml"
    path.write_text(topology_yaml(spec, 4))
    assert load_topology(str(path)) == read


def test_the_command_line_says_how_to_start_it() -> None:
    command = [sys.executable, *system.COMMAND.split()[1:], "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {system.COMMAND} --nodes N --rate RATE")
