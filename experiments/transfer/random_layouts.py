"""How near to their bounds plans of random transfers come: ``gaps.csv``, a row for each.

    python -m experiments.transfer.random_layouts [COUNT]

Layouts of one to four matrices on 2 to 64 nodes of eight devices, half of them on the same devices:
ways of cutting rows and columns are uniform over the divisors of what is left, the rest are copies,
and rows, columns and copies stand in any order, so that in many the receiver's copies lie in one
node.  Rates are nominal ones of dgx-h100; seeds say all.
"""

from __future__ import annotations

import csv
import itertools
import math
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from p2smt.cluster.file import load_topology
from p2smt.transfer.answer import find_transfer
from p2smt.transfer.layouts import Shards, Tensor, WeightLayout
from p2smt.transfer.question import TransferQuestion

RESULTS = Path(__file__).with_name("gaps.csv")
COUNT, NODE = 200, 8
SIZES = (4096, 6144, 8192, 12288)
NODES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


@dataclass(frozen=True, slots=True)
class TransferGap:
    """A random transfer: nodes of both meshes, its classes, times in seconds, and its gap."""

    seed: int
    nodes_before: int
    nodes_after: int
    same: bool
    copies_in_a_node: bool
    classes: int
    pieces: int
    bandwidth_s: float
    bound_s: float
    gap: float


def question(seed: int) -> tuple[TransferQuestion, bool]:
    """The transfer of a seed, and whether the receiver has copies inside a node."""
    chance = random.Random(seed)
    same = seed % 2 == 0
    before, after = chance.choice(NODES), chance.choice(NODES)
    if same:
        before, after = max(2, before), min(max(2, before), after)
    shapes = [(chance.choice(SIZES), chance.choice(SIZES)) for _ in range(chance.randint(1, 4))]
    tensors = {f"w{i}": Tensor(f"w{i}", shape) for i, shape in enumerate(shapes)}
    inner = seed % 4 == 1
    first = {name: _shards(chance, before * NODE, one.shape) for name, one in tensors.items()}
    second = {
        name: _shards(chance, after * NODE, one.shape, inner=inner) for name, one in tensors.items()
    }
    start = 0 if same else before * NODE
    nodes = max(before, after) if same else before + after
    made = TransferQuestion(
        load_topology(f"dgx-h100:{nodes}"),
        WeightLayout(before * NODE, tensors, first),
        WeightLayout(after * NODE, tensors, second),
        range(before * NODE),
        range(start, start + after * NODE),
        2,
        nominal=True,
    )
    return made, inner


def _shards(
    chance: random.Random, devices: int, shape: Sequence[int], *, inner: bool = False
) -> Shards:
    """Cut by uniform divisors; ``inner``: two or four copies of each box in a node."""
    copies = chance.choice((2, 4)) if inner else 1
    rows = _divisor(chance, devices // copies)
    columns = _divisor(chance, devices // copies // rows)
    ways = [rows, columns, devices // copies // rows // columns]
    order = chance.sample(range(3), 3)
    held: dict[tuple[int, int], list[int]] = defaultdict(list)
    digits = itertools.product(*(range(ways[axis]) for axis in order), range(copies))
    for device, places in enumerate(digits):
        at = dict(zip(order, places, strict=False))
        held[at[0], at[1]].append(device)
    return Shards(
        tuple(
            ((_chunk(shape[0], rows, r), _chunk(shape[1], columns, c)), tuple(own))
            for (r, c), own in held.items()
        )
    )


def _divisor(chance: random.Random, size: int) -> int:
    return chance.choice([d for d in range(1, size + 1) if size % d == 0])


def _chunk(size: int, ways: int, which: int) -> tuple[int, int]:
    return size * which // ways, size * (which + 1) // ways


def measured(seed: int) -> TransferGap:
    """The gap of a seed."""
    asked, inner = question(seed)
    found = find_transfer(asked).found
    return TransferGap(
        seed,
        len(asked.sources) // NODE,
        len(asked.targets) // NODE,
        seed % 2 == 0,
        inner,
        len(asked.moves.classes),
        len(found.pieces),
        float(found.replay.bandwidth_s),
        float(found.certificate.bound_s),
        -1.0 if found.gap is None else round(float(found.gap), 6),
    )


def geometric_mean(rows: Sequence[TransferGap]) -> float:
    """Of one plus the gaps."""
    return math.exp(sum(math.log1p(row.gap) for row in rows) / len(rows))


def read(path: Path = RESULTS) -> list[TransferGap]:
    """The committed rows."""
    with path.open(encoding="utf-8") as file:
        return [
            TransferGap(
                int(row["seed"]),
                int(row["nodes_before"]),
                int(row["nodes_after"]),
                row["same"] == "True",
                row["copies_in_a_node"] == "True",
                int(row["classes"]),
                int(row["pieces"]),
                float(row["bandwidth_s"]),
                float(row["bound_s"]),
                float(row["gap"]),
            )
            for row in csv.DictReader(file)
        ]


def _rows(count: int) -> Iterator[TransferGap]:
    for seed in range(count):
        row = measured(seed)
        print(row, file=sys.stderr)
        yield row


def main(arguments: Sequence[str]) -> None:
    """Measure and write."""
    rows = list(_rows(int(arguments[0]) if arguments else COUNT))
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(rows[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    print(f"{len(rows)} transfers, geometric mean of the gap {geometric_mean(rows):.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
