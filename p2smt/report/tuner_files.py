"""What a file makes a library do, as lines and as data."""

from __future__ import annotations

from collections.abc import Iterator

from p2smt.interop.tuners.choices import Chosen, FileVerdict
from p2smt.interop.tuners.rules import size_range
from p2smt.report.outputs.tuners import TunerFault, TunerRow, VerifyTunerOutput
from p2smt.report.text import printable

OWN = "the library's own choice"


def tuner_lines(found: FileVerdict) -> Iterator[str]:
    """The faults, a line each; the verdict; what runs by size; notes."""
    for fault in found.faults:
        yield printable(str(fault))
    count = len(found.faults)
    said = "right" if not count else f"{count} fault{'s' * (count > 1)}"
    yield f"{found.format}: {said}"
    for row in found.choices.rows:
        sizes = size_range(row.first, row.last)
        yield f"  {row.comm} {row.collective}: {sizes}: {_words(row)}"
    yield from (f"note: {printable(text)}" for text in found.notes)


def _words(row: Chosen) -> str:
    if row.call is None:
        return OWN
    return str(row.call) if row.call.algorithm else f"{OWN}, {row.call}"


def tuner_data(found: FileVerdict) -> VerifyTunerOutput:
    """The same as data."""
    return VerifyTunerOutput(
        verdict="faults" if found.faults else "right",
        format=found.format,
        faults=[TunerFault(name=f.name, line=f.line, what=f.what) for f in found.faults],
        notes=found.notes,
        table=[_row(row) for row in found.choices.rows],
    )


def _row(row: Chosen) -> TunerRow:
    call = row.call
    return TunerRow(
        collective=row.collective,
        comm=str(row.comm),
        first=row.first,
        last=row.last,
        algorithm=call.algorithm or None if call else None,
        protocol=call.protocol or None if call else None,
        settings=" ".join(f"{name}={value}" for name, value in call.settings) if call else "",
    )
