"""The requests of a plan as functions for torch.distributed, in a module that needs no other."""

from __future__ import annotations

import textwrap

from p2smt.collectives.names import RequestKind
from p2smt.interop.exported import Exported
from p2smt.interop.meshes.arrays import comment_name, groups_lines, interval, wrapped
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
from p2smt.interop.meshes.programs.memory_rows import RowChoice
from p2smt.interop.places import PlacedPlan


def write_torch(plan: PlacedPlan, _path: str) -> Exported:
    """A module with a function for each request.

    Raises:
        InputError: a step that cannot be carried out, or that takes too much to write down.
    """
    code = coded(plan)
    parts = [_head(code), HEAD, _constants(code), *_calls(code), GROUPS]
    parts += [_function(request, bool(code.plan_ranks)) for request in code.requests]
    names = {
        operation_name(step.operation) for r in code.requests if not r.direct for step in r.steps
    }
    kinds = {operation_name(r.kind) for r in code.requests if not r.direct}
    parts += [text for name, text in WHOLES.items() if name in kinds]
    if names:
        parts.append(RUN)
    parts += [text for name, text in STEPS.items() if name in names]
    return Exported(_joined(parts))


def _joined(parts: list[str]) -> str:
    """Parts with two empty lines before functions and one elsewhere."""
    text = ""
    for part in parts:
        text += "\n" * (text != "") * (2 if part.startswith(("def ", "_made")) else 1) + part
    return text


def _head(code: CodedPlan) -> str:
    ranks = [ranks_line(code.plan)]
    if code.plan_ranks:
        ranks = [*ranks, "PLAN_RANKS has the rank of the plan by the rank that is launched."]
    name = comment_name(code.plan.source)
    lines = [
        f'"""Collectives of {name} for torch.distributed, written by p2smt.',
        "",
        *(line for text in ranks for line in textwrap.wrap(text, 96)),
        "Every rank calls make_groups() once, after init_process_group, and then the same",
        "functions in the same order.",
        '"""',
        "",
    ]
    return "\n".join(lines)


def _constants(code: CodedPlan) -> str:
    lines = [f"RANKS = {len(code.plan.places)}"]
    if code.plan_ranks:
        lines += ["PLAN_RANKS = (", wrapped(list(code.plan_ranks)), ")"]
    lines.append("GROUPS = (")
    for groups in code.groups:
        lines.append(groups_lines(groups))
    return "\n".join([*lines, ")", ""])


def _calls(code: CodedPlan) -> list[str]:
    used = {operation_name(step.operation) for request in code.requests for step in request.steps}
    return [text for name, text in CALLS.items() if name in used]


def _function(request: CodedRequest, renumbered: bool) -> str:
    body = _direct(request) if request.direct else _stepwise(request, renumbered)
    lines = [f"def {request.name}(tensor):", *request_doc(request, _WHAT[request.kind]), *body, ""]
    return "\n".join(f"    {line}" if line and i else line for i, line in enumerate(lines))


_WHAT = {
    RequestKind.ALL_REDUCE: "Sum `tensor` over the group, in place, and return it.",
    RequestKind.REDUCE_SCATTER: "Return this rank's part of the sum of `tensor` over the group.",
    RequestKind.ALL_GATHER: "Return the `tensor` of every rank of the group, by their ranks.",
    RequestKind.ALL_TO_ALL: "Return the parts that the ranks of the group have for this one.",
    RequestKind.SEND: "Send `tensor` to the next rank of the line, and return what the one before "
    "sends; None on the first.",
}


