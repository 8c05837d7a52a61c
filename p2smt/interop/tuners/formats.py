"""The table of formats of such files: how one is told from the others, and who judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from p2smt.errors import InputError, did_you_mean
from p2smt.interop.tuners.choices import ChoiceTable, Chosen, Comm, FileFault, FileVerdict
from p2smt.interop.tuners.mpich import judge_ch4, judge_mpich, looks_ch4, looks_mpich
from p2smt.interop.tuners.nccl import judge_nccl, judge_ncclx, judge_rccl, looks_nccl, looks_ncclx
from p2smt.interop.tuners.openmpi import judge_tuned, looks_tuned
from p2smt.interop.tuners.openmpi_han import judge_han, looks_han
from p2smt.interop.tuners.rules import size_range
from p2smt.units import counted


@dataclass(frozen=True, slots=True)
class TunerFormat:
    """A format.

    name: what ``--to`` and ``--as`` call it.  what: a line on who reads it.
    looks: whether a text is of this format as far as its shape tells; of two that a text fits, the
        first of the table is taken.
    judge: what the library makes of a text, for these communicators; never refuses a text.
    """

    name: str
    what: str
    looks: Callable[[str], bool]
    judge: Callable[[str, Sequence[Comm]], FileVerdict]


FORMATS: tuple[TunerFormat, ...] = (
    TunerFormat("nccl-tuner", "NCCL's example tuner plugin", looks_nccl, judge_nccl),
    TunerFormat("rccl-tuner", "RCCL's built-in tuner", looks_nccl, judge_rccl),
    TunerFormat("ncclx-tuner", "NCCLX's built-in tuner", looks_ncclx, judge_ncclx),
    TunerFormat("ompi-han", "Open MPI's component HAN", looks_han, judge_han),
    TunerFormat("ompi-tuned", "Open MPI's component tuned", looks_tuned, judge_tuned),
    TunerFormat("mpich", "MPICH, its table of algorithms", looks_mpich, judge_mpich),
    TunerFormat("mpich-ch4", "MPICH, its table of compositions", looks_ch4, judge_ch4),
)


def tuner_format(name: str) -> TunerFormat:
    """The row of that name.

    Raises:
        InputError: there is none.
    """
    for row in FORMATS:
        if row.name == name:
            return row
    names = [row.name for row in FORMATS]
    rule = f"is none of {', '.join(names)}"
    raise InputError(f"--as {name[:40]!r}", rule, did_you_mean(name, names) or "name one of them")


def recognised(text: str) -> TunerFormat | None:
    """The format that a text is of, as its first line says or else by its shape; None: of none."""
    head = text.lstrip().partition("\n")[0]
    said = next((row for row in FORMATS if head.startswith(f"# {row.name}:")), None)
    return said or next((row for row in FORMATS if row.looks(text)), None)


def _empty(text: str) -> bool:
    """Whether a text has comments alone, as a file has that changes nothing."""
    return all(line.strip()[:1] in ("", "#") for line in text.split("\n"))


def judged(
    text: str,
    comms: Sequence[Comm],
    given: TunerFormat | None = None,
    source: str = "the file",
) -> FileVerdict:
    """What the library of a format makes of a text; without one, that of the text's own shape.

    ``source`` names the file in messages.

    Raises:
        InputError: the text is of no known format.
    """
    found = recognised(text)
    if given is not None and (given.looks(text) or _empty(text)):
        return given.judge(text, comms)
    if found is None:
        names = ", ".join(row.name for row in FORMATS)
        raise InputError(source, f"is of none of the formats {names}", "name another file")
    if given is None or given is found:
        return found.judge(text, comms)
    what = f"this is a file of {found.name}, which {given.name} does not read"
    return FileVerdict(given.name, (FileFault("other-format", 0, what),), (), ChoiceTable(()))


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
