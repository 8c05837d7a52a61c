"""The requests of a plan as functions for JAX's ``shard_map``, in a module that needs no other.

All ranks run one program on arrays of one shape, and ``axis_index_groups`` must hold every rank
once:

* a rank outside the groups of a step is a group of its own, which JAX takes for ``psum`` (whose
  groups may differ in size), and not for ``all_gather`` and ``psum_scatter``;
* reduce and broadcast are a ``psum`` whose sum only the first rank keeps, or to which it alone
  gives;
* ``check_vma=False``, as JAX cannot tell that a sum over groups is the same on some ranks.

What this cannot express is refused with its step.  API: jax 0.10 (``jax.shard_map``, ``jax.lax``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from p2smt.collectives.names import Collective, RequestKind
from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.meshes.arrays import comment_name, groups_lines, tensor_text
from p2smt.interop.meshes.jax_processes import process_notes
from p2smt.interop.meshes.numbering import as_planned, launched_ranks
from p2smt.interop.meshes.programs import jax_helpers as helpers
from p2smt.interop.meshes.programs.body import (
    one_text,
    operation_name,
    ranks_line,
    request_doc,
    rows_of,
    stepped,
    variables,
)
from p2smt.interop.meshes.programs.coded import CodedPlan, CodedRequest, coded
from p2smt.interop.meshes.programs.memory_rows import CodedStep
from p2smt.interop.meshes.programs.row_text import RowChoice

_LISTED = "jnp.array({})"
_SCATTERING = (Collective.REDUCE_SCATTER, Collective.ALL_GATHER)


def write_jax(plan: PlacedPlan, _path: str) -> Exported:
    """A module with a function for each request, and the mesh that they run on.

    Raises:
        InputError: a step that JAX cannot express, or that cannot be carried out.
    """
    code = coded(as_planned(plan))
    for request in code.requests:
        for number, step in enumerate(request.steps, start=1):
            _check(code, request, number, step)
    names = {operation_name(s.operation) for r in code.requests if not r.direct for s in r.steps}
    kinds = {operation_name(r.kind) for r in code.requests if not r.direct}
    parts = [_head(plan), helpers.HEAD, _constants(code), _mesh(plan)]
    parts += [_function(request) for request in code.requests]
    parts += [text for name, text in helpers.WHOLES.items() if name in kinds]
    if names:
        parts.append(helpers.PARTS)
    if code.groups:
        parts.append(helpers.GROUPS)
    if names & {"reduce", "broadcast"}:
        parts.append(helpers.LEADS)
    parts += [text for name, text in helpers.STEPS.items() if name in names]
    text = "\n\n".join(parts).replace("\n\n\nGROUPS", "\n\nGROUPS")
    return Exported(text, process_notes(plan))


def _check(code: CodedPlan, request: CodedRequest, number: int, step: CodedStep) -> None:
    """Whether JAX can express a step."""
    given = f"{code.plan.source}: {request.name}, step {number} ({step.text})"
    groups = code.groups[step.groups]
    if any(rows is not None and rows.ragged for rows in (step.rows, step.own)):
        rule = "its groups move different numbers of rows, and JAX has arrays of one shape"
        raise InputError(given, rule, "use --to python, or forbid the form (--forbid-form)")
    if step.operation not in _SCATTERING:
        return
    several = {len(group) for group in groups}
    if len(several) > 1 or sum(map(len, groups)) < len(code.plan.places):
        rule = "JAX scatters and gathers only over groups of one size that hold every rank"
        raise InputError(given, rule, "use --to python, or forbid the form (--forbid-form master)")


def _head(plan: PlacedPlan) -> str:
    lines = [
        f'"""Collectives of {comment_name(plan.source)} for JAX, written by p2smt.',
        "",
        ranks_line(plan),
        "A function takes and returns the array of one rank, inside a shard_map over mesh() with",
        "check_vma=False; sharded(function, mesh()) is such a map.",
        '"""',
        "",
    ]
    return "\n".join(lines)


