"""Writes the tables of README.md and docs/studies.md from the JSON files beside this one.

python -m experiments.mpi_on_testbed.table
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.mpi_on_testbed.predicted import Cell, cells, mean_regret, share_right
from experiments.testbed.script import ended
from experiments.testbed.written.marked import filled
from p2smt.errors import InputError
from p2smt.units import format_bytes

HERE = Path(__file__).resolve().parent
STUDIES = HERE.parents[1] / "docs" / "studies.md"
LARGE_BYTES = 512 * 2**10
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
    yield "The fastest algorithm, and the one that is predicted from all other sizes, ms:\n"
    yield from winner_table(results("winners.json"))
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
    cells = list(file_cells(found))
    yield "| MPI | collective | bytes | as it comes | with the file | gain | beyond the spreads |"
    yield "|---|---|---|---|---|---|---|"
    yield from (cell.row for cell in cells)
    slower = [f"{one.operation} of {format_bytes(one.size_bytes)}" for one in cells if one.slower]
    yield ""
    yield f"Slower with the file beyond the spreads: {', '.join(slower) or 'nothing'}."


@dataclass(frozen=True)
class FileCell:
    """A collective of a size as it comes (``own``) and with the file (``samples``), in seconds."""

    name: str
    operation: str
    size_bytes: int
    own: Sequence[float]
    samples: Sequence[float]

    @property
    def faster(self) -> bool:
        """Whether the slowest call with the file is faster than the fastest without."""
        return max(self.samples) < min(self.own)

    @property
    def slower(self) -> bool:
        """The reverse."""
        return max(self.own) < min(self.samples)

    @property
    def row(self) -> str:
        """As a row of the table."""
        gain = statistics.median(self.own) / statistics.median(self.samples)
        told = "faster" if self.faster else "slower" if self.slower else "no difference"
        cells = f"{spread(self.own)} | {spread(self.samples)} | {gain:.2f}x | {told}"
        return f"| {self.name} | {self.operation} | {format_bytes(self.size_bytes)} | {cells} |"


def file_cells(found: Mapping[str, Any]) -> Iterator[FileCell]:
    """Each cell that was measured with a file."""
    for mpi, arms in found["collectives"].items():
        for operation, rows in arms.get("file", {}).items():
            for size, samples in rows.items():
                own = arms["default"][operation][size]
                yield FileCell(NAMES[mpi], operation, int(size), own, samples)


def winner_table(data: Mapping[str, Any]) -> Iterator[str]:
    """Which algorithm is fastest at a size, and which the model says is, fitted to the others."""
    found = list(cells(data))
    yield "| MPI | collective | bytes | fastest | ms | predicted | ms | right |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in found:
        ways = (
            f"{one.fastest} | {spread(one.fastest_s)} | {one.predicted} | {spread(one.predicted_s)}"
        )
        place = f"{NAMES[one.mpi]} | {one.collective} | {format_bytes(one.size_bytes)}"
        yield f"| {place} | {ways} | {'yes' if one.right else 'no'} |"
    yield ""
    yield winner_sentence(found)


def winner_sentence(found: Sequence[Cell]) -> str:
    """The figures of all cells, and of those where the network takes most of the time."""
    large = [one for one in found if one.size_bytes >= LARGE_BYTES]
    return f"Of all {_figures(found)} From {format_bytes(LARGE_BYTES)} on, of {_figures(large)}"


def _figures(found: Sequence[Cell]) -> str:
    right = sum(one.right for one in found)
    return (
        f"{len(found)} cells {right} are right ({100 * share_right(found):.0f} %); what is "
        f"predicted takes {100 * mean_regret(found):.0f} % longer than the fastest in the mean."
    )


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
        STUDIES: _renewed(STUDIES, "mpi", studies_lines(found)),
    }


def studies_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """What the page of all studies has of this one."""
    yield from file_table(with_files())
    yield ""
    yield winner_sentence(list(cells(results("winners.json"))))
    yield ""
    yield from program_table(found)


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
