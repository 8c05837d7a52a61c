"""`p2smt redistribute`."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.guide.progress import say
from p2smt.cli.parameters import Text, flag, opened, option, part
from p2smt.cli.transfers.layout_options import ids_of
from p2smt.cli.transfers.transfer_command import finish
from p2smt.cli.transfers.transfer_files import TransferFiles
from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.interop.arrays.peers.compare_peers import PeerRow
    from p2smt.resharding.reachability import RedistributionAnswer, RedistributionQuestion
    from p2smt.resharding.types import ArrayType, Mesh, Uneven
    from p2smt.transfer.question import TransferQuestion

PEERS = ("dtensor", "shardy")
"""Planners that a plan may be compared with."""


@dataclass(frozen=True)
class ArrayOptions:
    """The two types of an array, and what a way from one to the other may take."""

    mesh: Text = option("NAME=N,..", "Mesh axes such as dp=4,tp=8.", "-m")
    shape: Text = option("N,N,..", "Global shape such as 8192,8192 or 8192x8192.")
    dtype: str = option("NAME", "f64, f32, bf16, f16, i64, i32, u8, ..", default="f32")
    source: Text = option(
        "TYPE",
        "One entry per dimension, axes major first: 'S(dp),S(tp)', 'R,S(dp,tp)', sub-axes "
        "'S(tp:(2)4),R', partial axes 'R,R;P(dp);P(tp)'.",
        "--from",
    )
    target: Text = option("TYPE", "The same.", "--to")
    placement: Text = o.PLACEMENT
    device_ids: Text = option(
        "N,N,..", "Device of each mesh position, row-major; default: 0,1,2,.."
    )
    to_device_ids: Text = option(
        "N,N,..", "The same of the destination: another order; with --to-mesh any, such as 0-15."
    )
    to_mesh: Text = option(
        "NAME=N,..", "Another mesh that --to is on, of the same, fewer, more or other devices."
    )
    memory: Text = option(
        "SIZE",
        "Cap on input, output and pack buffer of every step, per device; default: every state at "
        "most the larger of source and destination.",
    )
    keep_source: bool = flag("The source stays alive beside the steps.")
    steps: Text = option("N", "Compare plans of at most N steps; default: any length.")
    uneven: str = option(
        "RULE",
        "Of dimensions that do not divide: refuse, padded or nested (chunks of chunks).",
        default="refuse",
    )
    cuts: str = option("WHERE", "Axes may be cut at all primes, or at levels.", default="primes")

    def question(self, topology: Topology, how: o.SearchOptions) -> RedistributionQuestion:
        """What is asked.

        Raises:
            InputError: an option is missing, or its value does not fit.
        """
        from p2smt.resharding.cuts import Cuts
        from p2smt.resharding.reachability import MAX_STEPS, RedistributionQuestion
        from p2smt.units import parse_bytes

        return RedistributionQuestion(
            *self._types(topology),
            topology,
            None if self.memory is None else parse_bytes(self.memory, "--memory"),
            self.keep_source,
            None if self.steps is None else given.count_of(self.steps, "--steps", MAX_STEPS),
            Cuts.parse(self.cuts),
            how.limits(),
        )

    def _types(self, topology: Topology, *, both: bool = True) -> tuple[ArrayType, ArrayType]:
        """Source and destination; not ``both``: the source twice."""
        from p2smt.cli.output import note
        from p2smt.interop.arrays.notations import read_layout
        from p2smt.resharding.types import ArrayType, ElementType

        mesh = self._mesh(topology)
        shape = shape_of(_given(self.shape, "--shape", "--shape 8192,8192"))
        if not shape:
            nothing = "an array without dimensions has nothing to shard"
            raise InputError("shape ()", nothing, "give at least one dimension")
        element, rule = ElementType.parse(self.dtype), uneven_of(self.uneven)
        texts = (
            _given(self.source, "--from", "--from 'S(dp),R'"),
            _given(self.target if both else self.source, "--to", "--to 'R,S(dp)'"),
        )
        (first, told), (last, further) = (read_layout(text, mesh, len(shape)) for text in texts)
        for text in filter(None, dict.fromkeys((told, further))):
            note(text)
        return (
            ArrayType(mesh, shape, element, first, rule),
            ArrayType(self._target_mesh(mesh) if both else mesh, shape, element, last, rule),
        )

    def transfer(self, topology: Topology, nominal: bool, how: o.SearchOptions) -> TransferQuestion:
        """The question of another mesh, as one of a transfer.

        Raises:
            InputError: an option is missing, does not fit, or is of one mesh.
        """
        from p2smt.api.arrays import array_layout
        from p2smt.transfer.question import TransferQuestion

        self._refuse_of_one_mesh()
        source = self._types(topology, both=False)[0]
        target = replace(self, mesh=self.to_mesh, source=self.target, placement=None)
        target = replace(target, device_ids=None)
        after = target._types(topology, both=False)[0]
        places = range(after.mesh.size)
        return TransferQuestion(
            topology,
            array_layout(source),
            array_layout(after),
            source.mesh.devices,
            places if self.to_device_ids is None else ids_of(self.to_device_ids, "--to-device-ids"),
            source.element.item_bytes,
            nominal,
            limits=how.limits(),
        )

    def _refuse_of_one_mesh(self) -> None:
        """Refuse what says how steps on one mesh are to be."""
        for name, said in (
            ("--memory", self.memory is not None),
            ("--keep-source", self.keep_source),
            ("--steps", self.steps is not None),
            ("--cuts", self.cuts != "primes"),
        ):
            if said:
                rule = "is of steps on one mesh, and --to-mesh names another"
                raise InputError(name, rule, "drop one of them")

    def _mesh(self, topology: Topology) -> Mesh:
        """The mesh on the devices that a placement matrix or a list gives it."""
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
        matrix = o.placement_of(self.placement, topology, found.axes)
        return parse_mesh(text, [int(device) for device in matrix.rank_tensor().ravel()])

    def _target_mesh(self, mesh: Mesh) -> Mesh:
        if self.to_device_ids is None:
            return mesh
        return replace(mesh, devices=tuple(ids_of(self.to_device_ids, "--to-device-ids")))


@dataclass(frozen=True)
class BesideOptions:
    """What is told beside the plan: other planners (of Shardy what it emitted), the gradient."""

    compare: Text = option("NAMES", "Other planners beside it: dtensor, shardy.")
    shardy_file: Text = option("FILE", "What Shardy emitted for it (MLIR), for --compare shardy.")
    backward: bool = flag("Also plan the way back of its gradient.")

    def peers(self) -> tuple[str, ...] | None:
        """The planners of --compare; None: there is nothing to compare with.

        Raises:
            InputError: one is unknown, or --shardy-file has no use.
        """
        text = self.compare
        names = None if text is None else tuple(name.strip() for name in text.split(","))
        for name in names or ():
            if name not in PEERS:
                rule = f"is none of {' and '.join(PEERS)}"
                raise InputError(f"--compare {name[:40]!r}", rule, "name one of these")
        if self.shardy_file is not None and "shardy" not in (names or ()):
            raise InputError("--shardy-file", "is what --compare shardy reads", "drop it")
        return names

    def check(self, source: ArrayType) -> None:
        """Refuse early what could not be told of an array.

        Raises:
            InputError: its gradient has no way back, or the planners are none.
        """
        if self.backward:
            from p2smt.resharding.backward import check_differentiable

            check_differentiable(source)
        self.peers()

    def refuse_for_meshes(self, algorithm: Text) -> None:
        """Refuse what is told of one mesh alone."""
        for name, said in (
            ("--compare", self.compare is not None),
            ("--shardy-file", self.shardy_file is not None),
            ("--backward", self.backward),
            ("--algorithm", algorithm is not None),
        ):
            if said:
                rule = "is told of steps on one mesh, and --to-mesh names another"
                raise InputError(name, rule, "drop one of them")

    def gradient(self, answer: RedistributionAnswer) -> RedistributionAnswer | None:
        """The way back of the plan's gradient, its source kept, as autograd keeps it."""
        if not self.backward or answer.plan is None:
            return None
        from p2smt.resharding.backward import backward_answer

        memory = replace(answer.plan.memory, keep_source=True)
        return backward_answer(replace(answer.plan, memory=memory))

    def rows(self, answer: RedistributionAnswer) -> list[PeerRow] | None:
        """What other planners do; None: nothing was asked, or there is no plan."""
        names = self.peers()
        if names is None or answer.plan is None:
            return None
        from p2smt.interop.arrays.peers.compare_peers import compare_peers

        say(f"steps of {' and '.join(names)}")
        file = None if self.shardy_file is None else Path(self.shardy_file)
        return list(compare_peers(answer.plan, names, file))


