"""The best program together with its number of chunks, over a complete list of programs.

The time of a pipelined program is no sum over its steps (:mod:`p2smt.cost.step_time`), so no
encoding has it as its objective.  Instead the encoding lists every program, each is checked,
and the time of each is computed for each number of chunks.  The list depends on the depth of
the hierarchy and on the restrictions only (docs/small-model.md), so one serves many scenes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from p2smt.collectives.demand import demand_of
from p2smt.cost.scene import Scene, step_payloads
from p2smt.cost.step_time import chunk_counts, pipelined_s
from p2smt.errors import EncodingBug
from p2smt.parallelism.placement import FloatArray, IntArray
from p2smt.problems.placement import Indices, ProgramProblem
from p2smt.programs.program import Hierarchy
from p2smt.result import ROUNDING, SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.program_synthesis import Found, Priced, Task, checked_listing, price
from p2smt.search.warm_start import RowCounts, Rows
from p2smt.solvers.ask import Solver

LISTED_DEPTH = 4
"""Most levels whose programs are listed: more of them have too many."""
MAX_LISTED_PROGRAMS = 100_000
"""Longer lists are cut off: the best program of them is then feasible, not optimal."""


@dataclass(slots=True)
class Catalogs:
    """Lists of programs by what they depend on: request kind, depth, length, restrictions."""

    _kept: dict[tuple[Solver, ProgramProblem], tuple[Status, tuple[Indices, ...]]] = field(
        default_factory=dict
    )

    def of(self, task: Task, limits: SearchLimits) -> tuple[Status, tuple[Indices, ...]]:
        """Every program of a task by (length, indices), and whether that is COMPLETE."""
        key = task.solver, _generic(task)
        _, generic = key
        if key not in self._kept:
            hierarchy = Hierarchy.plain(generic.factors)
            limits = replace(limits, max_answers=MAX_LISTED_PROGRAMS)
            result, _ = checked_listing(task, generic, hierarchy, limits)
            found = result.status, result.value or ()
            if result.status is not Status.COMPLETE and len(found[1]) < MAX_LISTED_PROGRAMS:
                return found  # the time ran out: with more of it the list may be longer
            self._kept[key] = found
        return self._kept[key]

    def has(self, task: Task) -> bool:
        """Whether the list of a task is at hand."""
        return (task.solver, _generic(task)) in self._kept


def _generic(task: Task) -> ProgramProblem:
    problem = task.problem()
    return replace(problem, factors=problem.model_factors)


@dataclass(frozen=True, slots=True)
class SoughtProgram:
    """The best program of a task is sought, on a scene, for a payload of so many bytes.

    ``pipeline`` is the number of chunks of programs of several steps, None the best one of
    :data:`p2smt.cost.step_time.CHUNK_COUNTS`.  ``listings`` are those at hand, and grow.
    """

    task: Task
    scene: Scene
    payload_bytes: int
    pipeline: int | None
    listings: Catalogs


@dataclass(frozen=True, slots=True)
class ChunkedProgram:
    """A program with its payloads in rows, its number of chunks, and its time."""

    program: Indices
    rows: Rows
    chunks: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Field:
    """Programs of a scene as arrays: ``steps[p][s]`` is a row of ``keys``, -1 no step.

    A key is a pair (instruction number, payload in rows).
    """

    programs: tuple[tuple[Indices, Rows], ...]
    keys: tuple[tuple[int, int], ...]
    steps: IntArray

    @staticmethod
    def of(programs: Sequence[tuple[Indices, Rows]], length: int) -> _Field:
        """The arrays of programs with their payloads, up to a length."""
        numbers: dict[tuple[int, int], int] = {}
        steps = np.full((len(programs), length), -1, dtype=np.int64)
        for p, (program, rows) in enumerate(programs):
            for s, key in enumerate(zip(program, rows, strict=True)):
                steps[p, s] = numbers.setdefault(key, len(numbers))
        return _Field(tuple(programs), tuple(numbers), steps)

    def seconds(self, sought: SoughtProgram, chunks: int) -> FloatArray:
        """Time of each program in so many chunks."""
        task, scene = sought.task, sought.scene
        items, rows = task.items_on(scene), [rows for _, rows in self.keys]
        payloads = step_payloads(rows, task.hierarchy.size, sought.payload_bytes, chunks)
        times = [
            scene.step_time(*items[number], payload)
            for (number, _), payload in zip(self.keys, payloads, strict=True)
        ]
        silent = (0.0,) * len(scene.topology.levels)
        step_s = np.array([*(t.seconds for t in times), 0.0])  # -1 takes the last: no step
        wire_s = np.array([*(t.level_wire_s for t in times), silent])
        columns = self.steps.T
        return pipelined_s(step_s[columns], np.moveaxis(wire_s[columns], 2, 1), chunks)


def choices(sought: SoughtProgram, programs: Sequence[Indices]) -> Iterator[ChunkedProgram]:
    """The best choices of every number of chunks: those tied with the least time."""
    task = sought.task
    rows = RowCounts(
        demand_of(task.kind), task.hierarchy.factors, task.problem().instructions.items
    )
    payloads = [(program, rows.payloads(program)) for program in programs]
    whole = [(program, counts) for program, counts in payloads if counts is not None]
    for several in (False, True):
        chosen = [(p, counts) for p, counts in whole if (len(p) > 1) is several]
        table = _Field.of(chosen, task.max_length)
        for chunks in chunk_counts(sought.pipeline, 2 if several else 1) if chosen else ():
            seconds = table.seconds(sought, chunks)
            for p in np.flatnonzero(seconds <= seconds.min() * (1 + ROUNDING)):
                yield ChunkedProgram(*table.programs[p], chunks, float(seconds[p]))


def first_choice(found: Sequence[ChunkedProgram]) -> ChunkedProgram:
    """The shortest of the tied programs, then fewest chunks, then the order of instructions."""
    limit = min(choice.seconds for choice in found) * (1 + ROUNDING)
    tied = [choice for choice in found if choice.seconds <= limit]
    return min(tied, key=lambda choice: (len(choice.program), choice.chunks, choice.program))


def best_pipelined(sought: SoughtProgram, limits: SearchLimits) -> Found:
    """The program and number of chunks of least time, checked and re-costed.

    OPTIMAL only over a complete list.
    """
    watch, task = StopWatch.start(limits), sought.task
    status, programs = sought.listings.of(task, watch.left())
    complete = status is Status.COMPLETE
    found = list(choices(sought, programs))
    stats = SolveStats(task.solver, watch.elapsed_s(), counters=(("listed", len(programs)),))
    if not found:
        return Found(Status.INFEASIBLE if complete else Status.UNKNOWN, None, 0.0, stats)
    choice = first_choice(found)
    program = task.program(task.problem(), choice.program)
    best = price(task, program, sought.scene, sought.payload_bytes, choice.chunks)
    _same_choice(task, choice, best)
    if not complete:
        return Found(Status.FEASIBLE, best, 0.0, stats)
    bound = min(one.seconds for one in found)
    return Found(Status.OPTIMAL, best, min(bound, best.seconds), stats)


def _same_choice(task: Task, choice: ChunkedProgram, best: Priced) -> None:
    """Raise EncodingBug unless the checker finds the payloads and the time of the choice."""
    rows = best.checked.trace.payload_rows
    if rows != choice.rows or abs(best.seconds - choice.seconds) > 1e-9 * best.seconds:
        text = f"chosen for {choice.seconds} s with payloads {choice.rows}, checked: {rows}"
        raise EncodingBug(text, str(task), str(best.program))
