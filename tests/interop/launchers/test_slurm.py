"""Host files: what srun makes of them, by its page and by Slurm itself where it is installed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from p2smt.interop.launchers import write_slurm
from p2smt.interop.places import PlacedPlan, by_host, local_orders
from tests.cli.tools import process
from tests.interop.launchers.plans import (
    node_orders,
    placed_plan,
    placed_plans,
    topology,
    written_plan,
)
from tests.interop.launchers.running import noted, program, seen
from tests.interop.launchers.slurm_cluster import SlurmCluster, why_no_slurm

LEAVES = (("n3", "n1"), ("n2",))
SCATTERED = [2, 0, 5, 1, 4, 3]  # (n3, 1) takes no part: devices 6 and 7 have no host


def arbitrary(text: str, tasks: int) -> list[tuple[str, int]]:
    """Host and SLURM_LOCALID of each task, by srun(1): tasks go to the hosts in the file's order.

    The page: one host a line, or separated by commas; the number of tasks is the number of hosts.
    A step numbers the tasks of a host from 0, in the order of their numbers.
    """
    hosts = [name for line in text.splitlines() for name in line.split(",")]
    if len(hosts) != tasks:
        raise ValueError(f"{len(hosts)} hosts for {tasks} tasks")
    counts: dict[str, int] = defaultdict(int)
    found = []
    for host in hosts:
        found.append((host, counts[host]))
        counts[host] += 1
    return found


@given(placed_plans())
def test_tasks_are_the_plan_s_ranks(plan: PlacedPlan) -> None:
    found = arbitrary(write_slurm(plan, "f").text, len(plan.places))
    assert [host for host, _ in found] == [place.host for place in plan.places]


@given(placed_plans())
def test_a_local_number_stands_for_the_device_that_is_told(plan: PlacedPlan) -> None:
    orders = local_orders(plan)
    found = arbitrary(write_slurm(plan, "f").text, len(plan.places))
    devices = [orders[host][local] for host, local in found]
    assert devices == [place.local_rank for place in plan.places]


@given(node_orders())
def test_it_is_told_where_it_differs_and_only_there(plan: PlacedPlan) -> None:
    straight = all(order == tuple(range(plan.per_host)) for order in local_orders(plan).values())
    assert any("LOCAL_RANK" in line for line in write_slurm(plan, "f").notes) != straight
    assert not any("LOCAL_RANK" in line for line in write_slurm(by_host(plan), "f").notes)


def test_the_notes_name_the_command() -> None:
    plan = placed_plan(topology(LEAVES, (2,)), SCATTERED)
    first, second, third = write_slurm(plan, "my hosts").notes
    assert "srun -n 6 --distribution=arbitrary PROGRAM" in first
    assert "SLURM_HOSTFILE='my hosts'" in first
    assert "MASTER_ADDR=n1" in second
    assert "ranks.csv" in third


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Slurm on this machine, its nodes n1 to n4."""
    if reason := why_no_slurm():
        pytest.skip(reason)
    with SlurmCluster.started(tmp_path_factory.mktemp("slurm"), 4) as cluster:
        yield cluster


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
def test_srun_starts_every_rank_where_the_plan_has_it(slurm: SlurmCluster, tmp_path: Path) -> None:
    """The commands of the notes as they stand, in an allocation with a node to spare."""
    plan = written_plan(tmp_path / "plan.json", topology(LEAVES, (2,)), SCATTERED)
    done = process("export", plan, "--to", "slurm", "-o", "hosts", cwd=tmp_path)
    table = process("export", plan, "--to", "csv", cwd=tmp_path)
    (tmp_path / "ranks.csv").write_text(table.out)
    assert (done.code, table.code) == (0, 0), done.err + table.err
    plain, told = noted(done.err, "SLURM_HOSTFILE=")
    show = program(tmp_path, "SLURM_PROCID", "$SLURMD_NODENAME", "SLURM_LOCALID")
    found = seen(slurm.step(plain.replace("PROGRAM", show), tmp_path))
    tasks = arbitrary((tmp_path / "hosts").read_text(), len(SCATTERED))
    assert found == [(rank, host, local) for rank, (host, local) in enumerate(tasks)]
    show = program(tmp_path, "SLURM_PROCID", "$SLURMD_NODENAME", "LOCAL_RANK")
    found = seen(slurm.step(told.replace("PROGRAM", show), tmp_path))
    rows = [f"{rank},{host},{local}" for rank, host, local in found]
    assert ["rank,host,local_rank", *rows] == table.out.split()
