"""The test cluster of experiments/testbed: its commands, and that nothing of it stays.

Where no cluster can be built, these tests are skipped, with the reason.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments.testbed import launch
from experiments.testbed.bandwidth import measure_pairs
from experiments.testbed.network import cluster, why_not
from experiments.testbed.ownership import NAMESPACES, lock_file, names_folders, namespaces
from experiments.testbed.spec import NetworkSpec, Node, regular, unique_name
from experiments.testbed.system import COMMAND
from p2smt.errors import InputError

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = (sys.executable, "-m", "experiments.testbed.testbed")
LIMIT_S = 600.0
"""How long a test waits for anything; far more than it takes."""


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    if reason := why_not():
        pytest.skip(reason)


def spec() -> NetworkSpec:
    return regular(nodes=2, uplink_bytes_per_s=12.5e6)


# Commands


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SCRIPT, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def in_each(*command: str, name: str | None = None) -> list[str]:
    named = () if name is None else ("--name", name)
    return ["--nodes", "2", "--rate", "100mbit", *named, "--", *command]


def test_a_command_runs_in_every_node() -> None:
    text = "$NODE_RANK/$NNODES $MASTER_ADDR:$MASTER_PORT $GLOO_SOCKET_IFNAME $PET_NODE_RANK"
    done = script(*in_each("sh", "-c", f'echo "{text}"; echo bad >&2; exit $NODE_RANK'))
    assert done.returncode == 1
    where = "10.77.0.1:29500 eth0"
    assert sorted(done.stdout.splitlines()) == [f"node{i}: {i}/2 {where} {i}" for i in (0, 1)]
    assert sorted(done.stderr.splitlines()) == ["node0: bad", "node1: bad"]


def test_nodes_of_unequal_racks_go_by_their_names() -> None:
    """As README.md has it: ranks rack by rack, names as given."""
    text = 'echo "node $NODE_RANK of $NNODES is $NODE_NAME"'
    racks = ["--nodes", "3+2+1", "--rate", "50mbit", "--rack-rate", "50mbit"]
    done = script(*racks, "--hosts", "n[2,3,6,1,5,4]", "--", "sh", "-c", text)
    assert (done.returncode, done.stderr) == (0, "")
    names = ["n2", "n3", "n6", "n1", "n5", "n4"]
    lines = [f"{name}: node {rank} of 6 is {name}" for rank, name in enumerate(names)]
    assert sorted(done.stdout.splitlines()) == sorted(lines)


def test_nodes_find_each_other_by_name() -> None:
    """Each of them all nodes, and what the machine knows besides."""
    find = "getent hosts n3 n1 localhost"
    done = script("--hosts", "n3,n1", *in_each("sh", "-c", find))
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("n1", "n3"):
        own = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith(name)]
        assert own[:2] == [["10.77.0.1", "n3"], ["10.77.0.2", "n1"]]
        assert "localhost" in own[2]


@pytest.mark.exhaustive
def test_without_a_command_it_measures() -> None:
    done = script("--nodes", "2", "--rate", "50mbit")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines() if line]
    assert [line[0] for line in lines] == ["from", "node0", "level", "node"]
    assert lines[1][:2] == ["node0", "node1"]
    assert lines[0][2:] == ["Mbit/s", "both", "ways", "round", "trip"]
    assert len(lines[1]) == 6
    assert lines[3][1] == "50.0"


# What is left


@pytest.fixture
def mark() -> str:
    """A number of seconds to sleep that no other process sleeps: found again among them."""
    return f"3{secrets.randbelow(10**12):012}"


def sleepers(mark: str) -> list[str]:
    """Processes that still sleep for that long."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"sleep" and mark.encode() in words:
            found.append(path.parent.name)
    return found


def assert_nothing_left(name: str, mark: str = "") -> None:
    assert namespaces(name) == []
    assert names_folders(name) == []
    assert not lock_file(name).exists()
    assert not mark or sleepers(mark) == []


