"""Plans on hosts, and the tables of the page.

    python -m experiments.plan_hosts.bench [--times] [LETTERS]

llama-3-70b in sequences of 8,192 tokens on DGX H100 nodes under leaf switches, each of whose
uplinks carries a part of what its nodes send together, as ``topology import --oversubscription``
has it: 30 hosts of 32 under four leaves, with batches of 960 to 1,056 and with 1,024 alone, and
256 hosts under 16 unequal leaves.  Then a mixture, deepseek-v3 in fp8 and sequences of 4,096
tokens, on 30 of the 32 hosts.  LETTERS choose the cases that have them in their names; all others
keep their rows.  ``--times`` renews what searches took, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import p2smt
from experiments.testbed.script import ended
from experiments.testbed.written import results
from experiments.testbed.written.marked import filled
from experiments.testbed.written.timings import Timed, taken
from p2smt.cluster.hosts import Hosts, Uplink
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.report.progress import counted
from p2smt.training.search.hosts.hosted_answer import HostsAnswer
from p2smt.training.search.hosts.search import plan_on_hosts
from p2smt.training.search.question import PlanQuestion

HERE = Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "results.json", HERE / "README.md"
Row = dict[str, Any]
TIMED = Timed(HERE, ("wall_s", "cpu_s"), lambda row: f"{row['case']}, {row['uplinks']}")
UNEQUAL = (9, 24, 16, 20, 12, 10, 14, 22, 18, 16, 11, 13, 17, 21, 19, 14)
"""Hosts under each of 16 leaves, 256 in all."""


@dataclass(frozen=True)
class Case:
    """Leaves of so many nodes, how many hosts of them are missing, and the range of batches.

    ``table``: the mark of its table in the page.
    """

    table: str
    name: str
    leaves: tuple[int, ...]
    missing: tuple[int, ...]
    batches: tuple[int, int]
    model: str = "llama-3-70b"
    tokens: int = 8192
    dtype: str = "bf16"
    ratios: tuple[int, ...] = (2, 4, 8, 16)
    limit_s: float = 60.0


CASES = (
    Case("small", "30 of 32 hosts, batch 960..1056", (8,) * 4, (5, 20), (960, 1056)),
    Case("small", "30 of 32 hosts, batch 1024", (8,) * 4, (5, 20), (1024, 1024)),
    Case("large", "256 hosts, 16 leaves, batch 1024", UNEQUAL, (), (1024, 1024), limit_s=150.0),
    Case(
        "mixture",
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


def answer(case: Case, ratio: int) -> HostsAnswer:
    """What the search says within the limit."""
    topology = cluster(case.leaves, ratio)
    model, batch = p2smt.read_model(case.model), p2smt.Batch(case.batches[1], case.tokens)
    kinds = case.dtype != "bf16" or not model.dense
    constants = p2smt.efficiency_of(topology, kinds=kinds)
    asked = PlanQuestion(model, batch, topology, constants, dtype=case.dtype)
    assert topology.hosts is not None
    hosts = [name for n, name in enumerate(topology.hosts.names) if n not in case.missing]
    return plan_on_hosts(asked, hosts, case.batches, p2smt.SearchLimits(time_limit_s=case.limit_s))


def row(case: Case, ratio: int) -> Row:
    """The best plan of a case and what it took; a gap of 0 is a proof."""
    started = time.process_time()
    found = answer(case, ratio)
    cpu_s = time.process_time() - started
    if not found.best:
        raise InputError(f"{case.name}, {ratio}:1", f"has no plan: {found.status.value}")
    best = found.best[0]
    words = p2smt.strategy_text(best.run.strategy)
    return {
        "case": case.name,
        "uplinks": f"{ratio}:1",
        "tokens_per_s": round(best.run.batch.tokens / best.sequence_s),
        "answer": f"{len(best.where.hosts)} hosts, batch {best.run.batch.sequences:,}: {words}",
        "gap": 0.0 if found.status is p2smt.Status.OPTIMAL else round(found.gap, 3),
        "wall_s": round(found.stats.wall_s, 1),
        "cpu_s": round(cpu_s, 1),
    }


def read() -> list[Row]:
    """The stored rows with their times; none before the study ran."""
    return TIMED.joined(results.read(RESULTS)["rows"]) if RESULTS.exists() else []


def renew(new: Row, anew: bool) -> None:
    """Put a row in its place among the stored ones, in the order of the cases."""
    known = {TIMED.key(one): one for one in (*read(), new)}
    order = [f"{case.name}, {ratio}:1" for case in CASES for ratio in case.ratios]
    rows = [known[name] for name in order if name in known]
    results.write(RESULTS, {"rows": TIMED.apart(rows, anew)})


def page(text: str) -> str:
    """The page with the tables of now."""
    for name in dict.fromkeys(case.table for case in CASES):
        cases = {case.name for case in CASES if case.table == name}
        rows = [one for one in read() if one["case"] in cases]
        text = filled(text, name, "".join(f"| {line} |\n" for line in _table(rows)))
    return text


def _table(rows: Sequence[Row]) -> Iterator[str]:
    """Times that some rows do not have are no column: the machine did other work beside them."""
    heads = {"wall_s": "seconds", "cpu_s": "CPU s"}
    times = [key for key in heads if all(key in one for one in rows)]
    head = ["case", "uplinks", "tokens/s", "answer", "gap", *(heads[key] for key in times)]
    yield " | ".join(head)
    yield " | ".join(["---"] * len(head))
    for one in rows:
        gap = f"{one['gap']:.1%}" if one["gap"] else "proved"
        cells = (one["case"], one["uplinks"], f"{one['tokens_per_s']:,}", one["answer"], gap)
        yield " | ".join((*cells, *(str(one[key]) for key in times)))


def main(arguments: Sequence[str]) -> None:
    """Plan on these hosts, and store each; then write the page.

    Raises:
        InputError: no case has these letters.
    """
    named, anew = taken(arguments)
    letters = " ".join(named)
    chosen = [(case, ratio) for case in CASES for ratio in case.ratios if letters in case.name]
    if not chosen:
        raise InputError(f"letters {letters!r}", "are in no case's name")
    for case, ratio in counted(chosen, "cases"):
        renew(row(case, ratio), anew)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
