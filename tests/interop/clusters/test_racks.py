"""Slurm's blocks as racks of NVL72: regular, with the trays that the job got."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import dump_topology, load_topology, topology_from_data
from p2smt.cluster.hostlist import parse_hostlist
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.interop.clusters.combine import ImportOptions, combined
from p2smt.interop.clusters.facts import Facts, OutsideFacts
from p2smt.interop.clusters.levels import parse_uplinks
from p2smt.interop.clusters.slurm import read_slurm_conf
from tests.cli.tools import cli

BLOCKS = "BlockName=b0 Nodes=t[01-18]\nBlockName=b1 Nodes=t[19-36]\nBlockName=b2 Nodes=t[37-54]\n"


def racks(
    text: str = BLOCKS,
    only: tuple[str, ...] | None = None,
    uplink: str = "",
    node: str = "gb200-nvl72",
) -> tuple[Topology, tuple[str, ...]]:
    rates = parse_uplinks([uplink] if uplink else [], [])
    options = ImportOptions(node=node, only=only, rates=rates)
    found, lost = combined([read_slurm_conf(text, "f.conf")], options)
    assert topology_from_data(dump_topology(found), "again") == found
    return found, lost


@pytest.mark.parametrize("node", ["gb200-nvl72", "gb300-nvl72"])
def test_full_racks_are_the_preset(node: str) -> None:
    found, lost = racks(node=node)
    preset = load_topology(f"{node}:3")
    assert (found.levels, found.library) == (preset.levels, preset.library)
    assert lost[-1].endswith("export plans with --devices-per-host 4 --hosts t[01-54]")


@given(st.lists(st.integers(1, 18), min_size=1, max_size=6))
def test_as_many_trays_of_each_rack_as_the_least_has(counts: list[int]) -> None:
    lines = [f"BlockName=b{i} Nodes=r{i}t[1-{count}]" for i, count in enumerate(counts)]
    found, lost = racks("\n".join(lines))
    each = min(counts)
    whole = load_topology("gb200-nvl72")
    assert (found.names, found.sizes) == (("rack", "gpu"), (len(counts), 4 * each))
    assert found.hosts is None
    assert found.levels[0].link.ports == 4 * each
    assert found.levels[0].link.pieces == whole.levels[0].link.pieces
    assert found.levels[1].link == whole.levels[1].link
    taken = parse_hostlist(lost[-1].rpartition("--hosts ")[2])
    assert taken == tuple(f"r{i}t{k}" for i in range(len(counts)) for k in range(1, each + 1))
    idle = re.findall(r"idle: (\S+);", "\n".join(lost))
    left = [f"r{i}t{k}" for i, n in enumerate(counts) for k in range(each + 1, n + 1)]
    assert [name for text in idle for name in parse_hostlist(text)] == left


def test_of_the_hosts_of_a_job() -> None:
    found, lost = racks(only=parse_hostlist("t[20-27,01-08,40]"))
    assert found.sizes == (3, 4)
    found, lost = racks(only=parse_hostlist("t[20-27,01-08]"))
    assert found.sizes == (2, 32)
    assert lost[-1].endswith("--hosts t[01-08,20-27]")


def test_a_rate_of_racks_may_be_given() -> None:
    found, _ = racks(uplink="rack=720GB/s")
    assert found.levels[0].link.ports * found.levels[0].link.nominal_bytes_per_s == 720e9


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("BlockName=b0 Nodes=t[1-19]", {}, r"block 'b0' has 19 hosts: a rack of gb200.* has 18"),
        ("SwitchName=s0 Nodes=t[1-18]", {}, r"does not tell which hosts are in one rack; give"),
        (BLOCKS, {"only": ("x1",)}, r"host 'x1': is in none of the files"),
        (BLOCKS, {"uplink": "block=1GB/s"}, r"--uplink block: the only level is rack"),
        ("BlockName=b0 Nodes=t1\nBlockName=b1 Nodes=t1", {}, r"no host in one certain place"),
        (BLOCKS, {"node": "tpu-v5p"}, r"its level slice of 64 devices is no host; .*tpu-v5p:N"),
    ],
)
def test_what_is_refused(text: str, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        racks(text, **arguments)  # type: ignore[arg-type]


def test_a_list_of_hosts_alone_tells_no_racks() -> None:
    hosts = Facts("ran.txt", OutsideFacts((), ("t01", "t02")))
    with pytest.raises(InputError, match="which hosts are in one rack"):
        combined([hosts], ImportOptions(node="gb200-nvl72"))


def test_from_blocks_to_the_hosts_of_ranks(tmp_path: Path) -> None:
    """The trays that the import names are those that export takes, in that order."""
    conf, topology, plan = (str(tmp_path / name) for name in ("f.conf", "t.yaml", "plan.json"))
    Path(conf).write_text("BlockName=b0 Nodes=a[1-3]\nBlockName=b1 Nodes=b[1-2]\n")
    made = cli("topology", "import", conf, "--node", "gb200-nvl72", "-o", topology)
    hosts = made.err.rstrip().rpartition("--hosts ")[2]
    solved = cli(
        *("solve", "-t", topology, "--axes", "dp=2,tp=8", "--reduce", "dp=1MiB"),
        *("--reduce", "tp=64MiB", "-o", plan),
    )
    assert solved.code == 0, solved.err
    out = cli("export", plan, "--to", "slurm", "--devices-per-host", "4", "--hosts", hosts)
    names = out.out.split()
    assert {names[0][0], names[8][0]} == {"a", "b"}  # tp is inside a rack
    assert len(set(names)) == 4
    assert "a3" not in names