def _direct(request: CodedRequest) -> list[str]:
    """The collective itself."""
    if request.request.size == 1:
        nothing = request.kind is RequestKind.SEND
        return ["return None" if nothing else "return tensor.clone()"]
    number, size = request.steps[0].groups, request.request.size
    lines = [f"group, ranks = _made[{number}]"]
    match request.kind:
        case RequestKind.ALL_REDUCE:
            lines += ["dist.all_reduce(tensor, group=group)", "return tensor"]
        case RequestKind.REDUCE_SCATTER:
            lines += [
                *_divides(size),
                f"own = tensor.new_empty(tensor.numel() // {size})",
                "_reduce_scatter_call(own, tensor.reshape(-1), group=group)",
                "return own",
            ]
        case RequestKind.ALL_GATHER:
            lines += [
                f"whole = tensor.new_empty(tensor.numel() * {size})",
                "_all_gather_call(whole, tensor.reshape(-1), group=group)",
                "return whole",
            ]
        case RequestKind.ALL_TO_ALL:
            lines += [
                *_divides(size),
                "received = torch.empty_like(tensor.reshape(-1))",
                "dist.all_to_all_single(received, tensor.reshape(-1), group=group)",
                "return received.view_as(tensor)",
            ]
        case RequestKind.SEND:
            lines += _SEND
    if "ranks" not in " ".join(lines[1:]):
        lines[0] = f"group, _ = _made[{number}]"
    return lines


def _divides(size: int) -> list[str]:
    return [
        f"if tensor.numel() % {size}:",
        f'    raise ValueError(f"{{tensor.numel()}} elements do not split into {size} parts")',
    ]


_SEND = [
    "place = ranks.index(dist.get_rank())",
    "received, calls = None, []",
    "if place + 1 < len(ranks):",
    "    calls.append(dist.P2POp(dist.isend, tensor.contiguous(), ranks[place + 1], group))",
    "if place > 0:",
    "    received = torch.empty_like(tensor, memory_format=torch.contiguous_format)",
    "    calls.append(dist.P2POp(dist.irecv, received, ranks[place - 1], group))",
    "for work in dist.batch_isend_irecv(calls):",
    "    work.wait()",
    "return received",
]


def _stepwise(request: CodedRequest, renumbered: bool) -> list[str]:
    """The steps on pieces of the payload."""
    parts, calls = stepped(request, _rows)
    how = f"{rows_of(request)}, {request.chunks}"
    place, shard = (one_text(one or RowChoice(1)) for one in (request.place, request.shard))
    match request.kind:
        case RequestKind.ALL_REDUCE:
            end = f"return _in_place(tensor, {how}, steps)"
        case RequestKind.REDUCE_SCATTER:
            end = f"return _scattered(tensor, {how}, {shard}, steps)"
        case _:
            end = f"return _gathered(tensor, {how}, {place}, steps)"
    rank = "PLAN_RANKS[dist.get_rank()]" if renumbered else "dist.get_rank()"
    body = [f"    yield from {call}" for call in calls]
    return [
        *variables(request, rank, [*parts, end]),
        *parts,
        "",
        "def steps(piece):",
        *body,
        "",
        end,
    ]


def _rows(rows: RowChoice) -> str:
    return f"slice({interval(rows.first, rows.count, rows.step)})"


# What modules for torch.distributed hold besides the programs; each part where it is needed.


HEAD = """\
from __future__ import annotations

import torch
import torch.distributed as dist
"""

GROUPS = '''\
_made: list[tuple[dist.ProcessGroup, list[int]] | None] = []


def make_groups() -> None:
    """Make the process groups.  Every rank calls this once, after init_process_group."""
    if dist.get_world_size() != RANKS:
        raise RuntimeError(f"these programs are for {RANKS} ranks, not {dist.get_world_size()}")
    for groups in GROUPS:
        _made.append(None)
        for ranks in map(list, groups):
            group = dist.new_group(ranks)
            if dist.get_rank() in ranks:
                _connect(group)
                _made[-1] = group, ranks


def _connect(group: dist.ProcessGroup) -> None:
    """Let the members meet now: NCCL's would at their first call, which a send must not be."""
    if dist.get_backend(group) == "nccl":
        dist.barrier(group, device_ids=[torch.cuda.current_device()])
'''

