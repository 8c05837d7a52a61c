"""Slices of groups that no matrix gives: the members of a group, cut by the levels of a topology.

On the groups of a matrix all slices of a level have one size (:mod:`p2smt.programs.program`).
A rank list under unequal switches has groups of 5, 7 and 4 nodes.  The text of a program means the
same there: an instruction names levels, and the slice at a level holds the members of a group
that lie in one of its entities.

* ``inside L``: each slice at L.
* ``master L in E``: the first member of each slice at L, of those in one slice at E.
* ``parallel L in E``: the i-th members of the slices at L in one slice at E; these must be of one
  size.

A slice of one member has nothing to do.  Members are numbered in the order of their communicator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2smt.cluster.topology import ROOT, Topology
from p2smt.collectives.demand import Demand
from p2smt.collectives.names import Collective, Form
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray
from p2smt.programs import semantics
from p2smt.programs.program import Hierarchy, Instruction, Program
from p2smt.programs.semantics import Step, Trace, Violation, ViolationKind

Members = tuple[int, ...]
"""Members of a group by their positions in it."""

CUTS = frozenset({Collective.REDUCE_SCATTER, Collective.ALL_GATHER})
"""Collectives that work on a piece for each member, which differ where groups do."""


class UnevenSlicesError(Exception):
    """An instruction needs slices of one size where a group has others.

    ``slice`` are the members of one that differs from the first, as positions.
    """

    def __init__(self, message: str, odd: Members) -> None:
        super().__init__(message, odd)
        self.message, self.odd = message, odd


@dataclass(frozen=True, slots=True)
class CutGroup:
    """A group cut by levels: ``entities[j][i]`` numbers the entity of level j that member i is in.

    ``names`` are those of the levels, the root's first; its one entity holds all members.
    Entities are numbered as they first appear, so groups cut alike are equal.
    """

    names: tuple[str, ...]
    entities: tuple[Members, ...]

    @staticmethod
    def of(topology: Topology, group: Iterable[int]) -> CutGroup:
        """A group of devices, in the order of its communicator."""
        devices = np.array(list(group), dtype=np.int64)
        unders = [topology.devices, *map(topology.devices_under, range(len(topology.levels)))]
        entities = tuple(_numbered((devices // under).tolist()) for under in unders)
        return CutGroup((ROOT, *topology.names), entities)

    @property
    def size(self) -> int:
        """Members of the group."""
        return len(self.entities[0])

    def level(self, name: str) -> int:
        """The index of a level, the root being 0.

        Raises:
            InputError: there is none of that name.
        """
        if name not in self.names:
            known = ", ".join(self.names)
            raise InputError(f"level {name[:40]!r}", "is not in the topology", f"use {known}")
        return self.names.index(name)

    def slices(self, level: int) -> tuple[Members, ...]:
        """The slices at a level, each with its members ascending, by their first ones."""
        found: dict[int, list[int]] = {}
        for member, entity in enumerate(self.entities[level]):
            found.setdefault(entity, []).append(member)
        return tuple(map(tuple, found.values()))

    def groups(self, instruction: Instruction) -> tuple[Members, ...]:
        """The groups of one step, those of one member left out; none where all are.

        Raises:
            InputError: there is no such level, or the slice is not inside the other level.
            UnevenSlicesError: the instruction needs slices of one size, and these are not.
        """
        inner = self.level(instruction.slice)
        if instruction.form is Form.INSIDE_GROUP:
            found = self.slices(inner)
        else:
            found = tuple(self._across(instruction, inner))
        if instruction.collective in CUTS:
            _check_even(found, f"{instruction.collective.value} cuts the payload by their sizes")
        return tuple(group for group in found if len(group) > 1)

    def _across(self, instruction: Instruction, inner: int) -> Iterable[Members]:
        outer = self.level(instruction.ancestor or ROOT)
        if outer >= inner:
            raise InputError(f"instruction '{instruction}'", "forms groups of one device")
        whole, slices = self.entities[outer], self.slices(inner)
        for ancestor in dict.fromkeys(whole):
            meeting = [part for part in slices if whole[part[0]] == ancestor]
            if instruction.form is Form.MASTER:
                yield tuple(part[0] for part in meeting)
                continue
            _check_even(meeting, f"parallel {instruction.slice} pairs their members")
            yield from (tuple(sorted(group)) for group in zip(*meeting, strict=True))


def _numbered(entities: Sequence[int]) -> Members:
    number: dict[int, int] = {}
    return tuple(number.setdefault(entity, len(number)) for entity in entities)


def _check_even(slices: Sequence[Members], why: str) -> None:
    odd = next((part for part in slices if len(part) != len(slices[0])), None)
    if odd is not None:
        sizes = sorted({len(part) for part in slices})
        shown = ", ".join(map(str, sizes[:8])) + (", .." if len(sizes) > 8 else "")
        raise UnevenSlicesError(f"slices of {shown} members: {why}", odd)


def step_groups(
    cut: Sequence[CutGroup], groups: IntArray, instruction: Instruction
) -> tuple[tuple[int, ...], ...]:
    """Groups of devices of one step, over all groups: shape (groups, members), cut as ``cut`` says.

    Raises:
        InputError: a level that is not there, or no group has two members.
        UnevenSlicesError: see :meth:`CutGroup.groups`.
    """
    known = {parts: parts.groups(instruction) for parts in dict.fromkeys(cut)}
    found = tuple(
        tuple(group[member] for member in part)
        for parts, group in zip(cut, groups.tolist(), strict=True)
        for part in known[parts]
    )
    if not found:
        raise InputError(f"instruction '{instruction}'", "forms groups of one device")
    return found


def by_size(groups: Iterable[Sequence[int]]) -> tuple[IntArray, ...]:
    """Groups as arrays (groups, members), one for each size."""
    found: dict[int, list[Sequence[int]]] = {}
    for group in groups:
        found.setdefault(len(group), []).append(group)
    return tuple(np.array(found[size], dtype=np.int64) for size in sorted(found))


def common_hierarchy(cut: Sequence[CutGroup]) -> Hierarchy:
    """Levels that split some group, each two ways: what programs are sought on.

    A level that splits none has the depth of the next one outside it, as in
    :meth:`~p2smt.programs.program.Hierarchy.of`.
    """
    names = cut[0].names
    splits = [
        any(len(set(p.entities[j])) > len(set(p.entities[j - 1])) for p in cut)
        for j in range(1, len(names))
    ]
    return Hierarchy.of(names[1:], [2 if split else 1 for split in splits])


# Checks programs on groups that levels cut unequally: each kind of group by the semantics.


ON_DEVICES = "devices"
"""What programs on rank lists are run on: every member of every group."""


@dataclass(frozen=True, slots=True)
class CheckedParts:
    """The run of a program on every group of a request.

    ``trace`` has the most rows of any group; its violation is that of the group with index
    ``group``, whose members it counts by their positions.
    """

    trace: Trace
    group: int = 0

    @property
    def how(self) -> str:
        """``devices``: every member of every group."""
        return ON_DEVICES


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
        steps.append(first if first is None else Step(instruction.reduction, first, tuple(others)))
    return semantics.run(demand, parts.size, steps)
