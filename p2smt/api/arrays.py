"""The public functions on arrays: their types from texts, redistributions, transfers of weights."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence

from p2smt.api.files import StrPath
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.files.write import write_atomically
from p2smt.interop.arrays.notations import read_layout
from p2smt.interop.weights.peers import compared_rules, rule_names
from p2smt.interop.weights.table import layout_of
from p2smt.plans.file import check_plan_name
from p2smt.resharding import plan_file
from p2smt.resharding.cuts import Cuts
from p2smt.resharding.plan_check import check_redistribution
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.search import solve_redistribution
from p2smt.resharding.types import (
    ArrayType,
    ElementType,
    Layout,
    Mesh,
    SubAxis,
    Uneven,
    parse_mesh,
)
from p2smt.result import SearchLimits
from p2smt.transfer.answer import ComparedRule, TransferAnswer, find_transfer
from p2smt.transfer.layouts import IndexBox, Shards, Tensor, WeightLayout
from p2smt.transfer.plan_file import transfer_text
from p2smt.transfer.question import TransferQuestion
from p2smt.units import parse_bytes


def array_type(
    mesh: Mesh | str,
    shape: Sequence[int],
    dtype: ElementType | str,
    layout: Layout | str,
    *,
    devices: Sequence[int] | None = None,
    uneven: Uneven | str = Uneven.REFUSE,
) -> ArrayType:
    """The type of an array on a mesh.

    Args:
        mesh: axes such as ``dp=4,tp=8``, or a mesh.
        shape: global sizes.
        dtype: ``bf16``, ``float32`` and so on.
        layout: one entry per dimension, ``S(dp),R``; partial axes after it, ``;P(tp)``; or as
            DTensor, JAX, GSPMD or Shardy write it.
        devices: device of each mesh position, row-major; None: 0, 1, 2 and so on.
        uneven: what holds where a dimension does not divide: ``refuse``, ``padded``, ``nested``.

    Raises:
        InputError: a text of another form, or a type that cannot be.
    """
    if not isinstance(mesh, str) and devices is not None:
        raise InputError("devices beside a mesh", "the mesh has its devices", "drop them")
    made = parse_mesh(mesh, devices) if isinstance(mesh, str) else mesh
    return ArrayType(
        made,
        tuple(shape),
        ElementType.parse(dtype) if isinstance(dtype, str) else dtype,
        read_layout(layout, made, len(shape))[0] if isinstance(layout, str) else layout,
        _rule(uneven),
    )


def _rule(given: Uneven | str) -> Uneven:
    known = {rule.value: rule for rule in Uneven}
    if isinstance(given, Uneven):
        return given
    if given not in known:
        raise InputError(f"uneven {given[:40]!r}", f"must be one of {', '.join(known)}")
    return known[given]


def redistribute(
    source: ArrayType,
    target: ArrayType | Layout | str,
    topology: Topology,
    *,
    memory: int | str | None = None,
    keep_source: bool = False,
    max_steps: int | None = None,
    cuts: Cuts | str = Cuts.PRIMES,
    limits: SearchLimits | None = None,
) -> RedistributionPlan:
    """The fastest steps from one type of an array to another, under a memory cap, with a proof.

    Args:
        source: the type that the array has.
        target: the type that it gets; or its layout, on the same mesh.
        topology: the cluster, all of whose devices the mesh has.
        memory: bytes on a device (a number, or a text such as ``1GiB``) that input, output and
            pack buffer of every step may take together; None: every state is at most the larger of
            source and destination.
        keep_source: the source stays alive beside the steps after the first.
        max_steps: compare plans of at most so many steps; None: of any length, or where that is
            out of reach of as many as ``max_steps`` of the plan says.
        cuts: where axes may be cut: at all ``primes``, or at the ``levels`` of the cluster.
        limits: of the search; a plan that is not proved best has the status ``FEASIBLE``.

    A second call with the same arguments takes its answer from memory.

    Raises:
        InputError: types that do not fit each other or the topology; a cap below source or
            destination, or that no plan meets (the message has the least that one meets); or a
            time limit that came before any plan was found.
    """
    asked = target if isinstance(target, ArrayType) else _on_mesh_of(source, target)
    return solve_redistribution(
        source,
        asked,
        topology,
        memory=parse_bytes(memory, "memory") if isinstance(memory, str) else memory,
        keep_source=keep_source,
        max_steps=max_steps,
        cuts=Cuts.parse(cuts) if isinstance(cuts, str) else cuts,
        limits=limits,
    )


def write_redistribution(plan: RedistributionPlan, path: str) -> None:
    """Write a plan as a file that ``verify``, ``cost`` and ``run`` take: whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    write_atomically(path, plan_file.redistribution_text(plan))


def read_redistribution(path: str) -> RedistributionPlan:
    """The plan in a file that ``redistribute -o`` wrote, checked as ``verify`` does.

    Raises:
        InputError: the file cannot be read, or the plan in it is wrong or misstates a number.
    """
    source = f"plan {path[:200]}"
    report = check_redistribution(plan_file.read_redistribution(path), source)
    if report.plan is None or report.notes:
        raise InputError(source, report.notes[0].message, "see p2smt verify")
    return report.plan


def _on_mesh_of(source: ArrayType, layout: Layout | str) -> ArrayType:
    count = len(source.shape)
    made = read_layout(layout, source.mesh, count)[0] if isinstance(layout, str) else layout
    return ArrayType(source.mesh, source.shape, source.element, made, source.uneven)


