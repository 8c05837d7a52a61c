"""Who may send the blocks of a permute: every choice, and what its messages take."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import step_model
from p2smt.cost.loads.footprint_explicit import explicit_send
from p2smt.parallelism.placement import IntArray
from p2smt.resharding.step_prices import BlockNumbers, StepPrices
from p2smt.resharding.steps import ArrayStep, StepKind


def choices(held: Sequence[int], taken: Sequence[int]) -> Iterator[IntArray]:
    """Every way to give each device one holder of its block, each holder sending once."""
    blocks = sorted(set(held))
    holders = [[d for d, b in enumerate(held) if b == block] for block in blocks]
    takers = [[d for d, b in enumerate(taken) if b == block] for block in blocks]
    for orders in itertools.product(*map(itertools.permutations, holders)):
        source = np.empty(len(held), dtype=np.int64)
        for senders, receivers in zip(orders, takers, strict=True):
            source[receivers] = senders
        yield source


def seconds_of(topology: Topology, source: IntArray, payload_bytes: int) -> float:
    """What messages to all devices of a cluster take."""
    devices = np.arange(topology.devices)
    apart = source != devices
    footprint = explicit_send(topology, source[apart], devices[apart])
    return step_model(topology, footprint, RequestKind.SEND).time(payload_bytes).seconds


def least_seconds(prices: StepPrices, step: ArrayStep) -> float:
    """The price of a step, of a permute by the best of all choices; on all devices of a cluster."""
    if step.kind is not StepKind.PERMUTE:
        return prices.step(step).seconds
    blocks = BlockNumbers(prices.frame)
    held, taken = (tuple(blocks.of(s).tolist()) for s in (step.before, step.after))
    return _least(prices.topology, held, taken, prices.frame.local_bytes(step.before))


@lru_cache(maxsize=4096)
def _least(
    topology: Topology, held: tuple[int, ...], taken: tuple[int, ...], payload_bytes: int
) -> float:
    return min(seconds_of(topology, one, payload_bytes) for one in choices(held, taken))
