"""The tutorials are true: their commands print what they show, and programs run where they say."""

from __future__ import annotations

import csv
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from experiments.testbed.network import cluster, why_not
from experiments.testbed.spec import NetworkSpec, Node
from p2smt.cluster.file import load_topology
from p2smt.cluster.hosts import Hosts
from tests.pages import script
from tests.test_docs import DOCS

LIMIT_S = 600
WHERE = """import os, runpy
text = " ".join(os.environ[key] for key in ("RANK", "NODE_NAME", "LOCAL_RANK"))
os.write(1, f"rank {text}\\n".encode())
runpy.run_path("train.py")
"""
THREADS = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def tutorial() -> ModuleType:
    module: ModuleType = script(DOCS / "tutorial.py")
    return module


@pytest.fixture(scope="module")
def ran(tutorial: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which every command of the page on meshes was run, and the page with what they
    printed."""
    return run_of(tutorial, tutorial.MESH, tmp_path_factory.mktemp("tutorial"))


def run_of(tutorial: ModuleType, page: Path, folder: Path) -> tuple[Path, str]:
    return folder, tutorial.run_in(folder, page.read_text(encoding="utf-8"), lambda _: True)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_from_a_launch_script_to_a_better_job(tutorial: ModuleType, tmp_path: Path) -> None:
    """Every command prints what the page shows; what each says comes in its first ten lines."""
    folder, text = run_of(tutorial, tutorial.PAGE, tmp_path)
    assert tutorial.PAGE.read_text(encoding="utf-8") == text, "run: python docs/tutorial.py"
    compared = re.findall(r"^\$ p2smt plan .*--compare .*\n((?:.+\n)*)", text, re.MULTILINE)
    assert len(compared) == 2
    for shown in compared:
        lines = [line for line in shown.splitlines() if not line.startswith("note: ")]
        assert re.match(r"gain +\d+\.\d% more tokens/s, ", lines[0])
        labels = [line.split()[0] for line in lines[:10]]
        assert {"sure", "yours", "best", "proof"} <= set(labels)
    job = (folder / "better.sh").read_text()
    assert job in text
    assert subprocess.run(["bash", "-n", "better.sh"], cwd=folder, check=False).returncode == 0
    hosts = (folder / "job.txt").read_text().split()
    assert f"#SBATCH --nodes={len(hosts)}" in job


def placed(folder: Path) -> list[tuple[str, int]]:
    """Host and local rank of each rank, as ``export --to csv`` wrote them."""
    rows = list(csv.DictReader((folder / "ranks.csv").read_text().splitlines()))
    assert [int(row["rank"]) for row in rows] == list(range(len(rows)))
    return [(row["host"], int(row["local_rank"])) for row in rows]


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
def test_every_command_prints_what_the_page_shows(
    ran: tuple[Path, str], tutorial: ModuleType
) -> None:
    """The last of them runs the program on Gloo ranks of this machine."""
    _, text = ran
    assert tutorial.MESH.read_text(encoding="utf-8") == text, "run: python docs/tutorial.py"
    assert "\noptimal: " in text
    assert "12 of 12 ranks (pp=3, dp=2, tp=2) have the right gradients" in text


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
def test_ranks_are_on_the_hosts_that_the_job_got(ran: tuple[Path, str]) -> None:
    folder, _ = ran
    listed = (folder / "hosts.txt").read_text().split()
    hosts = [host for host, _ in placed(folder)]
    assert sorted(set(hosts)) == sorted(listed)
    assert (folder / "ranks.slurm").read_text().split() == hosts
    assert hosts != [host for host in listed for _ in range(2)]


def under(folder: Path, listed: Sequence[str]) -> list[list[str]]:
    """The listed hosts of each leaf switch."""
    hosts = load_topology(str(folder / "cluster.yaml")).hosts
    assert isinstance(hosts, Hosts)
    leaves, size = hosts.switches[0], 8
    found: dict[str, list[str]] = {}
    for name, slot in zip(hosts.names, hosts.slots, strict=True):
        if name in listed:
            found.setdefault(leaves[slot // size], []).append(name)
    return list(found.values())


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.exhaustive
def test_the_printed_commands_start_the_program_on_the_hosts(ran: tuple[Path, str]) -> None:
    """On a test cluster of such leaf switches, whose nodes have the names of the hosts."""
    if reason := why_not():
        pytest.skip(reason)
    folder, text = ran
    leaves = under(folder, (folder / "hosts.txt").read_text().split())
    assert [len(leaf) for leaf in leaves] == [3, 2, 1]
    names = tuple(name for leaf in leaves for name in leaf)
    (folder / "where.py").write_text(WHERE)
    with cluster(NetworkSpec((3, 2, 1), 12.5e6, 12.5e6, names)) as nodes:
        _stand_in_for_ssh(folder / ".tools" / "ssh", nodes)
        said = started(folder, text, "where.py")
    ranks = [line.split()[1:] for line in said if line.startswith("rank ")]
    expected = [[str(r), host, str(local)] for r, (host, local) in enumerate(placed(folder))]
    assert sorted(ranks) == sorted(expected)
    assert "12 of 12 ranks (pp=3, dp=2, tp=2) have the right gradients" in said


def _stand_in_for_ssh(path: Path, nodes: Sequence[Node]) -> None:
    """``ssh -n HOST COMMAND`` starts the command in the node of that name.

    The rendezvous is then what the command says, not what the test cluster would tell torchrun.
    """
    lines = ["#!/bin/sh", 'case "$1 $2" in']
    for node in nodes:
        given = [f"{k}={v}" for k, v in node.variables.items() if not k.startswith("PET_")]
        lines.append(
            f"'-n {node.host}') exec env {shlex.join([*given, *node.prefix])} sh -c \"$3\";;"
        )
    path.write_text("\n".join([*lines, "esac", "exit 2", ""]))
    path.chmod(0o755)


def started(folder: Path, text: str, program: str) -> list[str]:
    """What the loop that the page shows prints, with this program."""
    (loop,) = re.findall(r"^note: .* to start train.py on all: (while .*)$", text, re.MULTILINE)
    done = subprocess.run(
        ["bash", "-c", loop.replace("train.py", program)],
        cwd=folder,
        env=os.environ | {"PATH": f"{folder / '.tools'}:{os.environ['PATH']}"} | THREADS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    return done.stdout.splitlines()
