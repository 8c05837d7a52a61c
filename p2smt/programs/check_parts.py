"""Checks programs on groups that levels cut unequally: each kind of group by the semantics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.collectives.demand import Demand
from p2smt.errors import InputError
from p2smt.programs import semantics
from p2smt.programs.parts import CutGroup, UnevenSlicesError, by_size
from p2smt.programs.program import Instruction, Program
from p2smt.programs.semantics import Step, Trace, Violation, ViolationKind


@dataclass(frozen=True, slots=True)
class CheckedParts:
    """The run of a program on every group of a request.

    ``trace`` has the most rows of any group; its violation is that of the group with index
    ``group``, whose members it counts by their positions.
    """

    trace: Trace
    group: int = 0


def check_on_parts(demand: Demand, cut: Sequence[CutGroup], program: Program) -> CheckedParts:
    """Run a program on each group, member by member; groups that are cut alike share a run.

    Raises:
        InputError: the program names a level that is not there, or a step of it acts in no group.
        TooLarge: a group has more members than state matrices are checked for.
    """
    for instruction in program.instructions:
        if not any(_acts(parts, instruction) for parts in dict.fromkeys(cut)):
            raise InputError(f"instruction '{instruction}'", "forms groups of one device")
    runs: dict[CutGroup, Trace] = {}
    for number, parts in enumerate(cut):
        if parts not in runs:
            runs[parts] = _run(demand, parts, program)
        if runs[parts].violation is not None:
            return CheckedParts(runs[parts], number)
    traces = tuple(runs.values())
    if (other := _other_shards(cut, runs)) is not None:
        text = "reduction groups end with their chunks in different orders"
        broken = Violation(ViolationKind.UNEVEN_SLICES, len(program), (), None, None, text)
        return CheckedParts(replace(traces[0], violation=broken), other)
    rows = zip(*(trace.payload_rows for trace in traces), strict=True)
    peak = max(trace.peak_rows for trace in traces)
    return CheckedParts(Trace(None, tuple(map(max, rows)), peak, traces[0].shards))


def _other_shards(cut: Sequence[CutGroup], runs: dict[CutGroup, Trace]) -> int | None:
    """The first group whose members end with other chunks than those of the first group."""
    first = runs[cut[0]].shards
    return next((n for n, parts in enumerate(cut) if runs[parts].shards != first), None)


def _acts(parts: CutGroup, instruction: Instruction) -> bool:
    """Whether some members of a group meet, or ought to."""
    try:
        return bool(parts.groups(instruction))
    except UnevenSlicesError:
        return True


def _run(demand: Demand, parts: CutGroup, program: Program) -> Trace:
    steps: list[Step | None] = []
    for number, instruction in enumerate(program.instructions, start=1):
        try:
            every = by_size(parts.groups(instruction))
        except UnevenSlicesError as error:
            text = f"step {number} ({instruction}): {error.message}"
            kind = ViolationKind.UNEVEN_SLICES
            broken = Violation(kind, number, error.odd, None, None, text)
            before = semantics.run(demand, parts.size, steps)
            earlier = before.violation
            missed = earlier is None or earlier.kind is ViolationKind.GOAL_MISSED
            return replace(before, violation=broken) if missed else before
        first, *others = every or (None,)
        steps.append(first if first is None else Step(instruction.collective, first, tuple(others)))
    return semantics.run(demand, parts.size, steps)
