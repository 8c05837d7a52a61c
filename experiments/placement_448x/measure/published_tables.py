"""The derived table of published measurements: sizes, times and the address of each source.

    python -m experiments.placement_448x.measure.published_tables FOLDER

reads outputs of nccl-tests whose first line is ``# source: ADDRESS`` and writes
``published_tables.json``; the study itself needs that file alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from experiments.placement_448x.store import HERE, read, write
from experiments.testbed.script import ended, only_argument
from p2smt.calibration.samples import Sample
from p2smt.collectives.names import Collective
from p2smt.interop.nccl_tests.read import read_nccl_tests
from p2smt.programs.program import Grouping

TABLES = HERE / "published_tables.json"
_SOURCE = re.compile(r"# source: (\S+)")
_META = re.compile(r"# meta: (\{.*\})")


@dataclass(frozen=True, slots=True)
class Published:
    """One published table of all-reduce times: ``rows`` are (bytes, seconds).

    A run inside one node has ``nodes`` = 1; ``gpus`` is the number of ranks.
    """

    name: str
    source: str
    system: str
    nodes: int
    gpus: int
    rows: tuple[tuple[int, float], ...]

    def samples(self) -> list[Sample]:
        """The rows as measurements of a topology of nodes and GPUs."""
        inside = self.nodes == 1
        where = Grouping(1, 2) if inside else Grouping(0, 2)
        entities = None if inside else self.nodes
        return [
            Sample(Collective.ALL_REDUCE, where, size, seconds, outermost=entities)
            for size, seconds in self.rows
        ]

    def spikes(self) -> set[int]:
        """Sizes whose time is over 1.25 times that of the next larger size: outlying rows."""
        sizes = sorted({size for size, _ in self.rows})
        least = {size: min(s for n, s in self.rows if n == size) for size in sizes}
        return {size for size, after in pairwise(sizes) if least[size] > 1.25 * least[after]}


def tables() -> dict[str, Published]:
    """The committed tables by name."""
    found = {}
    for entry in read(TABLES)["tables"]:
        rows = tuple((int(size), float(seconds)) for size, seconds in entry["rows"])
        found[entry["name"]] = Published(**{**entry, "rows": rows})
    return found


def derived(folder: Path) -> Iterator[dict[str, Any]]:
    """The tables in the files of a folder."""
    for path in sorted(folder.glob("*.txt")):
        text = path.read_text(encoding="utf-8", errors="replace")
        source, meta = _SOURCE.search(text), _META.search(text)
        if source is None or meta is None:
            raise ValueError(f"{path.name} does not say its source and its system")
        about = json.loads(meta[1])
        for measured in read_nccl_tests(str(path)):
            if measured.ranks != about["gpus"]:
                raise ValueError(f"{path.name}: {measured.ranks} ranks, not {about['gpus']}")
            yield {
                "name": f"{about['system']}-{about['nodes']}x{measured.ranks // about['nodes']}",
                "source": source[1],
                "system": about["system"],
                "nodes": about["nodes"],
                "gpus": measured.ranks,
                "rows": [[t.size_bytes, float(f"{t.seconds:.6g}")] for t in measured.table.timings],
            }


def main(arguments: Sequence[str]) -> None:
    """Derive the tables from a folder of files."""
    write(TABLES, {"tables": list(derived(Path(only_argument(arguments, "the folder of files"))))})


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
