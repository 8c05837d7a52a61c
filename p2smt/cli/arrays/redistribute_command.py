"""`p2smt redistribute`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p2smt.cli import options as o
from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.interop.arrays.peers.compare import PeerRow
    from p2smt.resharding.reachability import RedistributionAnswer
    from p2smt.resharding.types import ArrayType, Mesh, Uneven


@dataclass(frozen=True, slots=True)
class Beside:
    """What is told beside the plan: other planners (of Shardy what it emitted), the gradient."""

    names: tuple[str, ...] | None
    shardy_file: str | None
    backward: bool

    def gradient(self, answer: RedistributionAnswer) -> RedistributionAnswer | None:
        """The way back of the plan's gradient, its source kept, as autograd keeps it."""
        if not self.backward or answer.plan is None:
            return None
        from p2smt.resharding.backward import backward_answer

        memory = replace(answer.plan.memory, keep_source=True)
        return backward_answer(replace(answer.plan, memory=memory))

    def rows(self, answer: RedistributionAnswer) -> list[PeerRow] | None:
        """What they do; None: nothing was asked, or there is no plan."""
        if self.names is None or answer.plan is None:
            return None
        from p2smt.interop.arrays.peers.compare import compare_peers

        file = None if self.shardy_file is None else Path(self.shardy_file)
        return list(compare_peers(answer.plan, self.names, file))


def redistribute(
    topology: o.TopologyOption = None,
    use: o.UseOption = None,
    mesh: MeshOption = None,
    shape: ShapeOption = None,
    dtype: DtypeOption = "f32",
    source: FromOption = None,
    target: ToOption = None,
    placement: o.PlacementOption = None,
    device_ids: DevicesOption = None,
    to_device_ids: ToDevicesOption = None,
    memory: MemoryOption = None,
    keep_source: Annotated[
        bool, typer.Option("--keep-source", help="The source stays alive beside the steps.")
    ] = False,
    steps: Annotated[
        str | None,
        typer.Option(metavar="N", help="Compare plans of at most N steps; default: any length."),
    ] = None,
    uneven: UnevenOption = "refuse",
    cuts: CutsOption = "primes",
    compare: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Other planners beside it: dtensor, shardy."),
    ] = None,
    shardy_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What Shardy emitted for it (MLIR), for --compare shardy."
        ),
    ] = None,
    backward: Annotated[
        bool, typer.Option("--backward", help="Also plan the way back of its gradient.")
    ] = False,
    svg: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw who holds which block before and after each step."),
    ] = None,
    algorithm: o.AlgorithmOption = None,
    library: o.LibraryOption = None,
    nominal: o.NominalOption = False,
    time_limit: o.TimeOption = None,
    seed: o.SeedOption = "0",
    workers: o.WorkersOption = "1",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the plan here, as JSON."),
    ] = None,
    json: o.JsonOption = False,
) -> int:
    """The fastest steps from one sharding of an array to another, under a memory cap."""
    from p2smt.cli import given, restrictions
    from p2smt.cost.requested_algorithms import running
    from p2smt.report.resharding_picture import check_picture
    from p2smt.resharding.cuts import Cuts
    from p2smt.resharding.reachability import MAX_STEPS, RedistributionQuestion
    from p2smt.resharding.search import find_redistribution
    from p2smt.units import parse_bytes

    cluster = given.topology_of(topology, library, nominal=nominal, algorithm=algorithm, use=use)
    cluster = running(cluster, restrictions.algorithms(algorithm))
    texts = ArrayTexts(
        mesh, shape, dtype, source, target, placement, device_ids, to_device_ids, uneven
    )
    first, last = texts.types(cluster)
    question = RedistributionQuestion(
        first,
        last,
        cluster,
        None if memory is None else parse_bytes(memory, "--memory"),
        keep_source,
        None if steps is None else given.count_of(steps, "--steps", MAX_STEPS),
        Cuts.parse(cuts),
        given.limits_of(time_limit, seed, workers),
    )
    if backward:
        from p2smt.resharding.backward import check_differentiable

        check_differentiable(first)
    beside = Beside(peers_of(compare, shardy_file), shardy_file, backward)
    for path in (output, svg):
        restrictions.writable(path)
    if output is not None:
        from p2smt.plans.file import check_plan_name

        check_plan_name(output)
    if svg is not None:
        check_picture(svg)
    answer = find_redistribution(question, until_interrupted=True)
    return _finish(answer, beside, output, svg, as_json=json)


