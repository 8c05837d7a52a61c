"""What an interface of a test cluster let through, bounded in a way that no load can upset.

A token bucket passes, between two instants, at most rate x time and one burst.  An interface
counts a packet after its bucket has let it go, so one packet may lie between bucket and counter.
A sample is a counter, and a time before and a time after it was read: between two samples the
bucket had no longer than from the time before the first to the time after the second.  A busy
machine reads late and sends late; both leave the bound true.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from experiments.testbed.bandwidth import Pair
from experiments.testbed.spec import Node

PACKET_BYTES = 2**16
"""The largest packet: what TCP hands to an interface at once."""

_PORT = 5301
_PAUSE_S = 0.02
_PYTHON = (sys.executable, "-I", "-S", str(Path(__file__).with_name("transfer.py")))
Process = subprocess.Popen[str]


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface by its namespace and name."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Sample:
    """What an interface had sent in all, at some time between two readings of the clock."""

    before_s: float
    sent_bytes: int
    after_s: float


def sample(interface: Interface) -> Sample:
    """Read the counter of an interface.  The clock is the one that shapers use."""
    before_s = time.monotonic()
    found = _told("ip", "-s", "-j", "-n", interface.namespace, "link", "show", interface.name)
    return Sample(before_s, int(found["stats64"]["tx"]["bytes"]), time.monotonic())


def shaper(interface: Interface) -> tuple[str, float]:
    """The kind of the one queue of an interface, and its rate in bytes per second."""
    found = _told("tc", "-j", "-n", interface.namespace, "qdisc", "show", "dev", interface.name)
    return found["kind"], found["options"]["rate"]


def _told(*command: str) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout)
    return dict(found)


def burst_bytes(bytes_per_s: float) -> float:
    """The burst that links are shaped with: 1 ms of the rate, 16 KiB at least."""
    return max(16 * 2**10, bytes_per_s * 1e-3)


def too_fast(samples: Sequence[Sample], bytes_per_s: float) -> list[tuple[Sample, Sample]]:
    """Pairs of samples, in order, between which more passed than a bucket of this rate lets."""
    slack = burst_bytes(bytes_per_s) + PACKET_BYTES
    return [
        (first, second)
        for first, second in combinations(samples, 2)
        if second.sent_bytes - first.sent_bytes
        > bytes_per_s * (second.after_s - first.before_s) + slack
    ]


def transfer(pairs: Sequence[Pair], count: int, watch: Callable[[], None]) -> tuple[int, ...]:
    """Send ``count`` bytes between all pairs at once; gives the bytes that arrived, by pair.

    ``watch`` is called before the first byte, again and again meanwhile, and after the last.
    """
    with ExitStack() as stack:
        receivers = [
            _started(target, stack, "receive", str(_PORT + i))
            for i, (_, target) in enumerate(pairs)
        ]
        assert [_said(receiver) for receiver in receivers] == ["listening"] * len(pairs)
        watch()
        senders = [
            _started(source, stack, "send", target.address, str(_PORT + i), str(count))
            for i, (source, target) in enumerate(pairs)
        ]
        for _ in _while_running([*senders, *receivers]):
            watch()
        watch()
        return tuple(int(_said(receiver)) for receiver in receivers)


def _started(node: Node, stack: ExitStack, *arguments: str) -> Process:
    command = (*node.prefix, *_PYTHON, *arguments)
    process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    stack.callback(process.kill)
    return process


def _said(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _while_running(processes: Sequence[Process]) -> Iterator[None]:
    while None in [process.poll() for process in processes]:
        yield
        time.sleep(_PAUSE_S)
