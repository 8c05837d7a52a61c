"""Runs that fail: what is said, and that no process stays behind."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.tools import Outcome, assert_one_error
from tests.runtime.processes import (
    Running,
    endless,
    on_pairs,
    run_to_end,
    started,
    that_end_on_a_signal,
    wait_for,
    without_torch,
)
from tests.tiers import but_the_first

pytestmark = pytest.mark.cluster


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Running]:
    """A run in full swing."""
    with started(*endless(tmp_path)) as running:
        running.wait_until_busy()
        yield running


def failed(running: Running) -> Outcome:
    """One line, exit code 6, and nothing left."""
    outcome = running.outcome()
    assert_one_error(outcome, 6)
    running.assert_nothing_left()
    return outcome


@pytest.mark.exhaustive
@pytest.mark.parametrize("rank", but_the_first(2, 0))
def test_a_rank_that_is_killed(busy: Running, rank: int) -> None:
    os.kill(busy.ranks()[rank], signal.SIGKILL)
    error = failed(busy).err
    assert error.startswith(f"p2smt: error: rank {rank}: was killed by SIGKILL during request 1 ")


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", but_the_first("os._exit(0)", "os._exit(3)", "sys.exit(0)"))
def test_a_rank_that_ends_by_itself(tmp_path: Path, how: str) -> None:
    """Its neighbours say first that they have lost their connections."""
    place = that_end_on_a_signal(tmp_path, how)
    with started(*endless(tmp_path), environment=place) as running:
        running.wait_until_busy()
        os.kill(running.ranks()[2], signal.SIGUSR1)
        error = failed(running).err
    expected = f"rank 2: ended by itself with exit code {how[-2]} during request 1 "
    assert error.startswith(f"p2smt: error: {expected}")


@pytest.mark.exhaustive
def test_two_ranks_that_are_killed(busy: Running) -> None:
    ranks = busy.ranks()
    os.kill(ranks[1], signal.SIGSEGV)
    with suppress(ProcessLookupError):  # the first death may have ended it already
        os.kill(ranks[3], signal.SIGSEGV)
    assert "was killed by SIGSEGV during request 1" in failed(busy).err


STARTER_KILLED = "p2smt: error: the process that starts the ranks was killed by SIGKILL\n"


@pytest.mark.exhaustive
def test_the_process_that_starts_the_ranks_is_killed(busy: Running) -> None:
    os.kill(busy.nodes()[0], signal.SIGKILL)
    assert failed(busy).err == STARTER_KILLED


@pytest.mark.exhaustive
def test_it_is_killed_while_a_rank_is_stopped(busy: Running) -> None:
    """A stopped rank cannot notice that its parent is dead."""
    os.kill(busy.ranks()[1], signal.SIGSTOP)
    os.kill(busy.nodes()[0], signal.SIGKILL)
    assert failed(busy).err == STARTER_KILLED


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", but_the_first(signal.SIGKILL, signal.SIGHUP))
def test_the_command_line_is_killed(busy: Running, number: signal.Signals) -> None:
    os.kill(busy.process.pid, number)
    assert busy.outcome().code == -number
    busy.assert_nothing_left()


@pytest.mark.exhaustive
def test_it_is_killed_and_a_rank_is_stopped(busy: Running) -> None:
    os.kill(busy.ranks()[2], signal.SIGSTOP)
    os.kill(busy.process.pid, signal.SIGKILL)
    assert busy.outcome().code == -signal.SIGKILL
    busy.assert_nothing_left()


@pytest.mark.parametrize(
    "case",
    but_the_first((signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")),
    ids=lambda case: case[2],
)
def test_a_signal_to_the_command_line(busy: Running, case: tuple[signal.Signals, int, str]) -> None:
    number, code, word = case
    os.kill(busy.process.pid, number)
    assert busy.outcome() == Outcome(code, "", f"p2smt: {word}\n")
    busy.assert_nothing_left()


def test_ctrl_c_at_the_start(tmp_path: Path) -> None:
    """While torch is being imported, before there are ranks."""
    with started(*endless(tmp_path)) as running:
        wait_for(lambda: running.nodes() or None)
        os.kill(running.process.pid, signal.SIGINT)
        assert running.outcome() == Outcome(130, "", "p2smt: interrupted\n")
        running.assert_nothing_left()


@pytest.mark.exhaustive
def test_a_rank_that_is_stopped(tmp_path: Path) -> None:
    """At the time limit it is said where each rank was."""
    with started(*endless(tmp_path, "--time-limit", "20")) as running:
        running.wait_until_busy()
        os.kill(running.ranks()[1], signal.SIGSTOP)
        error = failed(running).err
    assert error.startswith("p2smt: error: no result within 20 s (")
    assert all(f"{rank}" in error for rank in range(4))
    assert "request 1 (all-reduce dp), " in error


@pytest.mark.exhaustive
@pytest.mark.parametrize("limit", but_the_first("1", "0.1"))
def test_a_limit_that_ends_before_the_ranks_have_started(tmp_path: Path, limit: str) -> None:
    outcome = run_to_end(*on_pairs(tmp_path, "--time-limit", limit))
    assert_one_error(outcome, 6)
    assert f"within {limit} s" in outcome.err


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        outcome = run_to_end(*on_pairs(tmp_path, "--port", str(port)))
    assert_one_error(outcome, 6)
    assert f"127.0.0.1:{port}: Address already in use" in outcome.err


@pytest.mark.exhaustive
def test_a_port_in_use_is_told_before_torch_is_imported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        arguments = on_pairs(tmp_path, "--port", str(server.getsockname()[1]))
        outcome = run_to_end(*arguments, environment=without_torch(tmp_path))
    assert_one_error(outcome, 6)
    assert "Address already in use" in outcome.err


@pytest.mark.exhaustive
def test_a_port_of_ones_own(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    outcome = run_to_end(*on_pairs(tmp_path, "--port", str(port), "--repeat", "0"))
    assert (outcome.code, outcome.err) == (0, "")


# Backends ---------------------------------------------------------------------------------


def test_torch_is_missing(tmp_path: Path) -> None:
    outcome = run_to_end(*on_pairs(tmp_path), environment=without_torch(tmp_path))
    assert_one_error(outcome, 5)
    assert "torch: is not installed; install p2smt with its torch extra" in outcome.err


def test_torch_is_missing_under_a_launcher(tmp_path: Path) -> None:
    place = {"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    outcome = run_to_end(*on_pairs(tmp_path), environment={**without_torch(tmp_path), **place})
    assert_one_error(outcome, 5)
    assert "torch: is not installed" in outcome.err


def test_the_reference_needs_no_torch(tmp_path: Path) -> None:
    arguments = on_pairs(tmp_path, "--backend", "reference")
    outcome = run_to_end(*arguments, environment=without_torch(tmp_path))
    assert (outcome.code, outcome.err) == (0, "")


def no_gpu() -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": ""}


@pytest.mark.parametrize("option", [("--backend", "nccl"), ("--device", "cuda")])
def test_without_gpus(tmp_path: Path, option: tuple[str, str]) -> None:
    """It is told before torch is imported."""
    place = {**no_gpu(), **without_torch(tmp_path)}
    outcome = run_to_end(*on_pairs(tmp_path, *option), environment=place)
    assert_one_error(outcome, 5)
    assert f"{' '.join(option)[2:]}: this machine shows no CUDA GPU (CUDA_VISI" in outcome.err


def test_a_wrong_result(tmp_path: Path) -> None:
    program = "all-reduce inside node; all-reduce inside root"
    outcome = run_to_end(*on_pairs(tmp_path, "--repeat", "1", "--details", program=program))
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.out.startswith("WRONG RESULT: 4 ranks, gloo, float32\n")
    assert "all-reduce dp: rank 3, element 0: wrong value: expected " in outcome.out
