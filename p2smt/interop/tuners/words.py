"""What a file makes a library do, in lines."""

from __future__ import annotations

from collections.abc import Iterator

from p2smt.interop.tuners.choices import Chosen, FileVerdict
from p2smt.interop.tuners.rules import size_range
from p2smt.units import counted

OWN = "the library's own choice"


def tuner_lines(found: FileVerdict) -> Iterator[str]:
    """The faults, a line each; the verdict; what runs by size; notes."""
    for fault in found.faults:
        yield str(fault)
    said = counted(len(found.faults), "fault") if found.faults else "right"
    yield f"{found.format}: {said}"
    for row in found.choices.rows:
        sizes = size_range(row.first, row.last)
        yield f"  {row.comm} {row.collective}: {sizes}: {_words(row)}"
    yield from (f"note: {text}" for text in found.notes)


def _words(row: Chosen) -> str:
    if row.call is None:
        return OWN
    return str(row.call) if row.call.algorithm else f"{OWN}, {row.call}"
