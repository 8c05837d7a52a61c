"""What the printed functions of every framework have in common: their words and variables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence

from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.meshes.programs.coded import CodedRequest
from p2smt.interop.meshes.programs.row_text import RowChoice
from p2smt.interop.meshes.programs.steps import StepOperation
from p2smt.units import format_bytes

_LONG = 90
"""Characters of a line beyond which an expression gets a name."""


def operation_name(operation: StepOperation) -> str:
    """The name of an operation in code."""
    return str(operation.value).replace("-", "_")


def ranks_line(plan: PlacedPlan) -> str:
    """How the ranks of a plan are numbered, for the head of a module."""
    axes = ", ".join(f"{axis.name}={axis.size}" for axis in plan.problem.axes)
    return f"Ranks are row-major over {axes}, the first axis most significant."


def request_doc(request: CodedRequest, what: str) -> list[str]:
    """The docstring of a request's function: what it does, and its steps."""
    model, size = request.request.model, request.request.size
    along = f"{'+'.join(model.axes)}: {size} rank{'s' * (size > 1)}"
    head = f"{what}  Groups are along {along}; planned for {format_bytes(model.bytes)}."
    lines = textwrap.wrap(head, 92)
    if len(request.steps) > 1:
        pieces = f" in {request.chunks} pieces" if request.chunks > 1 else ""
        lines += ["", f"Steps{pieces}:"]
        lines += [f"{i}. {step.text}" for i, step in enumerate(request.steps, start=1)]
    if len(lines) == 1:
        return [f'"""{lines[0]}"""']
    return [f'"""{lines[0]}', *lines[1:], '"""']


def rows_of(request: CodedRequest) -> int:
    """Into how many rows the payload is cut; one where every step works on the whole."""
    return 1 if all(step.rows == RowChoice(1) for step in request.steps) else request.request.size


def stepped(
    request: CodedRequest, text_of: Callable[[RowChoice], str], table: str = "{}"
) -> tuple[list[str], list[str]]:
    """Assignments of the rows that the steps work on, and a call for each step.

    text_of: the expression of rows that are no table; table: that of a table, with ``{}`` for the
        list that it is.
    """
    names: dict[RowChoice, str] = {}
    lines: list[str] = []
    calls = []
    for step in request.steps:
        chosen = []
        for rows in (step.rows, step.own):
            if rows is None:
                continue
            if rows not in names:
                names[rows] = f"part_{len(names) + 1}"
                lines += _assigned(names[rows], rows, text_of, table)
            chosen.append(names[rows])
        arguments = ", ".join(["piece", *chosen, str(step.groups)])
        calls.append(f"_{operation_name(step.operation)}({arguments})")
    return lines, calls


def _assigned(
    name: str, rows: RowChoice, text_of: Callable[[RowChoice], str], table: str
) -> list[str]:
    before, after = table.split("{}")
    if rows.table:
        lines = [f"    {list(row)}," for row in rows.table]
        return [f"{name} = {before}[", *lines, f"]{after}[{rows.by}]"]
    whole = f"{name} = {text_of(rows)}"
    if not rows.firsts and len(whole) <= _LONG:
        return [whole]
    first = RowChoice(rows.count, f"first_{name}", rows.step)
    return [f"{first.first} = {one_text(rows, table)}", f"{name} = {text_of(first)}"]


def one_text(row: RowChoice, table: str = "{}") -> str:
    """The expression of a single row; ``table`` as in :func:`stepped`."""
    return f"{table.format(list(row.firsts))}[{row.by}]" if row.firsts else row.first


def variables(request: CodedRequest, rank: str, lines: Sequence[str]) -> list[str]:
    """Assignments of the variables that some lines use.

    rank: the expression of the rank in the plan.
    """
    needs_place = any(re.search(r"\bplace\b", line) for line in lines)
    place = [f"place = {one_text(request.place)}"] if needs_place else []
    found = [*request.digits.lines([*place, *lines]), *place]
    uses_rank = any(re.search(r"\brank\b", line) for line in [*found, *lines])
    return [f"rank = {rank}", *found] if uses_rank else found