# Many tensors between two meshes.


def weight_layout(text: str, model: str = "") -> WeightLayout:
    """Who holds which box of which tensor.

    Args:
        text: ``megatron:tp=8,pp=4,dp=2``, ``vllm:tp=8,engines=8`` and so on, or a ``layout.json``.
        model: whose weights: a name, or a ``config.json``; a file of boxes needs none.

    Raises:
        InputError: the framework or an option is unknown, or there are no rules for what is asked.
    """
    return layout_of(text, model)


def transfer_weights(
    source: WeightLayout | str,
    target: WeightLayout | str,
    topology: Topology,
    *,
    model: str = "",
    devices: Sequence[int] | None = None,
    target_devices: Sequence[int] | None = None,
    dtype: str = "bf16",
    memory: int | str | None = None,
    relay: bool = False,
    limits: SearchLimits | None = None,
) -> TransferAnswer:
    """The fastest plan found for many tensors from one mesh to another, with a bound and its proof.

    Args:
        source: who holds what before: a layout, or its text for ``model``.
        target: who is to hold what.
        topology: the cluster.
        model: whose weights, where a layout is a text.
        devices: the device of each rank of the source; None: 0, 1, 2 and so on.
        target_devices: the same of the target; None: the devices of the source.
        dtype: the type in which elements are sent.
        memory: the most that a device stages at once, beside both copies of the weights.
        relay: devices may pass on for others of their nodes what they neither hold nor need.
        limits: of the search; a plan that is not proved best has the status ``FEASIBLE``.

    Raises:
        InputError: layouts that do not fit each other or the topology, a type with scales, or a cap
            that no number of buckets keeps to.
    """
    before, after = (
        layout_of(one, model) if isinstance(one, str) else one for one in (source, target)
    )
    question = TransferQuestion(
        topology,
        before,
        after,
        range(before.devices) if devices is None else devices,
        (devices or range(after.devices))[: after.devices]
        if target_devices is None
        else target_devices,
        item_bytes_of(dtype, "dtype"),
        memory_bytes=parse_bytes(memory, "memory") if isinstance(memory, str) else memory,
        limits=SearchLimits() if limits is None else limits,
        relay=relay,
    )
    return find_transfer(question)


def item_bytes_of(dtype: str, name: str) -> int:
    """Bytes of an element that is sent; ``name``: of what says its type.

    Raises:
        InputError: there is no such type, or its values have scales.
    """
    try:
        element = ElementType.parse(dtype)
    except InputError:
        element = ElementType.BOOL
    if not element.floating:
        rule = "is none that weights are sent in: quantised ones have scales beside them"
        raise InputError(f"{name} {dtype[:40]!r}", rule, "give bf16, f16, f32 or f64")
    return element.item_bytes


def compare_transfer(answer: TransferAnswer, rules: str) -> tuple[ComparedRule, ...]:
    """What rules of other tools take for the same transfer, such as ``megatron,awex,alpa,m2n``.

    Raises:
        InputError: a rule is unknown.
    """
    return compared_rules(answer.question, rule_names(rules, "rules"))


def write_transfer(answer: TransferAnswer, path: StrPath) -> None:
    """Write a plan as a file that ``verify`` takes: whole or not at all.

    Raises:
        InputError: the name is that of another file (.yaml or .xml), or it cannot be written.
    """
    check_plan_name(os.fspath(path))
    write_atomically(os.fspath(path), transfer_text(answer))


# One array between two meshes, as a transfer.


ARRAY = "array"
"""The name of the one tensor."""


def array_layout(kind: ArrayType) -> WeightLayout:
    """Who holds which box of an array; rank p is mesh position p.

    Where dimensions do not divide, padding is nobody's.

    Raises:
        InputError: it has partial values, which have to be added, not moved.
    """
    if kind.layout.partial:
        rule = "are sums still to be made, which a transfer between meshes does not make"
        raise InputError("partial values", rule, "redistribute them on their own mesh first")
    held: dict[IndexBox, list[int]] = {}
    places = itertools.product(*map(range, kind.mesh.sizes))
    for position, place in enumerate(places):
        box = tuple(
            _chunk(kind, place, size, parts)
            for size, parts in zip(kind.shape, kind.layout.dims, strict=True)
        )
        if all(start < stop for start, stop in box):
            held.setdefault(box, []).append(position)
    shards = Shards(tuple((box, tuple(ranks)) for box, ranks in held.items()))
    tensor = Tensor(ARRAY, kind.shape)
    return WeightLayout(kind.mesh.size, {ARRAY: tensor}, {ARRAY: shards})


def _chunk(
    kind: ArrayType, place: Sequence[int], size: int, parts: Sequence[SubAxis]
) -> tuple[int, int]:
    """The indices of a dimension at a mesh position."""
    digits = [_digit(kind, place, part) for part in parts]
    if kind.uneven is Uneven.PADDED:
        whole, at = math.prod(part.size for part in parts), 0
        for digit, part in zip(digits, parts, strict=True):
            at = at * part.size + digit
        each = -(-size // whole)
        return min(at * each, size), min(at * each + each, size)
    start, stop = 0, size
    for digit, part in zip(digits, parts, strict=True):
        each = -(-(stop - start) // part.size)
        start = min(start + digit * each, stop)
        stop = min(start + each, stop)
    return start, stop


def _digit(kind: ArrayType, place: Sequence[int], part: SubAxis) -> int:
    after = kind.mesh.axes[part.axis].size // (part.before * part.size)
    return place[part.axis] // after % part.size