def _finish(
    answer: RedistributionAnswer,
    beside: Beside,
    output: str | None,
    svg: str | None,
    *,
    as_json: bool,
) -> int:
    """Write the files first: what is shown may go to a pipe that nobody reads any more."""
    from p2smt.cli.codes import INTERRUPTED, exit_code
    from p2smt.cli.output import print_json
    from p2smt.report.resharding_data import redistribution_data
    from p2smt.report.resharding_tables import redistribution_tables
    from p2smt.report.tables import show

    peers, gradient = beside.rows(answer), beside.gradient(answer)
    written = _write(answer, output, svg)
    if as_json:
        print_json(redistribution_data(answer, peers, gradient))
    else:
        show(redistribution_tables(answer, peers, gradient))
        for line in written:
            typer.echo(line)
    return INTERRUPTED if answer.interrupted else exit_code(answer.status)


def _write(answer: RedistributionAnswer, output: str | None, svg: str | None) -> list[str]:
    """Write plan and picture; returns what to say of it."""
    from p2smt.report.text import printable

    lines: list[str] = []
    if answer.plan is None:
        return lines
    if output is not None:
        from p2smt.files.write import write_atomically
        from p2smt.resharding.plan_file import redistribution_text

        write_atomically(output, redistribution_text(answer.plan))
        lines.append(f"plan written to {printable(output)}")
    if svg is not None:
        from p2smt.report.resharding_picture import write_picture

        write_picture(answer.plan, svg)
        lines.append(f"picture written to {printable(svg)}")
    return ["", *lines] if lines else []


# Options that describe arrays, and what their values mean.


PEERS = ("dtensor", "shardy")
"""Planners that a plan may be compared with."""

MeshOption = Annotated[
    str | None,
    typer.Option("--mesh", "-m", metavar="NAME=N,..", help="Mesh axes such as dp=4,tp=8."),
]
ShapeOption = Annotated[
    str | None,
    typer.Option("--shape", metavar="N,N,..", help="Global shape such as 8192,8192 or 8192x8192."),
]
DtypeOption = Annotated[
    str, typer.Option("--dtype", metavar="NAME", help="f64, f32, bf16, f16, i64, i32, u8, ..")
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TYPE",
        help="One entry per dimension, axes major first: 'S(dp),S(tp)', 'R,S(dp,tp)', sub-axes "
        "'S(tp:(2)4),R', partial axes 'R,R;P(dp);P(tp)'.",
    ),
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="TYPE", help="The same.")]
DevicesOption = Annotated[
    str | None,
    typer.Option(
        "--device-ids",
        metavar="N,N,..",
        help="Device of each mesh position, row-major; default: 0,1,2,..",
    ),
]
ToDevicesOption = Annotated[
    str | None,
    typer.Option(
        "--to-device-ids", metavar="N,N,..", help="The same of the destination: another order."
    ),
]
UnevenOption = Annotated[
    str,
    typer.Option(
        "--uneven",
        metavar="RULE",
        help="Of dimensions that do not divide: refuse, padded or nested (chunks of chunks).",
    ),
]
CutsOption = Annotated[
    str,
    typer.Option("--cuts", metavar="WHERE", help="Axes may be cut at all primes, or at levels."),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Cap on input, output and pack buffer of every step, per device; default: every state "
        "at most the larger of source and destination.",
    ),
]