def _constants(code: CodedPlan) -> str:
    lines = [f"RANKS = {len(code.plan.places)}", "GROUPS = ("]
    for groups in code.groups:
        lines.append(groups_lines(groups))
    return "\n".join([*lines, ")", ""])


def _mesh(plan: PlacedPlan) -> str:
    ranks = launched_ranks(plan)
    plain = bool((np.diff(ranks.ravel()) == 1).all())
    order = tensor_text(ranks, "np.arange", "np.array", "transpose")
    text = "" if plain else f"[\n        {order}.ravel()\n    ]"
    return helpers.MESH.replace("{ordered}", text)


def _function(request: CodedRequest) -> str:
    body = _direct(request) if request.direct else _stepwise(request)
    lines = [f"def {request.name}(x):", *request_doc(request, _WHAT[request.kind]), *body, ""]
    return "\n".join(f"    {line}" if line and i else line for i, line in enumerate(lines))


_WHAT = {
    RequestKind.ALL_REDUCE: "The sum of `x` over the group.",
    RequestKind.REDUCE_SCATTER: "This rank's part of the sum of `x` over the group.",
    RequestKind.ALL_GATHER: "The `x` of every rank of the group, by their ranks.",
    RequestKind.ALL_TO_ALL: "The parts that the ranks of the group have for this one.",
    RequestKind.SEND: "The `x` of the rank before in the line; zeros on the first.",
}


def _direct(request: CodedRequest) -> list[str]:
    """The collective itself."""
    if request.request.size == 1:
        return ["return jnp.zeros_like(x)" if request.kind is RequestKind.SEND else "return x"]
    number = request.steps[0].groups
    grouped = f"axis_index_groups=_groups({number})"
    match request.kind:
        case RequestKind.ALL_REDUCE:
            return [f"return lax.psum(x, AXIS, {grouped})"]
        case RequestKind.REDUCE_SCATTER:
            return [f"return lax.psum_scatter(x.reshape(-1), AXIS, {grouped}, tiled=True)"]
        case RequestKind.ALL_GATHER:
            return [f"return lax.all_gather(x.reshape(-1), AXIS, {grouped}, tiled=True)"]
        case RequestKind.ALL_TO_ALL:
            call = f"lax.all_to_all(x.reshape(-1), AXIS, 0, 0, {grouped}, tiled=True)"
            return [f"received = {call}", "return received.reshape(x.shape)"]
        case RequestKind.SEND:
            pairs = f"[pair for line in GROUPS[{number}] for pair in zip(line, line[1:])]"
            return [f"pairs = {pairs}", "return lax.ppermute(x, AXIS, pairs)"]


def _stepwise(request: CodedRequest) -> list[str]:
    """The steps on pieces of the payload."""
    parts, calls = stepped(request, _rows, _LISTED)
    how = f"{rows_of(request)}, {request.chunks}"
    told = (request.place, request.shard or RowChoice(1))
    place, shard = (one_text(row, _LISTED) for row in told)
    match request.kind:
        case RequestKind.ALL_REDUCE:
            end = f"return _in_place(x, {how}, steps)"
        case RequestKind.REDUCE_SCATTER:
            end = f"return _scattered(x, {how}, {shard}, steps)"
        case _:
            end = f"return _gathered(x, {how}, {place}, steps)"
    before = variables(request, "lax.axis_index(AXIS)", [*parts, end])
    return [*before, *parts, "", "def steps(piece):", *_body(calls), "", end]


def _body(calls: list[str]) -> Iterator[str]:
    for call in calls[:-1]:
        yield f"    piece = {call}"
    yield f"    return {calls[-1]}"


def _rows(rows: RowChoice) -> str:
    if rows.step == 1:
        return f"({rows.first}, {rows.count})"
    return f"{rows.first} + {rows.step} * np.arange({rows.count})"