@opened
def redistribute(
    *,
    cluster: o.ClusterOptions,
    arrays: ArrayOptions,
    beside: BesideOptions,
    svg: Text = option(
        "FILE",
        "Draw who holds which block before and after each step; with --to-mesh who sends to whom.",
    ),
    code: Text = option(
        "FILE.py",
        "With --to-mesh: write it as code for torch.distributed, which needs torch alone.",
    ),
    prices: o.PriceOptions = part("algorithm", "library", "nominal"),
    how: o.SearchOptions = part("time_limit", "seed", "workers"),
    output: Text = o.PLAN_FILE,
    shown: o.ShownOptions,
) -> int:
    """The fastest steps from one sharding of an array to another, under a memory cap."""
    from p2smt.cost.requested_algorithms import running
    from p2smt.files.write import check_svg_name
    from p2smt.resharding.search import find_redistribution
    from p2smt.transfer.answer import find_transfer

    topology = running(cluster.under(prices), prices.algorithms())
    if arrays.to_mesh is not None:
        beside.refuse_for_meshes(prices.algorithm)
        files = TransferFiles(code, svg)
        files.check(output, cluster.topology)
        found = find_transfer(arrays.transfer(topology, prices.nominal, how))
        return finish(found, output, shown, files.write(found, arrays.dtype))
    if code is not None:
        rule = "is written of a way to another mesh, and there is one mesh"
        raise InputError("--code", rule, "name the other one by --to-mesh, or drop it")
    question = arrays.question(topology, how)
    beside.check(question.source)
    o.plan_writable(output, svg)
    if svg is not None:
        check_svg_name(svg)
    answer = find_redistribution(question, until_interrupted=True)
    return _finish(answer, beside, output, svg, shown)


