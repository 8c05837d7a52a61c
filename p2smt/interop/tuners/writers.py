"""Tuner files of NCCL, RCCL and NCCLX: what is written, and why no more.

NCCL's example plugin gives one channel to every call that no row matches, so its file has all five
collectives, every size, and every communicator; where nothing is known to gain, the library's own
choice as it is predicted.  RCCL and NCCLX fall back to their own choice, so that their files have
only rows that gain.  A row that changes the choice rests on measured times, or says ``model-only``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.tuners.choices import LARGEST_BYTES, MODEL_ONLY, Comm
from p2smt.interop.tuners.measured import DEFAULT_MARGIN, ForcedTimes
from p2smt.interop.tuners.regions import (
    SMALLEST,
    CommMember,
    Region,
    gaining_regions,
    own_regions,
)
from p2smt.interop.tuners.rules import ALWAYS, COLLECTIVES, OWN

_TESTS = {"allgather": "all_gather", "reducescatter": "reduce_scatter", "allreduce": "all_reduce"}
_ALGO = {"collnet_direct": "CollnetDirect", "collnet_chain": "CollnetChain", "pat": "PAT"}
_ALGO |= {"nvls": "NVLS", "nvls_tree": "NVLSTree", "ring": "Ring", "tree": "Tree"}
_MOST_RUNS = 12


@dataclass(frozen=True, slots=True)
class TunerWriter:
    """A format: its name, the family of libraries that reads it, a row, and what else is to be set.

    complete: whether calls that no row matches are worse off than without a file.
    """

    name: str
    family: str
    row: Callable[[str, Comm, Region, bool], str]
    complete: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskedTuner:
    """What a file is to be made from.

    margin: the part of the library's own time that is to be gained; None: of measured times
        10 %, of predicted ones what the accuracy of predictions tells apart.
    model_only: write what is only predicted to gain, too.
    """

    members: tuple[CommMember, ...]
    measured: ForcedTimes
    margin: float | None = None
    model_only: bool = False


def _vector_row(collective: str, comm: Comm, region: Region, model: bool, channels: int) -> str:
    """Of NCCL's plugin and RCCL, which read ten columns and no eleventh."""
    said = ("-1", "-1", MODEL_ONLY) if model else ()
    numbers = (channels, comm.nodes, comm.ranks)
    return ",".join(
        map(str, (collective, region.first, region.last, *region.found, *numbers, *said))
    )


def _nccl_row(collective: str, comm: Comm, region: Region, model: bool) -> str:
    return _vector_row(collective, comm, region, model, OWN)


def _rccl_row(collective: str, comm: Comm, region: Region, model: bool) -> str:
    return _vector_row(collective, comm, region, model, -1)


def _ncclx_row(collective: str, comm: Comm, region: Region, model: bool) -> str:
    """Sizes are parts of a rank, of which the format tells no two apart that are alike."""
    first, last = region.first // comm.ranks, region.last // comm.ranks
    said = ("", MODEL_ONLY) if model else ()
    sizes = f"[{first},)" if region.last == LARGEST_BYTES else f"[{first},{last}]"
    return ",".join(
        map(str, (collective, sizes, *region.found, -1, comm.nodes, comm.per_node, *said))
    )


TUNER_WRITERS = (
    TunerWriter(
        "nccl-tuner",
        "nccl",
        _nccl_row,
        complete=True,
        notes=(
            "use it with NCCL_TUNER_PLUGIN=libnccl-tuner-example.so and "
            "NCCL_TUNER_CONFIG_FILE={path}; build the plugin from NCCL's plugins/tuner/example",
            "the plugin overwrites NCCL's constants (of Blackwell, of NVLS between nodes), takes "
            "the place of a network plugin's tuner, and is not asked of symmetric windows",
        ),
    ),
    TunerWriter(
        "rccl-tuner",
        "rccl",
        _rccl_row,
        complete=False,
        notes=("use it with NCCL_TUNER_CONFIG_FILE={path}",),
    ),
    TunerWriter(
        "ncclx-tuner",
        "nccl",
        _ncclx_row,
        complete=False,
        notes=("use it with NCCLX_TUNER_CONFIG_FILE={path}; a tuner plugin is then skipped",),
    ),
)


def tuner_writer(name: str) -> TunerWriter | None:
    """The format of that name; None: it is none of these."""
    return next((row for row in TUNER_WRITERS if row.name == name), None)


@dataclass(slots=True)
class _Rows:
    """The rows of a file, and what they rest on."""

    lines: list[str]
    changed: int = 0
    pinned: int = 0


