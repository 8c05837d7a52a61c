"""Files that tell a library which algorithm to run: written by `export`, judged by `verify`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, Texts, flag, option
from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.interop.exported import Exported
    from p2smt.interop.tuners.choices import Chosen, Comm, FileVerdict
    from p2smt.interop.tuners.regions import CommMember
    from p2smt.report.outputs.verified import TunerRow, VerifyTunerOutput

MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class TunerOptions:
    """What a file for a library is to be made from, beside or without a plan."""

    topology: Text = o.TOPOLOGY
    comms: Text = option(
        "NxR,..",
        "Communicators of the job, nodes x ranks per node, such as 1x8,2x8; default: the groups of "
        "the PLAN.",
    )
    measured: Texts = option(
        "WAY=FILE",
        "Tables of nccl-tests: own=FILE of the library's own choice, and ring/ll128=FILE with "
        "NCCL_ALGO and NCCL_PROTO set; of MPI, those of OSU, ring=FILE with that algorithm forced.",
    )
    margin: Text = option(
        "PERCENT",
        "Another way only where it gains more; default: 10% of measured times, of predicted ones "
        "what their accuracy tells apart.",
    )
    model_only: bool = flag("Write what is only predicted to gain, with that word on its line.")

    @property
    def any_given(self) -> bool:
        """Whether one of them is given."""
        return self != TunerOptions()


def tuner_file(to: str, source: Text, asked: TunerOptions, output: Text) -> Exported | None:
    """The file of a format for libraries; None: ``to`` is no such format.

    Raises:
        InputError: the options do not say what to write, or it cannot be.
    """
    from p2smt.interop.tuners.measured import read_forced
    from p2smt.interop.tuners.mpi_writers import mpi_words, mpi_writer, write_mpi
    from p2smt.interop.tuners.writers import AskedTuner, tuner_writer, write_tuner

    writer, mpi = tuner_writer(to), mpi_writer(to)
    if writer is None and mpi is None:
        return None
    topology, members = _scene(to, source, asked)
    margin = None if asked.margin is None else given.gap_of(asked.margin, "--margin")
    comms = {member.comm for member in members}
    words = None if mpi is None else mpi_words(mpi)
    measured = read_forced(asked.measured or [], words, min(comms) if len(comms) == 1 else None)
    made = AskedTuner(members, measured, margin, asked.model_only)
    if mpi is not None:
        return write_mpi(mpi, topology, made, output or "FILE")
    return None if writer is None else write_tuner(writer, topology, made, output or "FILE")


def _scene(to: str, source: Text, asked: TunerOptions) -> tuple[Topology, tuple[CommMember, ...]]:
    """The cluster and the communicators on it."""
    from p2smt.interop.tuners.choices import parse_comms
    from p2smt.interop.tuners.members import plan_members
    from p2smt.interop.tuners.mpi_writers import MPI_OPERATIONS, mpi_writer
    from p2smt.interop.tuners.regions import OPERATIONS, members_of
    from p2smt.plans.file import read_plan

    if (source is None) == (asked.topology is None):
        rule = "takes a PLAN, or --topology with --comms"
        raise InputError("export of a file for a library", rule, "give one of them")
    if source is not None:
        if asked.comms is not None:
            raise InputError("--comms", "goes with --topology; a PLAN has groups", "drop one")
        named = OPERATIONS if mpi_writer(to) is None else MPI_OPERATIONS
        return plan_members(read_plan(source), f"plan {source[:200]}", to, named)
    if asked.comms is None:
        rule = "does not say which communicators the job has"
        raise InputError("--topology alone", rule, "add --comms 1x8,2x8")
    topology = given.topology_of(asked.topology)
    return topology, tuple(members_of(topology, comm) for comm in parse_comms(asked.comms))


# Judging such a file.


def tuner_text(path: str, named: Text) -> str | None:
    """The text of a file for a library; None: it is none, and ``--as`` does not say so.

    Raises:
        InputError: ``--as`` says so, and it cannot be read.
    """
    from p2smt.files.yaml_text import read_bytes
    from p2smt.interop.tuners.formats import recognised

    if not os.path.isfile("" if "\0" in path else path):  # a pipe would wait for its writer
        if named is None:
            return None
        rule = "is not a regular file" if os.path.exists(path) else "does not exist"
        raise InputError(f"file {path[:200]!r}", rule, "name a file")
    try:
        raw = read_bytes(path, f"file {path[:200]!r}", MOST_BYTES)
    except InputError:
        if named is None:
            return None
        raise
    text = raw.decode("utf-8", "surrogateescape")
    return text if named is not None or recognised(text) is not None else None


def verify_tuner(path: str, text: str, named: Text, comms: Text, shown: o.ShownOptions) -> int:
    """Say what a library makes of a file; exit code 1 if something of it cannot be meant."""
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import tell
    from p2smt.interop.tuners.choices import parse_comms
    from p2smt.interop.tuners.formats import judged, tuner_format, tuner_lines
    from p2smt.report.screens.check_screen import checked_screen
    from p2smt.report.text import printable

    form = None if named is None else tuner_format(named)
    asked: tuple[Comm, ...] = () if comms is None else parse_comms(comms)
    found = judged(text, asked, form, f"file {path[:200]!r}")
    lines = [*map(printable, tuner_lines(found))]
    tell(
        shown.json,
        lambda: _data(found),
        lambda: lines if shown.details else checked_screen(lines, verdict=f"{found.format}: "),
    )
    return REFUTED if found.faults else OK


def _data(found: FileVerdict) -> VerifyTunerOutput:
    """The verdict as data."""
    from p2smt.report.outputs.verified import TunerFault, VerifyTunerOutput

    return VerifyTunerOutput(
        verdict="faults" if found.faults else "right",
        format=found.format,
        faults=[TunerFault(name=f.name, line=f.line, what=f.what) for f in found.faults],
        notes=found.notes,
        table=[_row(row) for row in found.choices.rows],
    )


def _row(row: Chosen) -> TunerRow:
    from p2smt.report.outputs.verified import TunerRow

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
