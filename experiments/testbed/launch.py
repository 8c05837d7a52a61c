"""One command in every node at once, its output marked with the node."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from experiments.testbed.ownership import kill_inside
from experiments.testbed.spec import Node
from p2smt.errors import InputError

GRACE_S = 5.0
"""How long the other nodes may run on when one failed, and how long a process has to stop."""

_POLL_S = 0.02
_OUTPUT = threading.Lock()

Process = subprocess.Popen[bytes]


def check_command(command: Sequence[str]) -> None:
    """Whether a command can be started, before anything is built for it.

    Raises:
        InputError: there is no such program.
    """
    if shutil.which(command[0]) is None:
        rule = "is not a command that can be run"
        raise InputError(f"command {command[0]!r}", rule, "give a program of PATH, or its path")


def run_in_every_node(nodes: Sequence[Node], command: Sequence[str]) -> int:
    """Run ``command`` once per node, with the variables of the node; the code of the first failure.

    When one fails, the others have GRACE_S to end by themselves and are stopped then.  Whatever
    the command leaves running in the nodes is killed.  A signal n counts as code 128 + n.

    Raises:
        InputError: there is no such program.
    """
    check_command(command)
    running: list[Process] = []
    readers: list[threading.Thread] = []
    try:
        for node in nodes:
            running.append(_started(node, command))
            readers += _forwarded(node, running[-1])
        return _code(running)
    finally:
        _stop(running)
        kill_inside([node.name for node in nodes])
        for process in running:
            process.wait()
        for reader in readers:
            reader.join()


def _started(node: Node, command: Sequence[str]) -> Process:
    return subprocess.Popen(
        (*node.prefix, *command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **node.variables},
    )


def _forwarded(node: Node, process: Process) -> list[threading.Thread]:
    """Threads that pass on what a process writes until its pipes close."""
    assert process.stdout is not None
    assert process.stderr is not None
    mark = f"{node.host}: ".encode()
    pipes = ((process.stdout, sys.stdout.buffer), (process.stderr, sys.stderr.buffer))
    threads = [threading.Thread(target=_pass_on, args=(mark, *pipe)) for pipe in pipes]
    for thread in threads:
        thread.start()
    return threads


def _pass_on(mark: bytes, source: IO[bytes], target: IO[bytes]) -> None:
    # When nobody reads any more, the pipe is closed, and the process learns it as in a plain pipe.
    with source, suppress(OSError):
        for line in source:
            with _OUTPUT:
                target.write(mark + line.removesuffix(b"\n") + b"\n")
                target.flush()


def _code(running: Sequence[Process]) -> int:
    """Wait for all, or for GRACE_S after the first failure; its code, or 0."""
    failed, end_s = 0, math.inf
    while time.monotonic() < end_s:
        codes = [process.poll() for process in running]
        if not failed and (failed := _failure(codes)):
            end_s = time.monotonic() + GRACE_S
        if None not in codes:
            break
        time.sleep(_POLL_S)
    return failed


def _failure(codes: Sequence[int | None]) -> int:
    """The first code that is a failure, or 0; None stands for a process that still runs."""
    return next((128 - code if code < 0 else code for code in codes if code), 0)


def _stop(running: Sequence[Process]) -> None:
    """SIGTERM for those that still run; they have GRACE_S."""
    for process in running:
        if process.poll() is None:
            process.terminate()
    end_s = time.monotonic() + GRACE_S
    for process in running:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, end_s - time.monotonic()))
