"""The twelve cases: bounds, plans, and what the rules of other tools take: ``cases.csv``.

    python -m experiments.transfer.study [CASE ..] [--times]

At nominal rates of dgx-h100, in bf16.  Relays are planned where receivers lie on the devices of the
senders.  Rules stand by their time over the bound on plans without relays.  CPU seconds of the
whole, classes, bound, plan and rules, are in ``timings.json``.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from experiments.testbed.written import timings
from experiments.transfer.cases import CASES, NODE, TransferCase
from p2smt.cluster.file import load_topology
from p2smt.interop.weights.peers import RULES, compared_rules
from p2smt.transfer.answer import find_transfer
from p2smt.transfer.colours import equitable, incidence_of
from p2smt.transfer.question import TransferQuestion

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "cases.csv"
BYTES = 2
NUMBERS = ("tensors", "classes", "device_colours", "pieces", "bound_ms", "plan_ms")
RELAYS = ("relayed_bound_ms", "relayed_ms")
LABELS = tuple(label for name in RULES for label in RULES[name])


def question(case: TransferCase) -> TransferQuestion:
    """The transfer of a case, on no more nodes than it needs."""
    before, after = case.layouts()
    last = max(before.devices, case.first + after.devices)
    return TransferQuestion(
        load_topology(f"dgx-h100:{last // NODE}"),
        before,
        after,
        range(before.devices),
        range(case.first, case.first + after.devices),
        BYTES,
        nominal=True,
    )


def row_of(case: TransferCase) -> Mapping[str, str]:
    """What is found for a case."""
    asked = question(case)
    answer = find_transfer(asked)
    found = answer.found
    colours = equitable(incidence_of(asked.moves, asked.ports), asked.ports)
    bound = found.certificate.bound_s
    numbers = (
        len(asked.before.tensors),
        len(asked.moves.classes),
        int(colours.device.max()) + 1,
        len(found.pieces),
        f"{float(bound) * 1e3:.4f}",
        f"{float(found.replay.bandwidth_s) * 1e3:.4f}",
    )
    row = {"case": str(case.number)} | dict(zip(NUMBERS, map(str, numbers), strict=True))
    row |= dict.fromkeys(RELAYS, "")
    if case.first == 0:
        relayed = find_transfer(replace(asked, relay=True)).found
        values = relayed.certificate.bound_s, relayed.replay.bandwidth_s
        row |= {key: f"{float(v) * 1e3:.4f}" for key, v in zip(RELAYS, values, strict=True)}
    for one in compared_rules(asked, tuple(RULES)):
        row[one.rule] = f"{float(one.seconds / bound):.4f}"
    return row


def read(path: Path = RESULTS) -> list[dict[str, str]]:
    """The committed rows."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _rows(
    cases: Sequence[TransferCase], times: dict[str, timings.Times]
) -> Iterator[Mapping[str, str]]:
    for case in cases:
        start = time.process_time()
        row = row_of(case)
        times[str(case.number)] = {"cpu_s": round(time.process_time() - start, 1)}
        print(row, times[str(case.number)], file=sys.stderr)
        yield row


def main(arguments: Sequence[str]) -> None:
    """Find and write, of some cases in place of what is there."""
    numbers, anew = timings.taken(arguments)
    times: dict[str, timings.Times] = {}
    cases = [case for case in CASES if not numbers or str(case.number) in numbers]
    found = {row["case"]: row for row in (read() if numbers and RESULTS.exists() else [])}
    found |= {row["case"]: dict(row) for row in _rows(cases, times)}
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        names = ("case", *NUMBERS, *RELAYS, *LABELS)
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found[key] for key in sorted(found, key=int))
    timings.keep(FOLDER, times, anew)


if __name__ == "__main__":
    main(sys.argv[1:])
