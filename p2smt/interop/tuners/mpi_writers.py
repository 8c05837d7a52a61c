"""Files for MPI libraries: what is written, and on what it rests.

Every format falls back to the library's own choice, so that a file has only what measured times
show to gain; communicators that are not asked for keep the library's choice, too.  What is only
predicted to gain is written on request, with ``model-only`` on its line, or in the file's name.

Algorithms are named in the words of the cost model.  What has no name has no price: what runs other
collectives by the library's own choice (linear all-gathers, all-reduces of two steps), trees of
another shape on every machine (MPICH's ``tree``), and orders of operations that do not commute.
Sources as in :mod:`p2smt.cost.library.mpi`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from p2smt.cluster.link import Algorithm
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective, Operation, RequestKind
from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.tuners import openmpi
from p2smt.interop.tuners.choices import (
    LARGEST_BYTES,
    MODEL_ONLY,
    ChoiceTable,
    Chosen,
    Comm,
    LibraryCall,
)
from p2smt.interop.tuners.measured import DEFAULT_MARGIN, ForcedTimes, MeasuredWords
from p2smt.interop.tuners.mpich import algorithm_name, mpich_known, write_ch4, write_mpich
from p2smt.interop.tuners.openmpi_han import write_han
from p2smt.interop.tuners.regions import CommMember, CommScene, Pair, Region, regions
from p2smt.interop.tuners.writers import AskedTuner
from p2smt.units import counted

Named = Mapping[str, Mapping[str, Algorithm | None]]
"""By collective and by the library's name; None: messages from peer to peer, all at once."""

OPEN_MPI_NAMES: Named = {
    "allgather": {
        "bruck": Algorithm.BRUCK,
        "recursive_doubling": Algorithm.HALVING_DOUBLING,
        "ring": Algorithm.RING,
        "neighbor": Algorithm.NEIGHBOUR,
    },
    "allreduce": {
        "basic_linear": Algorithm.LINEAR,
        "recursive_doubling": Algorithm.RECURSIVE_DOUBLING,
        "ring": Algorithm.RING,
        "rabenseifner": Algorithm.NEAREST_FIRST,
    },
    "alltoall": {
        "linear": None,
        "pairwise": Algorithm.PAIRWISE,
        "modified_bruck": Algorithm.BRUCK,
    },
    "bcast": {
        "basic_linear": Algorithm.LINEAR,
        "pipeline": Algorithm.CHAIN,
        "split_binary_tree": Algorithm.SPLIT_BINARY,
        "binary_tree": Algorithm.BINARY,
        "binomial": Algorithm.BINOMIAL,
        "knomial": Algorithm.KNOMIAL,
        "scatter_allgather": Algorithm.SCATTER_DOUBLING,
        "scatter_allgather_ring": Algorithm.SCATTER_GATHER,
    },
    "reduce": {
        "linear": Algorithm.LINEAR,
        "pipeline": Algorithm.CHAIN,
        "binary": Algorithm.BINARY,
        "binomial": Algorithm.ROOTED,
        "rabenseifner": Algorithm.NEAREST_FIRST,
    },
    "reduce_scatter_block": {
        "basic_linear": Algorithm.ROOTED,
        "recursive_doubling": Algorithm.RECURSIVE_DOUBLING,
        "recursive_halving": Algorithm.HALVING_DOUBLING,
        "butterfly": Algorithm.NEAREST_FIRST,
    },
}
MPICH_NAMES: Named = {
    "allgather": {
        "brucks": Algorithm.BRUCK,
        "recursive_doubling": Algorithm.HALVING_DOUBLING,
        "ring": Algorithm.RING,
    },
    "allreduce": {
        "recursive_doubling": Algorithm.RECURSIVE_DOUBLING,
        "ring": Algorithm.RING,
        "reduce_scatter_allgather": Algorithm.NEAREST_FIRST,
    },
    "alltoall": {
        "brucks": Algorithm.BRUCK,
        "pairwise": Algorithm.PAIRWISE,
        "scattered": None,
    },
    "bcast": {
        "binomial": Algorithm.ROOTED,
        "scatter_recursive_doubling_allgather": Algorithm.SCATTER_DOUBLING,
        "scatter_ring_allgather": Algorithm.SCATTER_GATHER,
    },
    "reduce": {"binomial": Algorithm.ROOTED, "reduce_scatter_gather": Algorithm.NEAREST_FIRST},
    "reduce_scatter_block": {
        "pairwise": Algorithm.PAIRWISE,
        "recursive_halving": Algorithm.HALVING_DOUBLING,
        "recursive_doubling": Algorithm.RECURSIVE_DOUBLING,
    },
}


