"""The table of the page: ``python -m experiments.plan_hosts.bench [CASE] [SECONDS]`` prints it.

llama-3-70b in sequences of 8,192 tokens on DGX H100 nodes under leaf switches, each of whose
uplinks carries a part of what its nodes send together, as ``topology import --oversubscription``
has it: 30 hosts of 32 under four leaves, with batches of 960 to 1,056 and with 1,024 alone, and
256 hosts under 16 unequal leaves.  Then a mixture, deepseek-v3 in fp8 and sequences of 4,096
tokens, on 30 of the 32 hosts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import p2smt
from p2smt.cluster.hosts import Hosts, Uplink
from p2smt.cluster.topology import Topology
from p2smt.training.search.hosts.answer import HostsAnswer
from p2smt.training.search.hosts.search import plan_on_hosts
from p2smt.training.search.question import PlanQuestion

UNEQUAL = (9, 24, 16, 20, 12, 10, 14, 22, 18, 16, 11, 13, 17, 21, 19, 14)
"""Hosts under each of 16 leaves, 256 in all."""


@dataclass(frozen=True)
class Case:
    """Leaves of so many nodes, how many hosts of them are missing, and the range of batches."""

    name: str
    leaves: tuple[int, ...]
    missing: tuple[int, ...]
    batches: tuple[int, int]
    model: str = "llama-3-70b"
    tokens: int = 8192
    dtype: str = "bf16"
    ratios: tuple[int, ...] = (2, 4, 8, 16)


CASES = (
    Case("30 of 32 hosts, batch 960..1056", (8,) * 4, (5, 20), (960, 1056)),
    Case("30 of 32 hosts, batch 1024", (8,) * 4, (5, 20), (1024, 1024)),
    Case("256 hosts, 16 leaves, batch 1024", UNEQUAL, (), (1024, 1024)),
    Case(
        "deepseek-v3, 30 of 32 hosts, batch 1920..2112",
        (8,) * 4,
        (5, 20),
        (1920, 2112),
        model="deepseek-v3",
        tokens=4096,
        dtype="fp8",
        ratios=(2, 8),
    ),
)


def cluster(leaves: Sequence[int], ratio: int) -> Topology:
    """DGX H100 nodes under leaf switches, each of whose uplinks carries a part of its nodes."""
    base = p2smt.load_topology("dgx-h100:2")
    node, gpu = base.levels
    full = max(leaves)
    link = replace(
        node.link,
        ports=1,
        pieces=tuple(
            replace(
                piece,
                bandwidth_bytes_per_s=piece.bandwidth_bytes_per_s * node.link.ports * full / ratio,
            )
            for piece in node.link.pieces
        ),
    )
    slots = tuple(leaf * full + i for leaf, size in enumerate(leaves) for i in range(size))
    names = tuple(f"gpu{number:03d}" for number in range(len(slots)))
    switches = (tuple(f"leaf{number}" for number in range(len(leaves))),)
    levels = (
        replace(node, name="leaf", size=len(leaves), link=link),
        replace(node, size=full),
        gpu,
    )
    full_rate = link.pieces[0].bandwidth_bytes_per_s
    uplinks = tuple(
        Uplink(0, leaf, full_rate * size / full) for leaf, size in enumerate(leaves) if size != full
    )
    return replace(base, levels=levels, hosts=Hosts(names, slots, switches, uplinks))


def answer(case: Case, ratio: int, limit_s: float) -> HostsAnswer:
    """What the search says within the limit."""
    topology = cluster(case.leaves, ratio)
    model, batch = p2smt.read_model(case.model), p2smt.Batch(case.batches[1], case.tokens)
    kinds = case.dtype != "bf16" or not model.dense
    constants = p2smt.efficiency_of(topology, kinds=kinds)
    asked = PlanQuestion(model, batch, topology, constants, dtype=case.dtype)
    assert topology.hosts is not None
    hosts = [name for n, name in enumerate(topology.hosts.names) if n not in case.missing]
    return plan_on_hosts(asked, hosts, case.batches, p2smt.SearchLimits(time_limit_s=limit_s))


def rows(chosen: str = "", limit_s: str = "60") -> Iterator[str]:
    """A line of the table for each ratio of the cases whose name has these letters."""
    yield "| case | uplinks | tokens/s | answer | gap | seconds | CPU s |"
    yield "|---|---|---|---|---|---|---|"
    for case in (one for one in CASES if chosen in one.name):
        for ratio in case.ratios:
            started = time.process_time()
            found = answer(case, ratio, float(limit_s))
            used_s = time.process_time() - started
            if not found.best:
                yield f"| {case.name} | {ratio}:1 | {found.status.value} |  |  |  | {used_s:.1f} |"
                continue
            best = found.best[0]
            words = p2smt.strategy_text(best.run.strategy)
            said = f"{len(best.where.hosts)} hosts, batch {best.run.batch.sequences:,}: {words}"
            gap = "proved" if found.status is p2smt.Status.OPTIMAL else f"{found.gap:.1%}"
            rate = best.run.batch.tokens / best.sequence_s
            cells = case.name, f"{ratio}:1", f"{rate:,.0f}", said, gap, f"{found.stats.wall_s:.1f}"
            yield f"| {' | '.join((*cells, f'{used_s:.1f}'))} |"


if __name__ == "__main__":
    for row in rows(*sys.argv[1:]):
        print(row, flush=True)
