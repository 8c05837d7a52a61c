"""Plans against pulls on links of a known rate, over Gloo: ``shaped.csv``.

    python -m experiments.transfer.shaped [ROUNDS]

Four nodes of two ranks on a test cluster (``experiments/testbed``), each behind an uplink of 100
Mbit/s.  Pulls: every receiver gets each part from the holder that has sent least so far, all at
once.  Ranks of both are started in turn, so many rounds of each, and move the weights three times
in each, after once that checks every value; a time is that of the slowest rank.  Times that are
told beforehand are those of the busiest port.
"""

from __future__ import annotations

import csv
import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from experiments.testbed.model import topology
from experiments.testbed.network import cluster
from experiments.testbed.ranks import LIMIT_S, fleet_of
from experiments.testbed.script import ended
from experiments.testbed.spec import regular
from p2smt.errors import ExecutionError
from p2smt.interop.weights.table import layout_of
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.ranks.on_ranks import Fleet, launch
from p2smt.runtime.transfers.transfer_job import TransferJob
from p2smt.transfer.answer import find_transfer
from p2smt.transfer.buckets import bucket_times
from p2smt.transfer.classes import TransferMoves
from p2smt.transfer.plan import TreePiece
from p2smt.transfer.question import TransferQuestion

RESULTS = Path(__file__).with_name("shaped.csv")
NODES, PER_NODE, UPLINK_BYTES_PER_S = 4, 2, 100e6 / 8
ROUNDS, REPEAT, ITEM_BYTES = 3, 3, 2
CHUNK_BYTES, WHOLE_BYTES = 2**17, 2**40
"""What a plan passes on at once; pulls pass nothing on."""
MODEL = {
    "model_type": "llama",
    "hidden_size": 384,
    "intermediate_size": 1024,
    "vocab_size": 2048,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}


@dataclass(frozen=True, slots=True)
class ShapedCase:
    """Layouts of both sides; receivers follow the trainers."""

    name: str
    before: str
    after: str


CASES = (
    ShapedCase("one engine a node", "megatron:tp=2,pp=2", "vllm:tp=2,engines=2"),
    ShapedCase("two engines a node", "megatron:tp=2,pp=2", "vllm:tp=1,engines=4"),
    ShapedCase("three nodes from one", "megatron:tp=2", "vllm:tp=2,engines=3"),
)


@dataclass(frozen=True, slots=True)
class ShapedTimes:
    """Seconds of a way to move the weights: told beforehand, and as measured."""

    case: str
    way: str
    model_bytes: int
    told_s: float
    least_s: float
    median_s: float
    most_s: float
    samples: int


def question(case: ShapedCase) -> TransferQuestion:
    """The transfer of a case on the cluster."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(MODEL), encoding="utf-8")
        before, after = (layout_of(text, str(config)) for text in (case.before, case.after))
    return TransferQuestion(
        topology(regular(NODES, UPLINK_BYTES_PER_S, name="shaped"), PER_NODE),
        before,
        after,
        range(before.devices),
        range(before.devices, before.devices + after.devices),
        ITEM_BYTES,
        nominal=True,
    )


def pulls(moves: TransferMoves) -> tuple[TreePiece, ...]:
    """Every class as a whole to each that needs it, from the holder that has sent least."""
    sent, found = Counter[int](), list[TreePiece]()
    for number, one in enumerate(moves.classes):
        edges = []
        for device in one.needers:
            source = min(one.holders, key=lambda d: sent[d])
            sent[source] += one.elements
            edges.append((source, device))
        found.append(TreePiece(number, 0, one.elements, tuple(edges)))
    return tuple(found)


def jobs(case: ShapedCase) -> dict[str, TransferJob]:
    """The plan and the pulls of a case."""
    asked = question(case)
    ways = {"plan": find_transfer(asked).found.pieces, "pulls": pulls(asked.moves)}
    found = {}
    for way, pieces in ways.items():
        times = bucket_times(pieces, asked.ports, ITEM_BYTES, 1)
        found[way] = TransferJob(
            asked.moves,
            asked.before,
            asked.after,
            tuple(asked.sources),
            tuple(asked.targets),
            pieces,
            ITEM_BYTES,
            1,
            times.staging_bytes,
            float(times.bandwidth_s),
            CHUNK_BYTES if way == "plan" else WHOLE_BYTES,
        )
    return found


def measured(job: TransferJob, fleet: Fleet) -> list[float]:
    """Seconds of each repetition.

    Raises:
        ExecutionError: a value is wrong.
    """
    options = RunOptions(repeat=REPEAT, warmup=0, time_limit_s=LIMIT_S)
    runs = [report.requests[0] for report in launch(job, options, fleet)]
    wrong = [error for run in runs for error in run.errors]
    if wrong:
        raise ExecutionError(wrong[0])
    return [max(times) for times in zip(*(run.total_s for run in runs), strict=True)]


def rows_of(case: ShapedCase, fleet: Fleet, rounds: int) -> Iterator[ShapedTimes]:
    """Both ways, started in turn."""
    both = jobs(case)
    found: dict[str, list[float]] = {way: [] for way in both}
    for turn in range(rounds):
        for way, job in list(both.items())[:: 1 if turn % 2 else -1]:
            found[way] += measured(job, fleet)
            print(case.name, way, found[way], file=sys.stderr)
    for way, job in both.items():
        own = found[way]
        yield ShapedTimes(
            case.name,
            way,
            job.before.elements * ITEM_BYTES,
            round(job.predicted_s, 3),
            round(min(own), 3),
            round(statistics.median(own), 3),
            round(max(own), 3),
            len(own),
        )


def read(path: Path = RESULTS) -> list[dict[str, str]]:
    """The committed rows."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main(arguments: Sequence[str]) -> None:
    """Measure and write."""
    rounds, rows = int(arguments[0]) if arguments else ROUNDS, list[ShapedTimes]()
    with ExitStack() as stack:
        nodes = stack.enter_context(cluster(regular(NODES, UPLINK_BYTES_PER_S)))
        for case in CASES:
            size = jobs(case)["plan"].ranks // PER_NODE
            rows += rows_of(case, fleet_of(nodes[:size]), rounds)
    names = ShapedTimes.__slots__
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([getattr(row, name) for name in names] for row in rows)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