@dataclass(frozen=True, slots=True)
class ArrayTexts:
    """The options that describe the two types, as given."""

    mesh: str | None
    shape: str | None
    dtype: str
    source: str | None
    target: str | None
    placement: str | None
    device_ids: str | None
    to_device_ids: str | None
    uneven: str

    def types(self, topology: Topology) -> tuple[ArrayType, ArrayType]:
        """Source and destination.

        Raises:
            InputError: an option is missing, or its value does not fit.
        """
        from p2smt.resharding.types import ArrayType, ElementType, parse_layout

        mesh = self._mesh(topology)
        shape = shape_of(_given(self.shape, "--shape", "--shape 8192,8192"))
        if not shape:
            nothing = "an array without dimensions has nothing to shard"
            raise InputError("shape ()", nothing, "give at least one dimension")
        element, rule = ElementType.parse(self.dtype), uneven_of(self.uneven)
        first = parse_layout(_given(self.source, "--from", "--from 'S(dp),R'"), mesh)
        last = parse_layout(_given(self.target, "--to", "--to 'R,S(dp)'"), mesh)
        return (
            ArrayType(mesh, shape, element, first, rule),
            ArrayType(self._target_mesh(mesh), shape, element, last, rule),
        )

    def _mesh(self, topology: Topology) -> Mesh:
        """The mesh on the devices that a placement matrix or a list gives it."""
        from p2smt.cli.scene_options import placement_of
        from p2smt.resharding.types import parse_mesh

        text = _given(self.mesh, "--mesh", "--mesh dp=4,tp=8")
        if self.device_ids is not None:
            if self.placement is not None:
                rule = "both say which device stands where"
                raise InputError("--placement beside --device-ids", rule, "drop one of them")
            return parse_mesh(text, ids_of(self.device_ids, "--device-ids"))
        found = parse_mesh(text)
        if self.placement is None:
            return found
        matrix = placement_of(self.placement, topology, found.axes)
        return parse_mesh(text, [int(device) for device in matrix.rank_tensor().ravel()])

    def _target_mesh(self, mesh: Mesh) -> Mesh:
        from dataclasses import replace

        if self.to_device_ids is None:
            return mesh
        return replace(mesh, devices=tuple(ids_of(self.to_device_ids, "--to-device-ids")))


def _given(text: str | None, option: str, example: str) -> str:
    if text is None:
        raise InputError(option, "is missing", f"give it like {example}")
    return text


def shape_of(text: str) -> tuple[int, ...]:
    """A shape such as ``8192,8192``, ``(8192, 8192)`` or ``8192x8192``.

    Sizes of 0 are told by what they mean.

    Raises:
        InputError: it is no list of whole numbers.
    """
    from p2smt.cli.given import count_of

    if not text.strip("()[] "):
        return ()
    what = f"--shape {text[:60]!r}: a size"
    parts = text.strip("()[] ").removesuffix(",").replace("x", ",").split(",")
    return tuple(count_of(part.strip(), what, 2**53, least=0) for part in parts)


def ids_of(text: str, option: str) -> Sequence[int]:
    """Device ids such as ``0,2,1,3``.

    Raises:
        InputError: it is no list of whole numbers.
    """
    from p2smt.cli.given import count_of

    what = f"{option} {text[:60]!r}: a device"
    return [count_of(part, what, 2**31, least=0) for part in text.strip("[] ").split(",")]


def uneven_of(text: str) -> Uneven:
    """The rule of that name.

    Raises:
        InputError: there is none.
    """
    from p2smt.resharding.types import Uneven

    known = {rule.value: rule for rule in Uneven}
    if text not in known:
        raise InputError(f"--uneven {text[:40]!r}", f"must be one of {', '.join(known)}")
    return known[text]


def peers_of(text: str | None, shardy_file: str | None) -> tuple[str, ...] | None:
    """The planners of --compare; None: there is nothing to compare with.

    Raises:
        InputError: one is unknown, or --shardy-file has no use.
    """
    names = None if text is None else tuple(name.strip() for name in text.split(","))
    for name in names or ():
        if name not in PEERS:
            rule = f"is none of {' and '.join(PEERS)}"
            raise InputError(f"--compare {name[:40]!r}", rule, "name one of these")
    if shardy_file is not None and "shardy" not in (names or ()):
        raise InputError("--shardy-file", "is what --compare shardy reads", "drop it")
    return names
