"""What a file makes a library do, in lines."""

from __future__ import annotations

from collections.abc import Iterator

from p2smt.interop.tuners.choices import Chosen, FileVerdict
from p2smt.interop.tuners.rules import size_range

OWN = "the library's own choice"


def tuner_lines(found: FileVerdict) -> Iterator[str]:
    """The faults, a line each; the verdict; what runs by size; notes."""
    for fault in found.faults:
        yield str(fault)
    count = len(found.faults)
    said = "right" if not count else f"{count} fault{'s' * (count > 1)}"
    yield f"{found.format}: {said}"
    for row in found.choices.rows:
        sizes = size_range(row.first, row.last)
        yield f"  {row.comm} {row.collective}: {sizes}: {_words(row)}"
    yield from (f"note: {text}" for text in found.notes)


def _words(row: Chosen) -> str:
    if row.call is None:
        return OWN
    return str(row.call) if row.call.algorithm else f"{OWN}, {row.call}"
