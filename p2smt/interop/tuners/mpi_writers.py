"""Files for MPI libraries: what is written, and on what it rests.

Every format falls back to the library's own choice, so that a file has only what measured times
show to gain; communicators that are not asked for keep the library's choice, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from p2smt.collectives.names import Collective, Operation, RequestKind
from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.tuners import openmpi
from p2smt.interop.tuners.choices import LARGEST_BYTES, ChoiceTable, Chosen, Comm, LibraryCall
from p2smt.interop.tuners.measured import DEFAULT_MARGIN, ForcedTimes, MeasuredWords
from p2smt.interop.tuners.mpich import mpich_known
from p2smt.interop.tuners.mpich_write import algorithm_name, write_ch4, write_mpich
from p2smt.interop.tuners.openmpi_han import write_han
from p2smt.interop.tuners.writers import AskedTuner

MPI_OPERATIONS: dict[str, Operation] = {
    "allgather": Collective.ALL_GATHER,
    "allreduce": Collective.ALL_REDUCE,
    "alltoall": RequestKind.ALL_TO_ALL,
    "bcast": Collective.BROADCAST,
    "reduce": Collective.REDUCE,
    "reduce_scatter_block": Collective.REDUCE_SCATTER,
}
"""The collectives of such files by the names that MPI gives them."""


@dataclass(frozen=True, slots=True)
class MpiWriter:
    """A format: its name, its text of a table, the algorithms that it can name of a collective on
    so many ranks, and what else is to be set."""

    name: str
    text: Callable[[ChoiceTable], str]
    algorithms: Callable[[str, int], Sequence[str]]
    notes: tuple[str, ...]


def _of_openmpi(collective: str, ranks: int) -> Sequence[str]:
    names = openmpi.ALGORITHMS[collective]
    known = [name for name in names if name not in openmpi.NOT_IN_4_1]
    return [name for name in known if name != openmpi.TWO_RANKS or ranks == 2]


def _of_mpich(collective: str, ranks: int) -> Sequence[str]:
    head, power = algorithm_name(collective, ""), ranks & (ranks - 1) == 0
    return [
        name.removeprefix(head)
        for name, needs in mpich_known().restrictions.items()
        if name.startswith(head)
        and (power or "power-of-two" not in needs)
        and "inplace" not in needs
    ]


_FIXED = "it is for Open MPI 4.1 and 5.0; 6.0 reads the numbers of ranks otherwise"
MPI_WRITERS = (
    MpiWriter(
        openmpi.NAME,
        openmpi.write_tuned,
        _of_openmpi,
        (
            "use it with --mca coll_tuned_use_dynamic_rules 1 "
            "--mca coll_tuned_dynamic_rules_filename {path}",
            "on several nodes Open MPI 5.0 asks HAN first: write ompi-han as well, or --mca coll "
            "^han",
            _FIXED,
        ),
    ),
    MpiWriter(
        "ompi-han",
        write_han,
        _of_openmpi,
        (
            "use it with --mca coll_han_use_dynamic_file_rules 1 "
            "--mca coll_han_dynamic_rules_filename {path}, beside the file of ompi-tuned",
            "it is for Open MPI 5.0, and for communicators of several nodes alone",
        ),
    ),
    MpiWriter(
        "mpich",
        write_mpich,
        _of_mpich,
        (
            "use it with MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={path}; it is for MPICH 5.0",
            "on several nodes MPICH takes a hierarchy for what mpich-ch4 does not say: write that "
            "as well",
        ),
    ),
    MpiWriter(
        "mpich-ch4",
        write_ch4,
        _of_mpich,
        (
            "use it with MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE={path}, beside the file of "
            "mpich; it is for MPICH 5.0",
        ),
    ),
)


def mpi_writer(name: str) -> MpiWriter | None:
    """The format of that name; None: it is none of these."""
    return next((row for row in MPI_WRITERS if row.name == name), None)


def mpi_words(writer: MpiWriter) -> MeasuredWords:
    """How ``--measured`` names algorithms of this library."""
    known = sorted({name for of in MPI_OPERATIONS for name in writer.algorithms(of, 2)})

    def way(text: str, path: str) -> tuple[str, str]:
        if not path or text not in known:
            rule = "must be own=FILE or ALGORITHM=FILE, such as ring=a.txt"
            raise InputError(
                f"--measured {f'{text}={path}'[:60]!r}", rule, f"algorithms are {', '.join(known)}"
            )
        return text, ""

    return MeasuredWords(MPI_OPERATIONS, way)


def write_mpi(writer: MpiWriter, asked: AskedTuner, path: str) -> Exported:
    """The file, what else must be set and what it rests on.

    Raises:
        InputError: the library has no such algorithm of that collective and so many ranks; two
            communicators that the format cannot tell apart want different rows.
    """
    if asked.model_only:
        rule = "writes predictions, and files for MPI rest on measured times alone"
        raise InputError("--model-only", rule, "drop it, and give --measured")
    _check(writer, asked.measured)
    rows, by_ranks = list[Chosen](), dict[int, tuple[Comm, list[Chosen]]]()
    for comm in dict.fromkeys(member.comm for member in asked.members):
        found = [row for name in MPI_OPERATIONS for row in _rows(asked, name, comm)]
        other, known = by_ranks.setdefault(comm.ranks, (comm, found))
        if [_told(row) for row in known] != [_told(row) for row in found]:
            rule = f"want different rows, and {writer.name} cannot tell them apart"
            raise InputError(f"{other} and {comm}", rule, "export for one of them, with --comms")
        rows += found
    changed = sum(row.call is not None for row in rows)
    notes = [text.format(path=path) for text in writer.notes]
    notes += [f"sizes for which the library's choice changes: {changed} rows", *_advice(asked)]
    return Exported(writer.text(ChoiceTable(tuple(rows))), tuple(notes))


def _told(row: Chosen) -> tuple[str, int, int, LibraryCall | None]:
    return row.collective, row.first, row.last, row.call


def _advice(asked: AskedTuner) -> Iterator[str]:
    if not asked.measured.forced:
        yield (
            "nothing changes without --measured: run the library as it is, and with an algorithm "
            "forced, and give both tables"
        )


def _check(writer: MpiWriter, measured: ForcedTimes) -> None:
    for (name, comm), (algorithm, _) in measured.forced:
        known = writer.algorithms(name, comm.ranks)
        if algorithm not in known:
            rule = f"is no algorithm of {name} on {comm.ranks} ranks in files of {writer.name}"
            raise InputError(f"--measured {algorithm}", rule, f"there are {', '.join(known)}")


def _rows(asked: AskedTuner, collective: str, comm: Comm) -> Iterable[Chosen]:
    """All sizes: where something gains that, elsewhere the library's own choice."""
    margin, start = DEFAULT_MARGIN if asked.margin is None else asked.margin, 0
    for region in asked.measured.gains((collective, comm), margin):
        if region.first > start:
            yield Chosen(collective, comm, start, region.first - 1, None)
        call = LibraryCall(region.found[0])
        yield Chosen(collective, comm, region.first, region.last, call)
        start = region.last + 1
    yield Chosen(collective, comm, start, LARGEST_BYTES, None)
