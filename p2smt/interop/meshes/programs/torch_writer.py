"""The requests of a plan as functions for torch.distributed, in a module that needs no other."""

from __future__ import annotations

import textwrap

from p2smt.collectives.names import RequestKind
from p2smt.interop.exported import Exported
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.meshes.arrays import comment_name, groups_lines, interval, wrapped
from p2smt.interop.meshes.programs import torch_helpers as helpers
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
from p2smt.interop.meshes.programs.row_text import RowChoice


def write_torch(plan: PlacedPlan, _path: str) -> Exported:
    """A module with a function for each request.

    Raises:
        InputError: a step that cannot be carried out, or that takes too much to write down.
    """
    code = coded(plan)
    parts = [_head(code), helpers.HEAD, _constants(code), *_calls(code), helpers.GROUPS]
    parts += [_function(request, bool(code.plan_ranks)) for request in code.requests]
    names = {
        operation_name(step.operation) for r in code.requests if not r.direct for step in r.steps
    }
    kinds = {operation_name(r.kind) for r in code.requests if not r.direct}
    parts += [text for name, text in helpers.WHOLES.items() if name in kinds]
    if names:
        parts.append(helpers.RUN)
    parts += [text for name, text in helpers.STEPS.items() if name in names]
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
    return [text for name, text in helpers.CALLS.items() if name in used]


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
