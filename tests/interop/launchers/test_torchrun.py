"""torchrun's commands: its rule of ranks, and torchrun itself."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given

from p2smt.errors import InputError
from p2smt.interop.launchers import write_torchrun
from p2smt.interop.places import PlacedPlan, by_host
from tests.cli.tools import process
from tests.interop.launchers.plans import (
    node_orders,
    placed_plan,
    placed_plans,
    topology,
    unnamed,
    written_plan,
)
from tests.interop.launchers.running import noted, seen
from tests.interpreter import shell
from tests.refusals import refusal

SSH = """\
#!/bin/sh
[ "$1" = -n ] && shift
HOST=$1; export HOST; shift
exec sh -c "$*"
"""
TORCHRUN = """\
#!/bin/bash
given=("${{@/--master-port=29500/--master-port={port}}}")
exec {python} -m torch.distributed.run "${{given[@]/--master-addr=n1/--master-addr=127.0.0.1}}"
"""
THREADS = {"OMP_NUM_THREADS": "1"}
GATHER = """\
import os
import torch.distributed as dist
dist.init_process_group("gloo")
mine = dist.get_rank(), os.environ["HOST"], os.environ["LOCAL_RANK"]
every = [None] * dist.get_world_size()
dist.all_gather_object(every, mine)
if dist.get_rank() == 0:
    for rank, host, local in every:
        print(f"seen,{rank},{host},{local}")
dist.barrier()  # no rank ends while another needs it
dist.destroy_process_group()
"""


def started(text: str) -> dict[int, tuple[str, int]]:
    """Host and LOCAL_RANK of each rank, by torchrun's rule for its static rendezvous.

    What a command does to LOCAL_RANK before the program starts is done here by other code.
    """
    found = {}
    for line in text.splitlines():
        host, command, *options = shlex.split(line)
        own = [option for option in options if option.startswith("--") and "=" in option]
        given = dict(option.removeprefix("--").split("=") for option in own)
        assert command == "torchrun"
        each = int(given["nproc-per-node"])
        devices = re.findall(r"order=\(([0-9 ]+)\)", line) or [" ".join(map(str, range(each)))]
        for local, device in enumerate(devices[0].split()):
            found[int(given["node-rank"]) * each + local] = (host, int(device))
        assert int(given["nnodes"]) == len(text.splitlines())
        assert given["master-addr"] == text.split()[0]
    return found


@given(node_orders())
def test_blocks_are_started_as_they_are(plan: PlacedPlan) -> None:
    found = started(write_torchrun(plan, "f").text)
    expected = {place.rank: (place.host, place.local_rank) for place in plan.places}
    assert found == expected


@given(placed_plans())
def test_host_by_host_any_plan_is_started_on_its_devices(plan: PlacedPlan) -> None:
    again = by_host(plan)
    text = write_torchrun(again, "f").text
    expected = {place.rank: (place.host, place.local_rank) for place in again.places}
    assert started(text) == expected
    assert "order" not in text


@given(placed_plans())
def test_ranks_that_are_no_blocks_are_refused(plan: PlacedPlan) -> None:
    hosts = [place.host for place in plan.places]
    each = plan.per_host
    blocks = all(len(set(hosts[i : i + each])) == 1 for i in range(0, len(hosts), each))
    with nullcontext() if blocks else pytest.raises(InputError, match="not one block"):
        write_torchrun(plan, "f")


def test_the_refusal_names_ranks_rule_and_remedy() -> None:
    plan = placed_plan(unnamed(2, (2,)), [0, 2, 1, 3])
    text = refusal(write_torchrun, plan, "f")
    assert "ranks 0, 2 of node0" in text
    assert "--to device-mesh" in text


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def cluster(folder: Path) -> dict[str, str]:
    """Hosts that all are this machine: ssh goes nowhere, and torchrun is that of this Python.

    It meets at a port that is free, at the host n1 if that is a name.
    """
    folder.mkdir(exist_ok=True)
    python, port = shlex.quote(sys.executable), free_port()
    (folder / "ssh").write_text(SSH)
    (folder / "torchrun").write_text(TORCHRUN.format(python=python, port=port))
    for name in ("ssh", "torchrun"):
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}", **THREADS}


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
def test_torchrun_starts_every_rank_where_the_plan_has_it(tmp_path: Path) -> None:
    """The loop of the note, on two addresses of this machine; devices of a host in no order."""
    pytest.importorskip("torch")
    where = topology((("127.0.0.2", "127.0.0.1"),), (2,))
    plan = written_plan(tmp_path / "plan.json", where, [3, 2, 0, 1])
    done = process("export", plan, "--to", "torchrun", "-o", "lines", cwd=tmp_path)
    assert done.code == 0, done.err
    (loop,) = noted(done.err, "while read")
    environment = cluster(tmp_path / "bin")
    (tmp_path / "bin/gather.py").write_text(GATHER)
    loop = loop.replace("train.py", str(tmp_path / "bin/gather.py"))
    expected = [(0, "b", 1), (1, "b", 0), (2, "a", 0), (3, "a", 1)]
    addresses = {"a": "127.0.0.2", "b": "127.0.0.1"}
    found = seen(shell(loop, tmp_path, environment))
    assert found == [(rank, addresses[host], local) for rank, host, local in expected]
