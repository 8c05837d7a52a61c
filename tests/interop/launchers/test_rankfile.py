"""Rankfiles: what their lines say, and what Open MPI makes of them where it is installed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
from hypothesis import given

from experiments.testbed.network import cluster, why_not
from experiments.testbed.spec import NetworkSpec
from p2smt.errors import InputError
from p2smt.interop.launchers import write_rankfile
from p2smt.interop.places import PlacedPlan
from tests.cli.tools import process
from tests.interop.launchers.plans import placed_plan, placed_plans, topology, unnamed, written_plan
from tests.interop.launchers.running import noted, program, seen
from tests.interpreter import shell

RANK, LOCAL = "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"
# Daemons of hosts that are one machine must not share a folder for their files.
AGENT = """\
#!/bin/sh
HOST=$1; export HOST; shift
TMPDIR=$(dirname "$0")/$HOST; export TMPDIR
mkdir -p "$TMPDIR"
exec {inside} sh -c "$*"
"""
LEAVES = (("n3.a", "n1.a"), ("n2.a",))
SCATTERED = [2, 0, 5, 1, 4, 3]
HOSTS_BY_RANK = ["n1.a", "n3.a", "n2.a", "n3.a", "n2.a", "n1.a"]


@given(placed_plans())
def test_a_line_for_each_rank(plan: PlacedPlan) -> None:
    """By mpirun(1): rank N=HOST slot=CORE."""
    text = write_rankfile(plan, "f").text
    found = re.findall(r"^rank ([0-9]+)=(\S+) slot=([0-9]+)$", text, re.M)
    assert len(found) == text.count("\n") == len(plan.places)
    expected = [(place.rank, place.host, place.local_rank) for place in plan.places]
    assert [(int(rank), host, int(slot)) for rank, host, slot in found] == expected


def test_many_hosts_are_not_named_one_by_one() -> None:
    few = write_rankfile(placed_plan(unnamed(16, (2,)), range(32)), "f")
    many = write_rankfile(placed_plan(unnamed(17, (2,)), range(34)), "f")
    assert ",node15:2 PROGRAM" in few.notes[0]
    assert "NAME slots=2" in many.notes[0]


@pytest.mark.parametrize("name", ["rank", "slots", "17", "2n.a", "fe80::1", "user_name", "n:1"])
def test_names_that_no_rankfile_holds(name: str) -> None:
    plan = placed_plan(unnamed(2, (2,)), range(4), ("a", name))
    with pytest.raises(InputError, match="no name that a rankfile can hold"):
        write_rankfile(plan, "f")


@pytest.mark.parametrize("names", [("n.1", "n.2"), ("a.x.org", "a.y.org")])
def test_names_that_are_equal_to_the_first_dot_are_kept_whole(names: tuple[str, str]) -> None:
    four, five, *_ = write_rankfile(placed_plan(unnamed(2, (2,)), range(4), names), "f").notes
    assert "--mca orte_keep_fqdn_hostnames 1" in four
    assert "--prtemca prte_keep_fqdn_hostnames 1" in five
    for others in (("a.x.org", "b.x.org"), ("10.0.0.1", "10.0.0.2")):
        plan = placed_plan(unnamed(2, (2,)), range(4), others)
        assert not any("keep" in line for line in write_rankfile(plan, "f").notes)


def variables(agent: Path, inside: str = "") -> dict[str, str]:
    """Open MPI's daemons started by a script, which tells their processes where they are."""
    agent.write_text(AGENT.format(inside=inside))
    agent.chmod(0o755)
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    names = {f"OMPI_MCA_{name}": str(agent) for name in ("plm_rsh_agent", "orte_rsh_agent")}
    return {**root, **names, "TMPDIR": str(agent.parent)}


needs_mpirun = pytest.mark.skipif(
    shutil.which("mpirun") is None, reason="mpirun is not installed (Debian: openmpi-bin)"
)
needs_cores = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a rank is bound to core 1")


@pytest.mark.exhaustive
@needs_mpirun
@needs_cores
@pytest.mark.slow
@pytest.mark.cluster
def test_mpirun_starts_every_rank_where_the_plan_has_it(tmp_path: Path) -> None:
    """The commands of the notes on three hosts that all are this machine."""
    plan = written_plan(tmp_path / "plan.json", topology(LEAVES, (2,)), SCATTERED)
    done = process("export", plan, "--to", "rankfile", "-o", "ranks", cwd=tmp_path)
    table = process("export", plan, "--to", "csv", cwd=tmp_path)
    (tmp_path / "ranks.csv").write_text(table.out)
    assert (done.code, table.code) == (0, 0), done.err + table.err
    plain, told = noted(done.err, "mpirun --rankfile")
    environment = variables(tmp_path / "agent")
    show = program(tmp_path, RANK, "$HOST", LOCAL)
    found = seen(shell(plain.replace("PROGRAM", show), tmp_path, environment))
    hosts = [(rank, host.removesuffix(".a")) for rank, host in enumerate(HOSTS_BY_RANK)]
    assert [(rank, host.removesuffix(".a")) for rank, host, _ in found] == hosts
    assert [local for *_, local in found] == [0, 0, 0, 1, 1, 1]
    show = program(tmp_path, RANK, "$HOST", "LOCAL_RANK")
    found = seen(shell(told.replace("PROGRAM", show), tmp_path, environment))
    assert [local for *_, local in found] == [0, 0, 1, 1, 0, 1]


@pytest.mark.exhaustive
@needs_mpirun
@pytest.mark.slow
@pytest.mark.cluster
def test_mpirun_takes_the_lines_of_slurm_s_file(tmp_path: Path) -> None:
    """Nothing is bound then: the command of the third note."""
    plan = written_plan(tmp_path / "plan.json", topology(LEAVES, (2,)), SCATTERED)
    noted_at = process("export", plan, "--to", "rankfile").err
    done = process("export", plan, "--to", "slurm", "-o", "hosts", cwd=tmp_path)
    assert done.code == 0, done.err
    (command,) = noted(noted_at, "mpirun --map-by seq")
    show = program(tmp_path, RANK, "$HOST", LOCAL)
    command = command.split(" (")[0].replace("FILE", "hosts") + f" {show}"
    found = seen(shell(command, tmp_path, variables(tmp_path / "agent")))
    short = [name.removesuffix(".a") for name in HOSTS_BY_RANK]
    assert [host.removesuffix(".a") for _, host, _ in found] == short


@needs_mpirun
@needs_cores
@pytest.mark.slow
@pytest.mark.cluster
def test_mpirun_across_machines(tmp_path: Path) -> None:
    """The same over a test cluster: every host is a network namespace, which ranks name."""
    if reason := why_not():
        pytest.skip(reason)
    with cluster(NetworkSpec((3,), 25e6)) as nodes:
        names = [node.name for node in nodes]
        where = topology((names[:2], names[2:]), (2,))
        plan = written_plan(tmp_path / "plan.json", where, SCATTERED)
        done = process("export", plan, "--to", "rankfile", "-o", "ranks", cwd=tmp_path)
        (plain, *_) = noted(done.err, "mpirun --rankfile")
        show = program(tmp_path, RANK, "$(ip netns identify $$)", LOCAL)
        environment = variables(tmp_path / "agent", inside='ip netns exec "$HOST"')
        command = plain.replace("PROGRAM", show)
        inside = f"{shlex.join(nodes[0].prefix)} {command}"
        found = seen(shell(inside, tmp_path, environment))
    expected = [names[i] for i in (1, 0, 2, 0, 2, 1)]
    assert [host for _, host, _ in found] == expected