RUN = '''\
def _run(pieces, steps) -> None:
    """Run the steps of every piece: step s of piece i starts once step s - 1 is complete, and
    after step s + 1 of the piece before."""
    waiting, running = [steps(piece) for piece in pieces], []
    while waiting or running:
        if waiting:
            running.append((waiting.pop(0), None))
        left = []
        for piece, work in running:
            if work is not None:
                work.wait()
            started = next(piece, False)
            if started is not False:
                left.append((piece, started))
        running = left


def _put(piece, rows, data) -> None:
    """Write rows back, unless the data are a view of them."""
    if data.untyped_storage().data_ptr() != piece.untyped_storage().data_ptr():
        piece[rows] = data
'''

STEPS = {
    "all_reduce": """\
def _all_reduce(piece, rows, number):
    if _made[number] is None:
        yield None
        return
    group, _ = _made[number]
    data = piece[rows].contiguous()
    yield dist.all_reduce(data, group=group, async_op=True)
    _put(piece, rows, data)
""",
    "reduce": '''\
def _reduce(piece, rows, number):
    """The sum ends on the first rank of a group."""
    if _made[number] is None:
        yield None
        return
    group, ranks = _made[number]
    data = piece[rows].contiguous()
    yield dist.reduce(data, dst=ranks[0], group=group, async_op=True)
    _put(piece, rows, data)
''',
    "broadcast": '''\
def _broadcast(piece, rows, number):
    """From the first rank of a group."""
    if _made[number] is None:
        yield None
        return
    group, ranks = _made[number]
    data = piece[rows].contiguous()
    yield dist.broadcast(data, src=ranks[0], group=group, async_op=True)
    _put(piece, rows, data)
''',
    "reduce_scatter": """\
def _reduce_scatter(piece, rows, own, number):
    if _made[number] is None:
        yield None
        return
    group, _ = _made[number]
    data, kept = piece[rows].contiguous(), piece[own].contiguous()
    yield _reduce_scatter_call(kept, data, group=group, async_op=True)
    _put(piece, own, kept)
""",
    "all_gather": """\
def _all_gather(piece, rows, own, number):
    if _made[number] is None:
        yield None
        return
    group, _ = _made[number]
    data, brought = piece[rows].contiguous(), piece[own].contiguous()
    yield _all_gather_call(data, brought, group=group, async_op=True)
    _put(piece, rows, data)
""",
}

CALLS = {
    "reduce_scatter": (
        "_reduce_scatter_call = "
        'getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor\n'
    ),
    "all_gather": (
        "_all_gather_call = "
        'getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor\n'
    ),
}
"""Named anew in torch 2.13, where the older names warn."""

WHOLES = {
    "all_reduce": '''\
def _in_place(tensor, rows, pieces, steps):
    """Run the steps on a tensor cut into rows; it is padded where they do not divide it."""
    flat = tensor.reshape(-1)
    padded = torch.nn.functional.pad(flat, (0, -flat.numel() % (rows * pieces)))
    if padded.numel() == flat.numel():
        padded = flat
    _run([piece.view(rows, -1) for piece in padded.view(pieces, -1)], steps)
    if padded.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr():
        tensor.copy_(padded[: flat.numel()].view_as(tensor))
    return tensor
''',
    "reduce_scatter": '''\
def _scattered(tensor, rows, pieces, shard, steps):
    """Run the steps on a copy cut into rows, and return the row that this rank ends with."""
    if tensor.numel() % rows:
        raise ValueError(f"{tensor.numel()} elements do not split into {rows} parts")
    whole = tensor.reshape(rows, -1).clone(memory_format=torch.contiguous_format)
    _run([part for part in whole.tensor_split(pieces, dim=1) if part.numel()], steps)
    return whole[shard].clone()
''',
    "all_gather": '''\
def _gathered(tensor, rows, pieces, place, steps):
    """Run the steps on rows of which this rank brings one, and return them all."""
    whole = tensor.new_zeros((rows, tensor.numel()))
    whole[place] = tensor.reshape(-1)
    _run([part for part in whole.tensor_split(pieces, dim=1) if part.numel()], steps)
    return whole.reshape(-1)
''',
}
