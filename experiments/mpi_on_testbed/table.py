"""Writes the tables of README.md and docs/studies.md from results.json and files.json.

python -m experiments.mpi_on_testbed.table
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.testbed.script import ended
from experiments.testbed.written.marked import filled
from p2smt.errors import InputError
from p2smt.units import format_bytes

HERE = Path(__file__).resolve().parent
STUDIES = HERE.parents[1] / "docs" / "studies.md"
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}


def results(name: str = "results.json") -> dict[str, Any]:
    """What the study measured."""
    found: dict[str, Any] = json.loads((HERE / name).read_text(encoding="utf-8"))
    return found


def with_files() -> Mapping[str, Any]:
    """The same with files that `export` wrote, beside MPI as it comes."""
    return results("files.json")


def spread(samples: Sequence[float]) -> str:
    """Median, least and most in milliseconds."""
    least, middle, most = (_ms(of(samples)) for of in (min, statistics.median, max))
    return f"{middle} [{least}-{most}]"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"


def tables(found: Mapping[str, Any]) -> Iterator[str]:
    """One table an MPI, and that of the program."""
    for mpi, arms in found["collectives"].items():
        yield f"{NAMES[mpi]}, ms:\n"
        yield from collective_rows(arms)
        yield ""
    yield "With the files, ms:\n"
    yield from file_table(with_files())
    yield ""
    yield "The program beside the all-reduce as it comes, in turns, ms:\n"
    yield from program_table(found)


def program_table(found: Mapping[str, Any]) -> Iterator[str]:
    """What the program gains."""
    yield "| MPI | bytes | all-reduce | program | gain |"
    yield "|---|---|---|---|---|"
    for mpi, runs in found["programs"].items():
        yield from program_rows(NAMES[mpi], runs)


def file_table(found: Mapping[str, Any]) -> Iterator[str]:
    """What the files that `export` wrote gain over the library as it comes."""
    yield "| MPI | collective | bytes | as it comes | with the file | gain | spreads apart |"
    yield "|---|---|---|---|---|---|---|"
    for mpi, arms in found["collectives"].items():
        for operation, rows in arms.get("file", {}).items():
            for size, samples in rows.items():
                yield file_row(NAMES[mpi], operation, int(size), arms, samples)


def file_row(
    name: str,
    operation: str,
    size_bytes: int,
    arms: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]],
    samples: Sequence[float],
) -> str:
    """One of its rows."""
    own = arms["default"][operation][str(size_bytes)]
    gain = statistics.median(own) / statistics.median(samples)
    apart = max(samples) < min(own) or max(own) < min(samples)
    cells = f"{spread(own)} | {spread(samples)} | {gain:.2f}x | {'yes' if apart else 'no'}"
    return f"| {name} | {operation} | {format_bytes(size_bytes)} | {cells} |"


def collective_rows(
    arms: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]],
) -> Iterator[str]:
    """A row for each collective and size, a column for each arm."""
    yield f"| collective | bytes | {' | '.join(arms)} |"
    yield "|---" * (2 + len(arms)) + "|"
    for operation, rows in next(iter(arms.values())).items():
        for size in rows:
            cells = [spread(arm[operation][size]) for arm in arms.values()]
            yield f"| {operation} | {format_bytes(int(size))} | {' | '.join(cells)} |"


def program_rows(name: str, runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A row for each size: all rounds together."""
    for size in sorted({int(run["payload_bytes"]) for run in runs}):
        here = [run for run in runs if run["payload_bytes"] == size]
        alone = [s for run in here for s in run["baseline_samples_s"]]
        program = [s for run in here for s in run["samples_s"]]
        gain = statistics.median(alone) / statistics.median(program)
        cells = f"{spread(alone)} | {spread(program)} | {gain:.2f}x"
        yield f"| {name} | {format_bytes(size)} | {cells} |"


def pages(found: Mapping[str, Any]) -> dict[Path, str]:
    """The pages with the tables of now."""
    readme = HERE / "README.md"
    return {
        readme: _renewed(readme, "tables", tables(found)),
        STUDIES: _renewed(STUDIES, "mpi", [*file_table(with_files()), "", *program_table(found)]),
    }


def _renewed(path: Path, name: str, lines: Iterable[str]) -> str:
    return filled(path.read_text(encoding="utf-8"), name, "\n".join(lines) + "\n")


def main(arguments: Sequence[str]) -> None:
    """Renew the pages.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    for path, text in pages(results()).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
