"""Requests ready to be printed as code: whose ranks do what in each step, on which rows."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.collectives.demand import Chunks, demand_of, plain_kind
from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.errors import InputError
from p2smt.interop.meshes.programs.memory_rows import (
    CodedStep,
    LaunchedRequest,
    LaunchedStep,
    LocalSteps,
    MemoryRows,
    PlaceDigits,
    ProgramRows,
    RowChoice,
    StepOperation,
    launched_requests,
    member_groups,
    program_rows,
)
from p2smt.interop.meshes.tensor import launched_ranks
from p2smt.interop.places import PlacedPlan
from p2smt.units import format_bytes

_NO_DIGITS = PlaceDigits((), ())
_FIRST = RowChoice(1)
_WHOLE = (Collective.ALL_REDUCE, Collective.REDUCE, Collective.BROADCAST)


@dataclass(frozen=True, slots=True)
class CodedRequest:
    """A request.  ``direct``: its one step is the collective itself, over its whole groups.

    ``groups`` is the number of its own groups in :class:`CodedPlan`, where ``direct``.
    ``place`` is a rank's place in its group, its number among the members' launched ranks;
    ``shard`` the number of the part that a rank ends with, of a reduce-scatter.
    """

    name: str
    request: LaunchedRequest
    direct: bool
    digits: PlaceDigits
    steps: tuple[CodedStep, ...]
    place: RowChoice = _FIRST
    shard: RowChoice | None = None

    @property
    def kind(self) -> RequestKind:
        """What is asked."""
        return plain_kind(self.request.model.kind)

    @property
    def chunks(self) -> int:
        """Pieces in which the program runs, its steps overlapping."""
        return self.request.model.chunks if len(self.steps) > 1 else 1


@dataclass(frozen=True, slots=True)
class CodedPlan:
    """Every request of a plan, and every list of groups that they need, each once.

    Groups list launched ranks: the one at which a reduce ends or a broadcast begins first, the
    others ascending.  ``plan_ranks`` are the ranks of the plan by launched rank; empty where they
    are the same.
    """

    plan: PlacedPlan
    requests: tuple[CodedRequest, ...]
    groups: tuple[tuple[tuple[int, ...], ...], ...]
    plan_ranks: tuple[int, ...]


def coded(plan: PlacedPlan) -> CodedPlan:
    """The requests of a plan ready to be printed.

    Raises:
        InputError: a step that cannot be carried out, or groups that cannot be written down.
    """
    known: dict[tuple[tuple[int, ...], ...], int] = {}
    found = tuple(_coded(plan, request, known) for request in launched_requests(plan))
    ranks = np.argsort(launched_ranks(plan).ravel())
    same = (np.diff(ranks) == 1).all()
    return CodedPlan(plan, found, tuple(known), () if same else tuple(ranks.tolist()))


_Known = dict[tuple[tuple[int, ...], ...], int]


def _coded(plan: PlacedPlan, request: LaunchedRequest, known: _Known) -> CodedRequest:
    name = request.name
    if request.size == 1:
        return CodedRequest(name, request, True, _NO_DIGITS, ())
    if _is_direct(request):
        step = request.steps[0]
        whole = CodedStep(step.text, step.operation, _listed(step, known), RowChoice(request.size))
        return CodedRequest(name, request, True, _NO_DIGITS, (whole,))
    alike = all(step.operation in _WHOLE for step in request.steps)
    if alike and request.model.kind is RequestKind.ALL_REDUCE:
        _check_whole(plan, request)
        steps = tuple(
            CodedStep(step.text, step.operation, _listed(step, known), RowChoice(1))
            for step in request.steps
        )
        return CodedRequest(name, request, False, _NO_DIGITS, steps)
    return _cut(plan, request, known)


def _is_direct(request: LaunchedRequest) -> bool:
    """Whether the one step is over the request's own groups; of all-to-all and send it must be."""
    step, kind = request.steps[0], plain_kind(request.model.kind)
    own = {frozenset(group) for group in request.groups.tolist()}
    whole = len(request.steps) == 1 and {frozenset(group) for group in step.groups} == own
    if kind is RequestKind.ALL_TO_ALL and request.model.program is not None:
        rule = "is several all-to-alls, one after the other, which are not written as code"
        raise InputError(request.name, rule, "solve with --length 1 for a single all-to-all")
    if not whole and kind not in DIRECT:
        raise InputError(request.name, "is not one step over its groups", "verify the plan")
    return whole and step.operation is DIRECT.get(kind, kind)


def _listed(step: LaunchedStep, known: _Known) -> int:
    """The number of a step's groups; new ones are added."""
    if step.operation in (Collective.REDUCE, Collective.BROADCAST):
        groups = tuple((group[0], *sorted(group[1:])) for group in step.groups)
    elif step.operation is RequestKind.SEND:
        groups = step.groups
    else:
        groups = tuple(tuple(sorted(group)) for group in step.groups)
    return known.setdefault(tuple(sorted(groups)), len(known))


def _check_whole(plan: PlacedPlan, request: LaunchedRequest) -> None:
    """Whether every rank that reduces or sends has something, and all end with the whole."""
    holds = [True] * len(plan.places)
    for number, step in enumerate(request.steps, start=1):
        for group in step.groups:
            givers = group[:1] if step.operation is Collective.BROADCAST else group
            if not all(holds[rank] for rank in givers):
                given = f"{plan.source}: {request.name}, step {number}"
                rule = "a member holds nothing that it could give"
                raise InputError(given, rule, "verify the plan")
            for rank in group:
                holds[rank] = step.operation is not Collective.REDUCE or rank == group[0]
    if not all(holds):
        raise InputError(f"{plan.source}: {request.name}", "does not end", "verify the plan")


def _cut(plan: PlacedPlan, request: LaunchedRequest, known: _Known) -> CodedRequest:
    """A program that cuts the payload into rows."""
    given = f"{plan.source}: {request.name}"
    digits, groups = member_groups(plan, request)
    found = [_rows_of(given, request, steps) for steps in groups.local]
    rows = MemoryRows(request, groups)
    steps = tuple(
        rows.step(step, [one.steps[i] for one in found], _listed(step, known))
        for i, step in enumerate(request.steps)
    )
    shard = None
    if request.model.kind is RequestKind.REDUCE_SCATTER:
        shard = rows.choice(
            [rows.row_of[g][end] for g, one in enumerate(found) for end in one.ends]
        )
    place = rows.choice([np.array([at]) for at in groups.places.ravel()])
    return CodedRequest(request.name, request, False, digits, steps, place, shard)


def _rows_of(given: str, request: LaunchedRequest, steps: LocalSteps) -> ProgramRows:
    """The rows of one group's members, which must end as the request asks."""
    operations = [step.operation for step in request.steps]
    parts = [
        (operation, groups)
        for operation, groups in zip(operations, steps, strict=True)
        if isinstance(operation, Collective)
    ]
    found = program_rows(plain_kind(request.model.kind), request.size, parts)
    one_each = demand_of(request.model.kind).goal.chunks is Chunks.ONE_EACH
    wanted = 1 if one_each else request.size
    if any(end is None or len(end) != wanted for end in found.ends):
        raise InputError(given, "does not end with the rows asked for", "verify the plan")
    return found


# What the printed functions of every framework have in common: their words and variables.


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
