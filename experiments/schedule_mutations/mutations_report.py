"""Mutation testing of the schedule checker: every mutant, judged by an exhaustive oracle.

    python -m experiments.schedule_mutations.mutations_report \
        --out experiments/schedule_mutations/results.json

Every mutant of every small schedule (tests/schedules: hand-written ones, the classic algorithms on
few ranks, their files in each format, random ones) runs in all interleavings of its reads, writes
and signals; the checker must refute those that are wrong in some interleaving, and no other.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from p2smt.errors import InputError
from p2smt.interop.reading import Reading
from p2smt.interop.schedule_files import read_schedule, written
from p2smt.report.progress import counted
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.verify import verify
from tests.interop.file_mutations import FILE_MUTATIONS
from tests.schedules.mutations import mutants
from tests.schedules.oracles.interleavings import TooBig, explore
from tests.schedules.random_schedules import random_schedule
from tests.schedules.small_schedules import SMALL, small_classics

VERDICTS = {
    (True, "valid"): "right, accepted",
    (True, "invalid"): "right, refuted",
    (True, "unknown"): "right, not settled",
    (False, "valid"): "wrong, accepted",
    (False, "invalid"): "wrong, refuted",
    (False, "unknown"): "wrong, not settled",
}
AGREED = ("right, accepted", "wrong, refuted", "too big", "rejected by the reader")


class Options(NamedTuple):
    """Connection depth, states that the oracle may visit, ranks, and number of random schedules."""

    depth: int
    limit: int
    ranks: int
    random: int


class Row(NamedTuple):
    """The figures of one schedule; ``found``: (kind of mutation, outcome) -> how many."""

    source: str
    schedule: str
    found: Counter[tuple[str, str]]
    disagreements: list[str]


def outcome(schedule: Schedule, options: Options) -> str:
    """What oracle and checker say."""
    try:
        answer = explore(schedule, options.depth, options.limit)
    except TooBig:
        return "too big"
    try:
        verdict = verify(schedule, options.depth).verdict.value
    except Exception as error:
        return f"checker failed: {type(error).__name__}"
    return VERDICTS[answer.right, verdict]


def in_memory(name: str, schedule: Schedule, options: Options) -> Row | None:
    """All mutants of a schedule."""
    row = Row("schedule", name, Counter(), [])
    for kind, text, mutant in mutants(schedule):
        _count(row, kind, text, outcome(mutant, options))
    return row


def in_files(suffix: str, name: str, schedule: Schedule, options: Options) -> Row | None:
    """All mutants of a schedule's file in one format; None if the format cannot express it."""
    path = "schedule" + suffix
    try:
        text = written(schedule, path)
    except InputError:
        return None
    row = Row(f"{suffix[1:].upper()} file", name, Counter(), [])
    for kind, mutant in FILE_MUTATIONS[suffix](text):
        try:
            read = read_schedule(mutant, path, Reading())
        except InputError:
            _count(row, kind, "", "rejected by the reader")
        else:
            _count(row, kind, kind, outcome(read, options))
    return row


def at_random(first: int, options: Options) -> Row | None:
    """A hundred random schedules."""
    row = Row("random", f"seeds {first} to {first + 99}", Counter(), [])
    for seed in range(first, first + 100):
        schedule = random_schedule(seed, 4 + seed % 7, options.depth)
        _count(row, "random", f"seed {seed}", outcome(schedule, options))
    return row


def _count(row: Row, kind: str, text: str, result: str) -> None:
    row.found[kind, result] += 1
    if result not in AGREED:
        row.disagreements.append(f"{kind}: {text}: {result}")


def schedules(ranks: int) -> Iterator[tuple[str, Schedule]]:
    """What is mutated."""
    for name, make in SMALL.items():
        yield name, make()
    yield from small_classics(ranks).items()


def _rows(options: Options, jobs: int) -> Iterator[Row]:
    with ProcessPoolExecutor(jobs) as pool:
        waiting: list[Future[Row | None]] = []
        for name, schedule in schedules(options.ranks):
            waiting.append(pool.submit(in_memory, name, schedule, options))
            for suffix in FILE_MUTATIONS:
                work = partial(in_files, suffix, name, schedule, options)
                waiting.append(pool.submit(work))
        waiting += [pool.submit(at_random, n, options) for n in range(0, options.random, 100)]
        for future in counted(waiting, "parts"):
            if row := future.result():
                print(row.source, row.schedule, sum(row.found.values()), flush=True)
                yield row


def _totals(rows: list[Row], part: int) -> dict[str, dict[str, int]]:
    """Outcomes by kind of mutation (0) of schedules, or by source (-1) of all."""
    totals: dict[str, Counter[str]] = {}
    for row in rows:
        for (kind, result), number in row.found.items():
            if part == -1 or row.source == "schedule":
                totals.setdefault(row.source if part == -1 else kind, Counter())[result] += number
    return {name: dict(sorted(counts.items())) for name, counts in totals.items()}


def report(rows: list[Row], options: Options) -> dict[str, Any]:
    """The results as plain data."""
    together = sum((Counter(row.found) for row in rows), Counter[tuple[str, str]]())
    results = Counter[str]()
    for (_, result), number in together.items():
        results[result] += number
    return {
        "mutants": sum(results.values()),
        "outcomes": dict(sorted(results.items())),
        "by_source": _totals(rows, -1),
        "by_mutation": _totals(rows, 0),
        "schedules": [
            {
                "source": row.source,
                "schedule": row.schedule,
                "mutants": sum(row.found.values()),
                "disagreements": row.disagreements,
            }
            for row in rows
        ],
        **options._asdict(),
        "machine": "2 cores",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("p2smt", "z3-solver", "numpy")},
        "date": date.today().isoformat(),
    }


def main() -> None:
    """Parses the command line, runs everything, writes the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--depth", type=int, default=8, help="messages that a connection holds")
    parser.add_argument("--limit", type=int, default=5000, help="states that the oracle visits")
    parser.add_argument("--ranks", type=int, default=3, help="classics on at most so many ranks")
    parser.add_argument("--random", type=int, default=3000, help="random schedules")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    options = Options(given.depth, given.limit, given.ranks, given.random)
    results = report(list(_rows(options, given.jobs)), options)
    given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results["outcomes"], indent=1))


if __name__ == "__main__":
    main()