def write_tuner(writer: TunerWriter, topology: Topology, asked: AskedTuner, path: str) -> Exported:
    """The file, and what else must be set, what it rests on, and which runs would change it.

    Raises:
        InputError: the topology has another library, or two communicators that the format cannot
            tell apart want different rows.
    """
    _check_library(writer, topology)
    rows, runs, written = _Rows([]), list[str](), dict[Comm, list[str]]()
    for member in asked.members:
        lines, start = list[str](), (rows.changed, rows.pinned)
        for collective in COLLECTIVES:
            own = own_regions(topology, member, collective)
            gains = _gains(topology, asked, member, collective, own)
            runs += _runs(topology, asked, member, collective, own)
            lines += _lines(writer, member, collective, own, gains, rows)
        known = written.get(member.comm)
        if known is not None and known != lines:
            given = f"two communicators of {member.comm.nodes} nodes and {member.comm.ranks} ranks"
            rule = f"want different rows, and {writer.name} cannot tell them apart"
            raise InputError(given, rule, "export for one of them, with --comms")
        if known is not None:
            rows.changed, rows.pinned = start
        written[member.comm] = lines
    head = [f"# {writer.name}: {topology.name}, {topology.library_name}", *_comments(writer)]
    text = "\n".join((*head, *(line for lines in written.values() for line in lines))) + "\n"
    return Exported(text, tuple(_notes(writer, asked, rows, runs, path)))


def _check_library(writer: TunerWriter, topology: Topology) -> None:
    if topology.library_name.partition("-")[0] != writer.family:
        given = f"--to {writer.name}: library {topology.library_name or 'none'} of {topology.name}"
        rule = f"is no {writer.family.upper()}, which alone reads such a file"
        raise InputError(given, rule, f"name a topology with {writer.family.upper()}")


def _comments(writer: TunerWriter) -> tuple[str, ...]:
    if writer.complete:
        return ("# calls that no row matches get one channel: every communicator is listed",)
    return ("# calls that no row matches are the library's own choice",)


def _gains(
    topology: Topology,
    asked: AskedTuner,
    member: CommMember,
    collective: str,
    own: Sequence[Region],
) -> list[tuple[Region, bool]]:
    """Rows that gain, those that were measured first; whether they are only predicted."""
    margin = DEFAULT_MARGIN if asked.margin is None else asked.margin
    found = [(one, False) for one in asked.measured.gains((collective, member.comm), margin)]
    if asked.model_only:
        found += [(one, True) for one in _predicted(topology, asked, member, collective, own)]
    return found


def _predicted(
    topology: Topology,
    asked: AskedTuner,
    member: CommMember,
    collective: str,
    own: Sequence[Region],
) -> list[Region]:
    """Where another way than the library's own is predicted to gain more than the margin."""
    found = []
    for one in gaining_regions(topology, member, collective, asked.margin):
        for mine in own:
            first, last = max(one.first, mine.first), min(one.last, mine.last)
            if first <= last and one.found != mine.found:
                found.append(Region(first, last, one.found))
    return found


def _lines(
    writer: TunerWriter,
    member: CommMember,
    collective: str,
    own: Sequence[Region],
    gains: Sequence[tuple[Region, bool]],
    rows: _Rows,
) -> Iterator[str]:
    """The rows of a collective and communicator: what gains, the library's own choice, and last a
    ring with the channels left to the library, which no call falls through."""
    for region, model in gains:
        rows.changed += 1
        yield writer.row(collective, member.comm, region, model)
    if not writer.complete:
        return
    for region in own:
        if region.found != ALWAYS:
            rows.pinned += 1
            yield writer.row(collective, member.comm, region, False)
    rows.pinned += 1
    yield writer.row(collective, member.comm, Region(0, LARGEST_BYTES, ALWAYS), False)


def _runs(
    topology: Topology,
    asked: AskedTuner,
    member: CommMember,
    collective: str,
    own: Sequence[Region],
) -> Iterator[str]:
    """The runs that would show whether what is predicted to gain does; those made are left out."""
    if asked.model_only:
        return
    place = (collective, member.comm)
    for region in _predicted(topology, asked, member, collective, own):
        if (place, region.found) in asked.measured.forced:
            continue
        yield f"{_command(collective, region)} on {member.comm}"


def _command(collective: str, region: Region) -> str:
    """A run of nccl-tests over these sizes, in whole powers of two."""
    algorithm, protocol = region.found
    first = 1 << max(SMALLEST, region.first, 1).bit_length() - 1
    last = 1 << min(region.last, 2**33).bit_length() - 1
    test = _TESTS.get(collective, collective)
    words = f"NCCL_ALGO={_ALGO[algorithm]} NCCL_PROTO={protocol.upper()} {test}_perf"
    return words.replace("SIMPLE", "Simple") + f" -b {first} -e {max(first, last)} -f 2"


def _notes(
    writer: TunerWriter, asked: AskedTuner, rows: _Rows, runs: Sequence[str], path: str
) -> Iterator[str]:
    yield from (text.format(path=path) for text in writer.notes)
    kept = f"; rows that pin its own as predicted: {rows.pinned}" if writer.complete else ""
    yield f"rows that change the library's choice: {rows.changed}{kept}"
    if asked.model_only and rows.changed:
        yield f"rows with {MODEL_ONLY} were tried by no GPU: measure before a job relies on them"
    for text in runs[:_MOST_RUNS]:
        yield f"predicted to gain, to be measured with --measured: {text}"
    if len(runs) > _MOST_RUNS:
        yield f"further runs that are predicted to gain: {len(runs) - _MOST_RUNS}"
