"""What the shaped links really carry: TCP streams between nodes, each end a process in its node."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from experiments.testbed.spec import NetworkSpec, Node
from experiments.testbed.system import Unavailable

WARM_UP_S = 0.2
"""Sent before the window opens: by then bursts are spent and TCP has found the rate."""

_PORT = 5201
_PYTHON = (sys.executable, "-I", "-S", str(Path(__file__).with_name("stream.py")))

Pair = tuple[Node, Node]
Process = subprocess.Popen[str]


@dataclass(frozen=True, slots=True)
class Flow:
    """A stream from one node to another: what arrived per second, and an idle round trip."""

    source: Node
    target: Node
    bytes_per_s: float
    round_trip_s: float


@dataclass(frozen=True, slots=True)
class LevelRate:
    """The rate that the links of a level should carry, and what they carried."""

    level: str
    asked_bytes_per_s: float
    reached_bytes_per_s: float


def measure(pairs: Sequence[Pair], seconds: float = 1.0) -> tuple[Flow, ...]:
    """Stream between all pairs (from, to) at once, over one window of ``seconds``.

    Raises:
        Unavailable: a stream could not be set up, or nothing arrived.
    """
    with ExitStack() as stack:
        ends = [_receiver(pair, _PORT + i, stack) for i, pair in enumerate(pairs)]
        for receiver in ends:
            _heard(receiver)
        starts = [_sender(pair, _PORT + i, stack) for i, pair in enumerate(pairs)]
        round_trips_s = [float(_heard(sender)) for sender in starts]
        begin_s = time.monotonic() + WARM_UP_S
        for process in starts + ends:
            _tell(process, f"{begin_s!r} {begin_s + seconds!r}")
        rates = [float(_heard(receiver)) for receiver in ends]
    return tuple(Flow(*p, r, t) for p, r, t in zip(pairs, rates, round_trips_s, strict=True))


def _receiver(pair: Pair, port: int, stack: ExitStack) -> Process:
    return _started(pair[1], ("receive", str(port)), stack)


def _sender(pair: Pair, port: int, stack: ExitStack) -> Process:
    return _started(pair[0], ("send", pair[1].address, str(port)), stack)


def _started(node: Node, arguments: tuple[str, ...], stack: ExitStack) -> Process:
    command = (*node.prefix, *_PYTHON, *arguments)
    pipe = subprocess.PIPE
    # In a process group of its own: on Ctrl-C this process ends it, rather than seeing it fail.
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, process_group=0
    )
    stack.enter_context(process)
    stack.callback(process.kill)
    return process


def _heard(process: Process) -> str:
    assert process.stdout is not None
    if line := process.stdout.readline():
        return line
    assert process.stderr is not None
    said = process.stderr.read().strip().splitlines() or ["it was stopped"]
    raise Unavailable("a stream between two nodes", f"failed ({said[-1]})", "try again")


def _tell(process: Process, line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def measure_pairs(nodes: Sequence[Node], seconds: float = 1.0) -> tuple[Flow, ...]:
    """Every pair of nodes, one after the other."""
    return tuple(flow for pair in combinations(nodes, 2) for flow in measure([pair], seconds))


def measure_both_ways(nodes: Sequence[Node], seconds: float = 1.0) -> tuple[float, ...]:
    """Of every pair of nodes that send to each other at once, the slower way's rate."""
    return tuple(
        min(flow.bytes_per_s for flow in measure([pair, pair[::-1]], seconds))
        for pair in combinations(nodes, 2)
    )


def level_rates(
    spec: NetworkSpec, nodes: Sequence[Node], flows: Sequence[Flow], seconds: float = 1.0
) -> tuple[LevelRate, ...]:
    """What each level reaches, outermost first.

    A rack's uplink: all nodes of the first rack send to those of the others, together.  A node's
    uplink: the median of ``flows`` inside racks; left out where every rack is one node.
    """
    found = []
    if spec.rack_bytes_per_s is not None:
        senders, others = nodes[: spec.racks[0]], nodes[spec.racks[0] :]
        pairs = [(node, others[i % len(others)]) for i, node in enumerate(senders)]
        total = sum(flow.bytes_per_s for flow in measure(pairs, seconds))
        least = min(len(senders), len(others)) * spec.uplink_bytes_per_s
        found.append(LevelRate("rack", min(spec.rack_bytes_per_s, least), total))
    inside = [flow.bytes_per_s for flow in flows if flow.source.rack == flow.target.rack]
    if inside:
        found.append(LevelRate("node", spec.uplink_bytes_per_s, statistics.median(inside)))
    return tuple(found)
