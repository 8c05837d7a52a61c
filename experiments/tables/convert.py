"""Derives ``tables.json`` from a folder of published outputs of nccl-tests and rccl-tests.

    python -m experiments.tables.convert FOLDER ...

Every ``*.txt`` below the folders that :mod:`experiments.tables.known` names is read by p2smt's own
reader.  The texts are not here; studies need ``tables.json`` alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from experiments.tables.known import TABLES, Known
from experiments.tables.tables import JSON, written
from experiments.testbed.script import ended
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.elements import Timing, TimingTable
from p2smt.interop.nccl_tests.parse_text import parse_text

_COLUMNS = re.compile(r"^[# ]*(?:\S+ )?[# ]*size\b.*\btime\b", re.MULTILINE)
_HEAD = (
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)"
)
_BUSBW = {"all-reduce": (2, 1), "send": (1, 0)}
"""busbw / algbw is p (n - o) / n of n ranks: (p, o) of each collective, (1, 1) of the others."""
_ADDRESS = re.compile(r"# source: (https?://\S+)")


def derived(folders: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """The known tables in the files of some folders, in the order of ``known``.

    Raises:
        InputError: a table's file is missing, malformed, holds several tables or names no source.
    """
    found = {path.stem: path for folder in folders for path in sorted(folder.rglob("*.txt"))}
    for one in TABLES:
        if one.file not in found:
            rule = f"is in none of {', '.join(map(str, folders))}"
            raise InputError(f"file {one.file}.txt", rule, "name its folder too")
        yield _entry(one, found[one.file])


def _entry(one: Known, path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8", errors="replace")
    address = _ADDRESS.search(text)
    if not one.source and not address:
        raise InputError(f"file {path.name}", "names no source", "add a line '# source: ADDRESS'")
    table = _only(parse_text(_headed(text), path.name), path.name)
    _check_ranks(one, table)
    out_of_place, in_place = _sides(table)
    return {
        "name": one.name,
        "system": one.system,
        "nodes": one.nodes,
        "ranks": one.ranks,
        "collective": one.collective,
        "library": one.library,
        "source": one.source or (address[1] if address else ""),
        "note": one.note,
        "rows": out_of_place,
        "in_place": in_place,
        **({"racks": one.racks} if one.racks else {}),
        **({"algorithm": one.algorithm} if one.algorithm else {}),
    }


def _headed(text: str) -> str:
    """The text, with the columns of nccl-tests above its rows where a page cut them off."""
    return text if _COLUMNS.search(text) else f"{_HEAD}\n{text}"


def _only(tables: Sequence[TimingTable], name: str) -> TimingTable:
    if len(tables) != 1:
        raise InputError(f"file {name}", f"holds {len(tables)} tables, not one", "split it")
    return tables[0]


def _check_ranks(one: Known, table: TimingTable) -> None:
    """Refuse a table whose bandwidths are not those of so many ranks."""
    passes, own = _BUSBW.get(one.collective, (1, 1))
    wanted = passes * (one.ranks - own) / one.ranks
    for timing in table.timings:
        low, high = timing.algbw - timing.algbw_error, timing.algbw + timing.algbw_error
        least, most = timing.busbw - timing.busbw_error, timing.busbw + timing.busbw_error
        if timing.algbw_error and not (least <= wanted * high and most >= wanted * low):
            raise InputError(
                f"{table.where}: busbw {timing.busbw:g} at algbw {timing.algbw:g}",
                f"is not that of {one.ranks} ranks",
                "correct the number of ranks",
            )


def _sides(table: TimingTable) -> tuple[list[list[float]], list[list[float]]]:
    """Rows (bytes, microseconds) out of place, and those in place, where a line has both."""
    sides: tuple[list[list[float]], list[list[float]]] = ([], [])
    lines: set[int] = set()
    for timing in table.timings:
        sides[timing.line in lines].append(_row(timing))
        lines.add(timing.line)
    return sides


def _row(timing: Timing) -> list[float]:
    return [timing.size_bytes, float(f"{timing.seconds * 1e6:.6g}")]


def main(arguments: Sequence[str]) -> None:
    """Write ``tables.json`` from the texts in the folders named."""
    if not arguments:
        raise InputError("0 folders", "one is expected or more: those of the texts", "name them")
    entries = list(derived([Path(name) for name in arguments]))
    JSON.write_text(written(entries), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
