"""The committed tables of measured times, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

JSON = Path(__file__).with_name("tables.json")
Rows = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Published:
    """One published table: ``rows`` and ``in_place`` are (bytes, seconds).

    ``nodes`` counts machines, ``racks`` NVLink domains of several (0: not said), ``ranks`` all
    GPUs; ``library``, ``note`` and ``algorithm``, what the library was told to take, may be empty.
    Bytes are those of nccl-tests: the larger of a rank's send and receive buffer.
    """

    name: str
    system: str
    nodes: int
    ranks: int
    collective: str
    library: str
    source: str
    note: str
    rows: Rows
    in_place: Rows
    racks: int = 0
    algorithm: str = ""

    def spikes(self) -> set[int]:
        """Sizes whose time is over 1.25 times that of the next larger size: outlying rows."""
        every = (*self.rows, *self.in_place)
        sizes = sorted({size for size, _ in every})
        least = {size: min(s for n, s in every if n == size) for size in sizes}
        return {size for size, after in pairwise(sizes) if least[size] > 1.25 * least[after]}


def tables(path: Path = JSON) -> dict[str, Published]:
    """The tables of a file by name."""
    entries = json.loads(path.read_text(encoding="utf-8"))["tables"]
    return {entry["name"]: _published(entry) for entry in entries}


def _published(entry: Mapping[str, Any]) -> Published:
    rows, in_place = (
        tuple((int(size), round(micro * 1e-6, 12)) for size, micro in entry[side])
        for side in ("rows", "in_place")
    )
    return Published(**{**entry, "rows": rows, "in_place": in_place})


def written(entries: Iterable[Mapping[str, Any]]) -> str:
    """The file's text: a line per table."""
    lines = ",\n".join(f" {json.dumps(entry)}" for entry in entries)
    return f'{{\n"tables": [\n{lines}\n]\n}}\n'