def _finish(
    answer: RedistributionAnswer,
    beside: BesideOptions,
    output: str | None,
    svg: str | None,
    shown: o.ShownOptions,
) -> int:
    """Write the files first: what is shown may go to a pipe that nobody reads any more."""
    from p2smt.cli.codes import INTERRUPTED, exit_code
    from p2smt.cli.output import tell_tables
    from p2smt.report.resharding_data import redistribution_data
    from p2smt.report.resharding_tables import redistribution_tables

    peers, gradient = beside.rows(answer), beside.gradient(answer)
    written = _write(answer, output, svg, how=peers is None)
    tell_tables(
        shown.json,
        lambda: redistribution_data(answer, peers, gradient),
        lambda: (redistribution_tables(answer, peers, gradient, short=not shown.details),),
        written,
        details=shown.details,
    )
    return INTERRUPTED if answer.interrupted else exit_code(answer.status)


def _write(
    answer: RedistributionAnswer, output: str | None, svg: str | None, *, how: bool
) -> list[str]:
    """Write plan and picture; returns what to say of it, and (``how``) what makes code of it."""
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
    if output is not None and how:
        word, text = shlex.quote(output), json.dumps(output)
        lines.append(f"next, in JAX: p2smt export {printable(word)} --to jax-shard-map -o moves.py")
        lines.append(f"in torch: p2smt.torch_function(p2smt.read_redistribution({text}), mesh)")
    return ["", *lines] if lines else []


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
    if not text.strip("()[] "):
        return ()
    what = f"--shape {text[:60]!r}: a size"
    parts = text.strip("()[] ").removesuffix(",").replace("x", ",").split(",")
    return tuple(given.count_of(part.strip(), what, 2**53, least=0) for part in parts)


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