def wait_for(mark: str, count: int) -> None:
    end_s = time.monotonic() + LIMIT_S
    while len(sleepers(mark)) < count and time.monotonic() < end_s:
        time.sleep(0.02)
    assert len(sleepers(mark)) == count


@contextmanager
def running(name: str, mark: str, trap: str = "") -> Iterator[subprocess.Popen[str]]:
    """A cluster of its own process, with two sleepers in each node: one in the background."""
    text = f"{trap} setsid sleep {mark} & sleep {mark}; true"
    command = [*SCRIPT, *in_each("sh", "-c", text, name=name)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, process_group=0
    ) as process:
        try:
            wait_for(mark, 4)
            yield process
        finally:
            process.kill()


def test_when_a_node_fails_the_others_are_stopped(
    monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    monkeypatch.setattr(launch, "GRACE_S", 0.1)
    with cluster(spec()) as nodes:
        code = launch.run_in_every_node(nodes, ["sh", "-c", "exit $((NODE_RANK * 7))"])
        assert code == 7
        stuck = f"test $NODE_RANK = 1 && kill -9 $$; trap '' TERM; sleep {mark}"
        assert launch.run_in_every_node(nodes, ["sh", "-c", stuck]) == 128 + 9
        assert sleepers(mark) == []


def test_nothing_is_left_by_default(mark: str) -> None:
    name = unique_name()
    done = script(*in_each("sh", "-c", f"setsid sleep {mark} & true", name=name))
    assert (done.returncode, done.stderr) == (0, "")
    assert_nothing_left(name, mark)


def test_nothing_is_left_by_an_exception(mark: str) -> None:
    sleeping: list[subprocess.Popen[bytes]] = []

    def fail(nodes: Sequence[Node]) -> None:
        sleeping.extend(subprocess.Popen([*node.prefix, "sleep", mark]) for node in nodes)
        wait_for(mark, len(nodes))
        raise ZeroDivisionError

    here = spec()
    with pytest.raises(ZeroDivisionError), cluster(here) as nodes:
        fail(nodes)
    assert [process.wait() for process in sleeping] == [-signal.SIGKILL] * 2
    assert_nothing_left(here.name, mark)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_nothing_is_left_by_a_signal(number: signal.Signals, code: int, mark: str) -> None:
    name = unique_name()
    with running(name, mark) as process:
        process.send_signal(number)
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert_nothing_left(name, mark)


@pytest.mark.exhaustive
def test_nothing_is_left_by_ctrl_c_again_and_again(mark: str) -> None:
    name = unique_name()
    with running(name, mark, trap="trap '' INT TERM;") as process:
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
            time.sleep(0.05)
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode in (130, -signal.SIGINT), err
    assert_nothing_left(name, mark)


@pytest.mark.exhaustive
def test_clean_removes_what_a_killed_run_left_and_nothing_else(mark: str) -> None:
    name, foreign, other = unique_name(), f"p2smt-{unique_name()}-node0", spec()
    with running(name, mark) as process:
        process.kill()
    assert len(namespaces(name)) == 3
    subprocess.run(["ip", "netns", "add", foreign], check=True)
    try:
        taken = script(*in_each("true", name=name))
        assert (taken.returncode, taken.stdout) == (2, "")
        assert taken.stderr.endswith(f"leftovers of a run that was killed; run: {COMMAND} clean\n")
        with cluster(other) as nodes:
            done = script("clean")
            assert len(measure_pairs(nodes, 0.1)) == 1
        assert (NAMESPACES / foreign).exists()
    finally:
        subprocess.run(["ip", "netns", "delete", foreign], check=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"removed the leftovers of cluster {name}\n" in done.stdout
    assert f"left alone: cluster {other.name}, which is in use\n" in done.stdout
    assert_nothing_left(name, mark)


def test_a_name_is_taken_once() -> None:
    here = spec()
    with cluster(here) as nodes:
        with pytest.raises(InputError, match="belongs to a running cluster"), cluster(here):
            pass
        assert len(measure_pairs(nodes, 0.1)) == 1
    assert_nothing_left(here.name)
