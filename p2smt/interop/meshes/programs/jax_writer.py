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
from p2smt.interop.meshes.arrays import comment_name, groups_lines, tensor_text
from p2smt.interop.meshes.programs.coded import (
    CodedPlan,
    CodedRequest,
    coded,
    one_text,
    operation_name,
    ranks_line,
    request_doc,
    rows_of,
    stepped,
    variables,
)
from p2smt.interop.meshes.programs.memory_rows import CodedStep, RowChoice
from p2smt.interop.meshes.tensor import as_planned, launched_ranks, process_notes
from p2smt.interop.places import PlacedPlan

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
    parts = [_head(plan), HEAD, _constants(code), _mesh(plan)]
    parts += [_function(request) for request in code.requests]
    parts += [text for name, text in WHOLES.items() if name in kinds]
    if names:
        parts.append(PARTS)
    if code.groups:
        parts.append(GROUPS)
    if names & {"reduce", "broadcast"}:
        parts.append(LEADS)
    parts += [text for name, text in STEPS.items() if name in names]
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
    return MESH.replace("{ordered}", text)


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


# What modules for JAX hold besides the programs; each part where it is needed.


HEAD = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

AXIS = "ranks"
"""

MESH = '''\
def mesh():
    """The devices in the order of the ranks."""
    devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
    if len(devices) != RANKS:
        raise RuntimeError(f"these programs are for {RANKS} devices, not {len(devices)}")
    return Mesh(np.array(devices){ordered}, (AXIS,))


def sharded(function, mesh):
    """A function of this module over arrays whose part i is the array of rank i."""

    def local(x):
        return function(x[0])[None]

    spec = PartitionSpec(AXIS)
    return jax.jit(
        jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    )
'''

GROUPS = '''\
def _groups(number):
    """The groups, and each rank outside them alone: JAX wants every rank in one."""
    groups = [list(ranks) for ranks in GROUPS[number]]
    inside = {rank for ranks in groups for rank in ranks}
    return groups + [[rank] for rank in range(RANKS) if rank not in inside]
'''

LEADS = '''\
def _leads(number):
    """Whether this rank is the first of its group."""
    firsts = np.zeros(RANKS, dtype=bool)
    firsts[[ranks[0] for ranks in _groups(number)]] = True
    return jnp.array(firsts)[lax.axis_index(AXIS)]
'''

PARTS = '''\
def _take(piece, part):
    """Rows of a piece: (first, how many), or their numbers."""
    if isinstance(part, tuple):
        return lax.dynamic_slice_in_dim(piece, part[0], part[1])
    return piece[part]


def _put(piece, part, data):
    if isinstance(part, tuple):
        return lax.dynamic_update_slice_in_dim(piece, data, part[0], axis=0)
    return piece.at[part].set(data)
'''

STEPS = {
    "all_reduce": """\
def _all_reduce(piece, part, number):
    data = lax.psum(_take(piece, part), AXIS, axis_index_groups=_groups(number))
    return _put(piece, part, data)
""",
    "reduce": '''\
def _reduce(piece, part, number):
    """The sum ends on the first rank of a group: a psum that the others forget."""
    own = _take(piece, part)
    data = lax.psum(own, AXIS, axis_index_groups=_groups(number))
    return _put(piece, part, jnp.where(_leads(number), data, own))
''',
    "broadcast": '''\
def _broadcast(piece, part, number):
    """From the first rank of a group: a psum to which the others give zeros."""
    own = _take(piece, part)
    given = jnp.where(_leads(number), own, jnp.zeros_like(own))
    return _put(piece, part, lax.psum(given, AXIS, axis_index_groups=_groups(number)))
''',
    "reduce_scatter": """\
def _reduce_scatter(piece, part, own, number):
    data = lax.psum_scatter(
        _take(piece, part), AXIS, axis_index_groups=_groups(number), tiled=True
    )
    return _put(piece, own, data)
""",
    "all_gather": """\
def _all_gather(piece, part, own, number):
    data = lax.all_gather(_take(piece, own), AXIS, axis_index_groups=_groups(number), tiled=True)
    return _put(piece, part, data)
""",
}

WHOLES = {
    "all_reduce": '''\
def _in_place(x, rows, pieces, steps):
    """Run the steps on an array cut into rows; it is padded where they do not divide it."""
    flat = x.reshape(-1)
    padded = jnp.pad(flat, (0, -flat.size % (rows * pieces)))
    done = [steps(piece) for piece in padded.reshape(pieces, rows, -1)]
    return jnp.stack(done).reshape(-1)[: flat.size].reshape(x.shape)
''',
    "reduce_scatter": '''\
def _scattered(x, rows, pieces, shard, steps):
    """Run the steps on the array cut into rows, and return the row that this rank ends with."""
    if x.size % rows:
        raise ValueError(f"{x.size} elements do not split into {rows} parts")
    parts = jnp.array_split(x.reshape(rows, -1), pieces, axis=1)
    return jnp.concatenate([steps(part) for part in parts if part.size], axis=1)[shard]
''',
    "all_gather": '''\
def _gathered(x, rows, pieces, place, steps):
    """Run the steps on rows of which this rank brings one, and return them all."""
    whole = jnp.zeros((rows, x.size), x.dtype).at[place].set(x.reshape(-1))
    parts = jnp.array_split(whole, pieces, axis=1)
    return jnp.concatenate([steps(part) for part in parts if part.size], axis=1).reshape(-1)
''',
}