def nameable(scene: CommScene, names: Mapping[str, Algorithm | None]) -> dict[int, str]:
    """The ways of a scene that a file can name, by their place, and what they are called there."""
    found = dict[int, str]()
    for name, algorithm in names.items():
        for place in scene.able:
            if scene.choice.ways[place].algorithm is algorithm:
                found.setdefault(place, name)
    return found


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
    so many ranks, and what else is to be set.

    family: of the libraries that read it.  priced: the algorithms that the cost model knows.
    comments: whether the format has any.  across: more notes, where ranks lie on several nodes.
    """

    name: str
    text: Callable[[ChoiceTable], str]
    algorithms: Callable[[str, int], Sequence[str]]
    family: str
    priced: Named
    comments: bool
    notes: tuple[str, ...]
    across: tuple[str, ...] = ()


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


_WITHOUT_HAN = "openmpi-4"
"""Its collectives over several nodes are those of tuned, as 4.1 leaves HAN off."""
_FIXED = "it is for Open MPI 4.1 and 5.0; 6.0 reads the numbers of ranks otherwise"
MPI_WRITERS = (
    MpiWriter(
        openmpi.NAME,
        openmpi.write_tuned,
        _of_openmpi,
        "openmpi",
        OPEN_MPI_NAMES,
        comments=True,
        notes=(
            "use it with --mca coll_tuned_use_dynamic_rules 1 "
            "--mca coll_tuned_dynamic_rules_filename {path}",
            _FIXED,
        ),
        across=(
            "on several nodes Open MPI 5.0 asks HAN first: write ompi-han as well, or --mca coll "
            "^han",
        ),
    ),
    MpiWriter(
        "ompi-han",
        write_han,
        _of_openmpi,
        "openmpi",
        OPEN_MPI_NAMES,
        comments=True,
        notes=(
            "use it with --mca coll_han_use_dynamic_file_rules 1 "
            "--mca coll_han_dynamic_rules_filename {path}, beside the file of ompi-tuned",
            "it is for Open MPI 5.0, and for communicators of several nodes alone",
        ),
    ),
    MpiWriter(
        "mpich",
        write_mpich,
        _of_mpich,
        "mpich",
        MPICH_NAMES,
        comments=False,
        notes=(
            "use it with MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={path}; it is for MPICH 5.0",
        ),
        across=(
            "on several nodes MPICH takes a hierarchy for what mpich-ch4 does not say: write that "
            "as well",
        ),
    ),
    MpiWriter(
        "mpich-ch4",
        write_ch4,
        _of_mpich,
        "mpich",
        MPICH_NAMES,
        comments=False,
        notes=(
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


def write_mpi(writer: MpiWriter, topology: Topology, asked: AskedTuner, path: str) -> Exported:
    """The file, what else must be set and what it rests on.

    Raises:
        InputError: the topology has another library, or none and predictions are asked for, or the
            format has no word for these; the library has no such algorithm of that collective and
            so many ranks; two communicators that the format cannot tell apart want different rows.
    """
    _check(writer, asked.measured)
    if topology.library or asked.model_only:
        _check_library(writer, topology)
    rows, by_ranks = list[Chosen](), dict[int, tuple[Comm, list[Chosen]]]()
    for member in asked.members:
        comm, found = member.comm, _all_rows(writer, topology, asked, member)
        other, known = by_ranks.setdefault(comm.ranks, (comm, found))
        if [_told(row) for row in known] != [_told(row) for row in found]:
            rule = f"want different rows, and {writer.name} cannot tell them apart"
            raise InputError(f"{other} and {comm}", rule, "export for one of them, with --comms")
        if all(row.comm != comm for row in rows):
            rows += found
    text = writer.text(ChoiceTable(tuple(rows)))
    if any(row.model_only for row in rows) and not writer.comments:
        _check_name(writer, path)
    notes = [note.format(path=path) for note in _notes(writer, topology, asked)]
    return Exported(text, (*notes, *_advice(asked, rows)))


def _notes(writer: MpiWriter, topology: Topology, asked: AskedTuner) -> Iterator[str]:
    """How the file is used; of several nodes also what else there is to be written."""
    yield from writer.notes
    if topology.library_name != _WITHOUT_HAN and any(one.comm.nodes > 1 for one in asked.members):
        yield from writer.across


def _check_library(writer: MpiWriter, topology: Topology) -> None:
    if topology.library_name.partition("-")[0] != writer.family:
        given = f"--to {writer.name}: library {topology.library_name or 'none'} of {topology.name}"
        rule = f"is not the one that reads {writer.name}"
        known = f"library: {writer.family}-5"
        raise InputError(given, rule, f"name {known} in the topology, or calibrate with it")


def _check_name(writer: MpiWriter, path: str) -> None:
    """JSON has no comments, so that the file's name says what rests on predictions alone."""
    if MODEL_ONLY not in os.path.basename(path):
        rule = f"must have {MODEL_ONLY} in its name, as {writer.name} has no comments to say it"
        raise InputError(f"file {path[-80:]!r}", rule, f"write -o {writer.name}-{MODEL_ONLY}.json")


