"""Proves the best strategy and pair of placements for DeepSeek-V3 on growing clusters.

    python -m experiments.mixture_search.study [--times] [CASE ..]

Without an argument it is every case (some minutes of one core).  ``usual`` is the space of ``plan``
with ZeRO-1 alone; ``wide`` has cp up to 32, vpp and mbs up to 16, and ZeRO-1 to 3.  ``--times``
renews what searches took, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.testbed.script import ended
from experiments.testbed.written.case_rows import CaseRows
from p2smt.api.efficiencies import efficiency_of
from p2smt.api.workload import read_model
from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.cluster.trimmed import trimmed
from p2smt.errors import InputError
from p2smt.result import SearchLimits, Status
from p2smt.training.search.plan import plan
from p2smt.training.search.question import PlanQuestion, SpaceLimits
from p2smt.training.strategy import Batch, strategy_text

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
MODEL, DTYPE, TOKENS = "deepseek-v3", "fp8", 4096
SPACES = {
    "usual": SpaceLimits(zero=(1,)),
    "wide": SpaceLimits(tp=8, cp=32, vpp=16, micro_batch=16, etp=8, zero=(1, 2, 3)),
}
LIMIT_S = 400.0
"""Seconds of the wall clock, of the widest spaces."""


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """A cluster, the sequences of an iteration, the space by its name.

    ``gpus``: how many of a node are used; 0: all.
    """

    topology: str
    sequences: int
    space: str
    gpus: int = 0

    def __str__(self) -> str:
        return f"{self.topology}:{self.space}"

    @property
    def file(self) -> str:
        """The topology as it is loaded: a preset, or a file of this folder."""
        own = HERE / f"{self.topology}.yaml"
        return str(own) if own.exists() else self.topology

    def cluster(self) -> Topology:
        """The topology, of each node the GPUs that are used."""
        whole = load_topology(self.file)
        return trimmed(whole, {whole.names[-1]: self.gpus}) if self.gpus else whole


CLUSTERS = (
    *(("dgx-h100:32", 4096, 0), ("gb200-nvl72:4", 4096, 64), ("dgx-h100:256", 4096, 0)),
    *(("pods", 4096, 0), ("islands", 16384, 0)),
)
CASES = tuple(
    Case(topology, sequences, space, gpus)
    for space in SPACES
    for topology, sequences, gpus in CLUSTERS
    if space == "usual" or topology in ("dgx-h100:32", "pods", "islands")
)


@dataclass(frozen=True, slots=True)
class Row:
    """What a search found and took, of one core.

    ``placements``: pairs of strategy and pair of matrices; ``evaluated``: strategies whose pairs
    were timed; ``prices``: of requests on scenes.  ``gap``: 0 where the best one is proved.
    """

    case: Case
    devices: int
    levels: int
    status: str
    strategies: int
    placements: int
    evaluated: int
    prices: int
    near: int
    strategy: str
    iteration_s: float
    gap: float
    cpu_s: float


def row_of(case: Case) -> Row:
    """Search a case."""
    topology = case.cluster()
    question = PlanQuestion(
        read_model(MODEL),
        Batch(case.sequences, TOKENS),
        topology,
        efficiency_of(topology, kinds=True),
        SPACES[case.space],
        dtype=DTYPE,
    )
    before_s = time.process_time()
    found = plan(question, SearchLimits(LIMIT_S))
    cpu_s = time.process_time() - before_s
    if found.best is None or found.near is None:
        raise InputError(f"case {case}", f"has no answer: {found.proof()}")
    return Row(
        case,
        topology.devices,
        len(topology.levels),
        found.status.value,
        found.counts.strategies,
        found.counts.placements,
        found.counts.evaluated,
        dict(found.stats.counters)["prices"],
        found.near.count,
        strategy_text(found.best.strategy),
        float(f"{found.best.iteration_s:.4g}"),
        0.0 if found.status is Status.OPTIMAL else float(f"{found.gap or 0.0:.2g}"),
        round(cpu_s, 1),
    )


ROWS = CaseRows(RESULTS, CASES, Case, Row)


def read() -> dict[Case, Row]:
    """The stored rows; none before the study ran."""
    return ROWS.read()


def main(arguments: Sequence[str]) -> None:
    """Search these cases, and store each."""
    ROWS.run(arguments, row_of)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
