"""Ranks that something else started: torchrun, or variables set by hand."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cli.tools import Outcome, assert_one_error
from tests.runtime.processes import (
    ENDLESS,
    Running,
    free_port,
    on_pairs,
    on_two,
    run_to_end,
    started,
    torchrun,
    wait_for,
    without_torch,
)
from tests.tiers import but_the_first

pytestmark = pytest.mark.cluster


@contextmanager
def by_hand(ranks: Sequence[int], *arguments: str, size: int = 4) -> Iterator[dict[int, Running]]:
    """Some of ``size`` ranks, each a process of its own."""
    port = str(free_port())
    with ExitStack() as stack:
        yield {
            rank: stack.enter_context(
                started(
                    *arguments,
                    environment={
                        "RANK": str(rank),
                        "WORLD_SIZE": str(size),
                        "MASTER_ADDR": "127.0.0.1",
                        "MASTER_PORT": port,
                        "GLOO_SOCKET_IFNAME": "lo",
                    },
                )
            )
            for rank in ranks
        }


def outcomes(ranks: dict[int, Running]) -> dict[int, Outcome]:
    """What each ended with; nothing is left."""
    found = {rank: running.outcome() for rank, running in ranks.items()}
    for running in ranks.values():
        running.assert_nothing_left()
    return found


def wait_until_busy(ranks: dict[int, Running], groups: int = 2) -> None:
    """Until all have met and, unless there is only one group, made a group of their own."""
    wait_for(lambda: min(running.groups() for running in ranks.values()) >= groups or None)


@pytest.mark.exhaustive
def test_only_rank_0_prints(tmp_path: Path) -> None:
    with by_hand(range(4), *on_pairs(tmp_path, "--json", "--repeat", "1")) as ranks:
        found = outcomes(ranks)
    assert [found[rank].code for rank in range(4)] == [0] * 4
    assert found[0].json()["verified"] is True
    assert [found[rank] for rank in (1, 2, 3)] == [Outcome(0, "", "")] * 3


@pytest.mark.parametrize("others", but_the_first((1,), (1, 2, 3), (0, 1, 3)), ids=str)
@pytest.mark.exhaustive
def test_a_rank_that_was_never_started(tmp_path: Path, others: tuple[int, ...]) -> None:
    """The others end within the limit, and name it."""
    size = len(others) + 1
    (missing,) = set(range(size)) - set(others)
    run = on_two if size == 2 else on_pairs
    with by_hand(others, *run(tmp_path, "--time-limit", "8"), size=size) as ranks:
        found = outcomes(ranks)
    for rank, outcome in found.items():
        assert_one_error(outcome, 6)
        assert f"rank {missing} did not " in outcome.err, found
        assert f"rank {rank}" in outcome.err


@pytest.mark.exhaustive
@pytest.mark.parametrize("place", but_the_first((2, 1), (4, 2)), ids=str)
def test_a_rank_that_is_killed(tmp_path: Path, place: tuple[int, int]) -> None:
    """No launcher watches the ranks, so the others know only that a connection broke."""
    size, killed = place
    run = on_two if size == 2 else on_pairs
    with by_hand(range(size), *run(tmp_path, *ENDLESS, "--time-limit", "30"), size=size) as ranks:
        wait_until_busy(ranks, groups=size // 2)
        os.kill(ranks[killed].process.pid, signal.SIGKILL)
        found = outcomes(ranks)
    assert found.pop(killed).code == -signal.SIGKILL
    for rank, outcome in found.items():
        assert_one_error(outcome, 6)
        assert outcome.err.startswith(f"p2smt: error: rank {rank}: "), outcome.err
        assert "request 1 (all-reduce dp)" in outcome.err


@pytest.mark.exhaustive
def test_ctrl_c(tmp_path: Path) -> None:
    with by_hand(range(2), *on_two(tmp_path, *ENDLESS, "--time-limit", "50"), size=2) as ranks:
        wait_until_busy(ranks, groups=1)
        for running in ranks.values():
            os.kill(running.process.pid, signal.SIGINT)
        for outcome in outcomes(ranks).values():
            assert outcome.code in (130, 6)
            assert "Traceback" not in outcome.err


def listening_at(port: int) -> set[str]:
    """Local addresses, as the system has them, at which something listens on a port."""
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            address, _, number = local.rpartition(":")
            if state == "0A" and int(number, 16) == port:
                found.add(address)
    return found


def test_the_store_listens_on_the_address_that_is_given_only(tmp_path: Path) -> None:
    """From the moment on at which rank 0 has come."""
    with by_hand([0], *on_two(tmp_path), size=2) as ranks:
        port = int(ranks[0].environment["MASTER_PORT"])
        found = wait_for(lambda: listening_at(port) or None)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), 5)
    assert found == {"0100007F"}  # 127.0.0.1


def alone(folder: Path, **more: str) -> Outcome:
    """What rank 0 of four says, where torch cannot be imported."""
    place = {"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    environment = {**without_torch(folder), **place, **more}
    return run_to_end(*on_pairs(folder), environment=environment)


def test_a_port_in_use_is_told_before_torch_is_imported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        outcome = alone(tmp_path, MASTER_PORT=port)
    assert_one_error(outcome, 6)
    text = f"rank 0: cannot open the port of the ranks: 127.0.0.1:{port}: Address already in use"
    assert text in outcome.err


def test_the_address_of_another_machine(tmp_path: Path) -> None:
    outcome = alone(tmp_path, MASTER_ADDR="192.0.2.1")
    assert_one_error(outcome, 6)
    assert "192.0.2.1:1: Cannot assign requested address; set MASTER_ADDR to an" in outcome.err


def test_an_address_that_other_machines_cannot_reach(tmp_path: Path) -> None:
    outcome = alone(tmp_path, MASTER_PORT=str(free_port()), LOCAL_WORLD_SIZE="2")
    assert_one_error(outcome)
    assert "MASTER_ADDR 127.0.0.1: is 127.0.0.1 here, which other machines cannot" in outcome.err


def test_another_number_of_ranks(tmp_path: Path) -> None:
    place = {"RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    outcome = run_to_end(*on_pairs(tmp_path), environment=place)
    assert_one_error(outcome)
    assert "3 ranks that a launcher started: the plan is for 4; start 4" in outcome.err


@pytest.mark.exhaustive
def test_torchrun(tmp_path: Path) -> None:
    arguments = on_two(tmp_path, "--json", "--repeat", "1")
    outcome = run_to_end(line=torchrun(2, *arguments))
    assert outcome.code == 0, outcome.err
    data = outcome.json()
    assert data["verified"] is True
    assert len(data["ranks"]) == 2


@pytest.mark.exhaustive
def test_torchrun_with_a_wrong_result(tmp_path: Path) -> None:
    program = "all-reduce inside node; all-reduce inside root"
    arguments = on_pairs(tmp_path, "--repeat", "0", program=program)
    outcome = run_to_end(line=torchrun(4, *arguments))
    assert outcome.code == 1
    assert outcome.out.count("WRONG RESULT") == 1