def _told(row: Chosen) -> tuple[str, int, int, LibraryCall | None]:
    return row.collective, row.first, row.last, row.call


def _advice(asked: AskedTuner, rows: Sequence[Chosen]) -> Iterator[str]:
    changed = [row for row in rows if row.call is not None]
    predicted = sum(row.model_only for row in changed)
    yield f"sizes for which the library's choice changes: {counted(len(changed), 'row')}"
    if predicted:
        yield f"{predicted} of them are {MODEL_ONLY}: measure before a job relies on them"
    if not asked.measured.forced and not asked.model_only:
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


def _all_rows(
    writer: MpiWriter, topology: Topology, asked: AskedTuner, member: CommMember
) -> list[Chosen]:
    return [row for name in MPI_OPERATIONS for row in _rows(writer, topology, asked, name, member)]


def _rows(
    writer: MpiWriter, topology: Topology, asked: AskedTuner, collective: str, member: CommMember
) -> Iterable[Chosen]:
    """All sizes: where something gains that, elsewhere the library's own choice."""
    start = 0
    for region, predicted in _gains(writer, topology, asked, collective, member):
        if region.first > start:
            yield Chosen(collective, member.comm, start, region.first - 1, None)
        call, ends = _call(region.found[0]), (region.first, region.last)
        yield Chosen(collective, member.comm, *ends, call, predicted)
        start = region.last + 1
    if start <= LARGEST_BYTES:
        yield Chosen(collective, member.comm, start, LARGEST_BYTES, None)


def _call(name: str) -> LibraryCall:
    """An algorithm as it runs where it is forced: Open MPI's chains are then four side by side."""
    return LibraryCall(name, settings=(("fan", 4),) if name == "chain" else ())


def _gains(
    writer: MpiWriter, topology: Topology, asked: AskedTuner, collective: str, member: CommMember
) -> list[tuple[Region, bool]]:
    """Regions that gain, in their order, and whether they are only predicted: where tables have
    the library's own times these alone count, from the least size to the largest."""
    place = collective, member.comm
    margin = DEFAULT_MARGIN if asked.margin is None else asked.margin
    found = [(region, False) for region in asked.measured.gains(place, margin)]
    if asked.model_only:
        tabled = asked.measured.own.get(place, {})
        known = (min(tabled), max(tabled)) if tabled else None
        for region in _predicted(writer, topology, asked.margin, collective, member):
            found += [(one, True) for one in _outside(region, known)]
    return sorted(found, key=lambda one: one[0].first)


def _outside(region: Region, known: tuple[int, int] | None) -> Iterator[Region]:
    """What of a region lies below and above the sizes that were measured."""
    if known is None:
        yield region
        return
    below, above = min(region.last, known[0] - 1), max(region.first, known[1] + 1)
    if region.first <= below:
        yield Region(region.first, below, region.found)
    if above <= region.last:
        yield Region(above, region.last, region.found)


def _predicted(
    writer: MpiWriter,
    topology: Topology,
    margin: float | None,
    collective: str,
    member: CommMember,
) -> Iterator[Region]:
    """Where an algorithm that the file can name is predicted to gain more than the margin."""
    scene = CommScene.of(topology, member, MPI_OPERATIONS[collective])
    able = writer.algorithms(collective, member.comm.ranks)
    names = {name: way for name, way in writer.priced[collective].items() if name in able}
    ways = nameable(scene, names)

    def at(size: int) -> Pair:
        best = scene.gaining(size, margin, ways)
        return ("", "") if best == scene.choice.pick(size) else (ways[best], "")

    return (region for region in regions(at) if region.found[0])
