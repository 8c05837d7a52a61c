"""`p2smt topology import`: what it prints and writes, and what of bad files it says."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest

import p2smt
from p2smt.cluster.file import dump_topology, load_topology
from tests.cli.tools import assert_one_error, cli
from tests.interop.clusters.texts import EVERY, KUBERNETES, TREE

IMPORT = ("topology", "import")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in EVERY.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_without_an_output_the_topology_is_printed(folder: Path) -> None:
    with chdir(folder):
        found = cli(*IMPORT, "tree.conf", "--node", "dgx-h100", "--uplink", "leaf=400GB/s")
    assert found.code == 0
    (folder / "made.yaml").write_text(found.out)
    made = load_topology(str(folder / "made.yaml"))
    assert (made.names, made.installed) == (("leaf", "node", "gpu"), 96)
    assert "note: tree.conf: LinkSpeed" in found.err


def test_an_output_is_written_and_summed_up(folder: Path) -> None:
    with chdir(folder):
        found = cli(*IMPORT, "tree.conf", "--node", "dgx-h100", "-o", "mine.yaml")
    assert found.code == 0
    assert found.out.startswith("12 hosts, 96 devices (at most leaf 2, node 7, gpu 8), written to")
    assert load_topology(str(folder / "mine.yaml")).name == "mine"


def test_json_says_levels_hosts_and_what_was_lost(folder: Path) -> None:
    with chdir(folder):
        data = cli(*IMPORT, "twice.conf", "--node", "dgx-h100", "--json").json()
    assert [(level["name"], level["size"]) for level in data["levels"]] == [
        ("leaf", 3), ("node", 3), ("gpu", 8),
    ]  # fmt: skip
    assert [level["assumed"] for level in data["levels"]] == [True, False, False]
    assert data["hosts"] == ["a1", "a2", "a4", "a5", "a6", "b1", "b2"]
    assert data["left_out"] == ["a3"]
    assert any("host a3 is under s0 and s1: it is left out" in line for line in data["lost"])
    assert data["devices"] == 56


def test_every_form_becomes_a_topology(folder: Path) -> None:
    with chdir(folder):
        for name in EVERY:
            found = cli(*IMPORT, name, "--node", "dgx-h100", "-o", "made.yaml")
            assert found.code == 0, found.err
            assert cli("topology", "check", "made.yaml").code == 0


def test_options_reach_the_readers(folder: Path) -> None:
    with chdir(folder):
        blocks = ("topology.yaml", "--topology-name", "topology/block", "--node", "dgx-h100")
        data = cli(*IMPORT, *blocks, "--json").json()
        assert data["hosts"] == ["blue-0", "blue-1", "blue-2"]
        labels = ("nodes.json", "--labels", "topology.k8s.aws/network-node-layer-2")
        data = cli(*IMPORT, *labels, "--node", "aws-p5", "--json").json()
        assert data["topology"]["switches"][0]["name"] == "nn-a"
        part = cli(*IMPORT, "tree.conf", "--node", "dgx-h100", "--hosts", "n[01-02]", "--json")
        assert part.json()["hosts"] == ["n01", "n02"]
        (folder / "mine.txt").write_text("n07\nn01\n")
        part = cli(*IMPORT, "tree.conf", "--node", "dgx-h100", "--hosts", "mine.txt", "--json")
        assert part.json()["hosts"] == ["n01", "n07"]


def test_an_imported_topology_is_one_that_commands_take(folder: Path) -> None:
    with chdir(folder):
        made = cli(
            *IMPORT, "tree.conf", "--node", "dgx-h100", "--uplink", "leaf=1TB/s", "-o", "t.yaml"
        )
        assert made.code == 0
        shown = cli("topology", "check", "t.yaml")
    assert "96 devices" in shown.out
    assert "do not count" not in shown.err  # latencies are those of the preset


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "0 files: give 1 to 16"),
        (["none.conf"], "none.conf': cannot be read"),
        (["."], "is a directory"),
        (["tree.conf", "deep.conf"], "tree.conf and deep.conf: both tell of hosts and switches"),
        (["latin.conf"], "is not UTF-8 text"),
        (["other.txt"], "tells no cluster that p2smt knows; give what joins hosts"),
        (["empty.txt"], "is empty, and"),
        (["short.conf"], "short.conf, line 4: host list"),
        (["short.json"], "short.json: is not JSON"),
        (["cycle.conf"], "cycle.conf: a > b > a: form a cycle"),
        (["hole.conf"], "hole.conf, line 1: 'b' under 'a': is described nowhere"),
    ],
)
def test_bad_files_are_one_line_and_nothing_is_written(
    folder: Path, files: list[str], message: str
) -> None:
    (folder / "latin.conf").write_bytes(TREE.encode() + b"# \xe9\n")
    (folder / "other.txt").write_text("hello")
    (folder / "empty.txt").write_text("")
    (folder / "short.conf").write_text(TREE[: TREE.index("6-11") + 2])
    (folder / "short.json").write_text(KUBERNETES[:-20])
    (folder / "cycle.conf").write_text("SwitchName=a Switches=b\nSwitchName=b Switches=a\n")
    (folder / "hole.conf").write_text("SwitchName=a Switches=b\n")
    with chdir(folder):
        found = cli(*IMPORT, *files, "--node", "dgx-h100", "-o", "out.yaml")
    assert_one_error(found)
    assert message in found.err
    assert not (folder / "out.yaml").exists()


def test_the_public_function_does_what_the_command_does(folder: Path) -> None:
    given = ("--uplink", "leaf=400GB/s", "--hosts", "n[04-07]")
    with chdir(folder):
        data = cli(*IMPORT, "tree.conf", "--node", "dgx-h100", *given, "--json").json()
        found, lost = p2smt.import_topology(
            Path("tree.conf"),
            node="dgx-h100",
            uplink={"leaf": "400GB/s"},
            hosts=["n04", "n05", "n06", "n07"],
        )
    assert dump_topology(found) == data["topology"]
    assert list(lost) == data["lost"]
    fine, _ = p2smt.import_topology(
        [folder / "tree.conf"], node="dgx-h100", oversubscription={"leaf": 1.5}
    )
    assert fine.levels[0].link.nominal_bytes_per_s == round(7 * 400e9 / 1.5)


def test_a_job_on_a_host_that_was_left_out_is_refused(folder: Path) -> None:
    job = ("--axes", "dp=3,tp=8", "--reduce", "dp=1GiB")
    with chdir(folder):
        made = cli(
            *IMPORT, "twice.conf", "--node", "dgx-h100", "--uplink", "leaf=1TB/s", "-o", "t.yaml"
        )
        assert made.code == 0
        shown = cli("topology", "show", "t.yaml").out
        assert "In no certain place: a3 (under s0 and s1)." in " ".join(shown.split())
        found = cli("solve", "-t", "t.yaml", "--hosts", "a[1-3]", *job)
        assert_one_error(found)
        assert "'a3': t does not say where it is: it is under two switches, or none" in found.err
        assert cli("solve", "-t", "t.yaml", "--hosts", "a[1-2],b1", *job).code == 0


def test_thousands_of_names_without_a_pattern_are_read_again(folder: Path) -> None:
    names = [f"gke-training-pool-{i * 2654435761 % 2**32:08x}-{i % 97:02d}x" for i in range(9000)]
    lines = [f"SwitchName=s{j} Nodes={','.join(names[j::300])}" for j in range(300)]
    (folder / "many.conf").write_text("\n".join(lines))
    with chdir(folder):
        assert cli(*IMPORT, "many.conf", "--node", "dgx-h100", "-o", "many.yaml").code == 0
    assert (folder / "many.yaml").stat().st_size > 256 * 1024
    found = load_topology(str(folder / "many.yaml"))
    assert found.hosts is not None
    assert sorted(found.hosts.names) == sorted(names)


def test_what_is_read_is_not_replaced(folder: Path) -> None:
    with chdir(folder):
        found = cli(*IMPORT, "tree.conf", "--node", "dgx-h100", "-o", "./tree.conf")
    assert_one_error(found)
    assert "is a file that is read" in found.err
    assert (folder / "tree.conf").read_text() == TREE


def test_a_mark_before_the_text_does_not_count(folder: Path) -> None:
    (folder / "mark.conf").write_bytes(b"\xef\xbb\xbf" + TREE.replace("\n", "\r\n").encode())
    with chdir(folder):
        data = cli(*IMPORT, "mark.conf", "--node", "dgx-h100", "--json").json()
    assert len(data["hosts"]) == 12


def test_a_file_that_cannot_be_written_is_said_first(folder: Path) -> None:
    with chdir(folder):
        assert_one_error(cli(*IMPORT, "tree.conf", "--node", "dgx-h100", "-o", "no/such.yaml"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.conf", "include /etc/slurm/x.conf\n", "line 1: includes another file ('include /etc"),
        ("a.conf", "SwitchName=a Nodes=n1\nInclude x.conf\n", "line 2: includes another file"),
        ("a.conf", "SwitchName=a Nodes=n1 Foo=2\n", "; keep what describes switches or blocks"),
        ("a.yaml", "- topology: r\n  flat: true\n", "'r': is flat: it has no switches; write"),
        ("a.yaml", "- topology: r\n  ring: {}\n", "is a ring of nodes, which is no tree"),
        (
            "a.yaml",
            "- topology: r\n  torus3d: {}\n- topology: t\n  tree: {switches: []}\n",
            "is a torus of nodes, which is no tree of switches; give --topology-name t",
        ),
        ("a.yaml", "- topology: r\n", "must have one of the keys tree and block; give exactly"),
    ],
)
def test_what_slurm_has_beside_trees_and_blocks(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    found = cli(*IMPORT, str(tmp_path / name), "--node", "dgx-h100")
    assert_one_error(found)
    assert message in found.err
