"""What given programs take on a given placement.  Nothing is searched, everything is checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from p2smt.collectives.demand import demand_of, plain_kind
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.requested_algorithms import named_notes, running
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import best_chunks, chunk_counts
from p2smt.cost.symbolic.form import SymbolicCost
from p2smt.cost.symbolic.steps import symbolic_fixed, symbolic_program
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import (
    Alternative,
    RequestAnswer,
    fixed_answer,
    matrix_alternative,
    named_steps,
    program_answer,
)
from p2smt.programs.check import Checked, check_program
from p2smt.programs.program import Grouping, Hierarchy, Program, parse_program

SINGLE = "single"
"""Stands for the single collective where the text of a program may stand."""


def given_program(kind: RequestKind, hierarchy: Hierarchy, text: str | None) -> Program | None:
    """The program of a text; the single collective over the whole group for None or ``single``.

    None is the single all-to-all, which is one fixed step.
    """
    if hierarchy.depth == 0:
        raise InputError("a reduction over one device", "needs no program", "drop the program")
    whole = Grouping(0, hierarchy.depth)
    if text is None or text.strip() == SINGLE:
        single = DIRECT.get(kind)
        return single and Program((hierarchy.instruction(single, whole),))
    program = hierarchy.canonical(parse_program(text, kind))
    exchange = Program((hierarchy.instruction(RequestKind.ALL_TO_ALL, whole),))
    return None if program == exchange else program


@dataclass(frozen=True, slots=True)
class PlacedProgram:
    """A request on its scene with a program that the semantics found valid, for any payload.

    ``program`` and ``checked`` are None for what is one fixed step, or nothing to do.
    ``pipeline`` is the number of chunks of a program of several steps, None the best one.
    """

    request: Request
    scene: Scene
    program: Program | None = None
    checked: Checked | None = None
    pipeline: int | None = 1

    def answer(self, payload_bytes: int) -> RequestAnswer:
        """Time step by step with this payload."""
        request = replace(self.request, payload_bytes=payload_bytes)
        if self.program is None or self.checked is None:
            return fixed_answer(request, self.scene)
        program, rows = self.program, self.checked.trace.payload_rows
        timed = best_chunks(
            chunk_counts(self.pipeline, len(program)),
            lambda chunks: self.scene.program_times(program, rows, payload_bytes, chunks),
        )
        return program_answer(request, self.scene, program, self.checked, timed)

    def symbolic(self) -> SymbolicCost:
        """Its cost before any number is known, as one chunk.

        Raises:
            InputError: what runs it has no linear form.
        """
        if self.program is None or self.checked is None:
            return symbolic_fixed(self.scene, self.request.kind)
        return symbolic_program(self.scene, self.program, self.checked.trace.payload_rows)


def given_programs(
    problem: Problem, placement: Placement, texts: Sequence[str | None] = ()
) -> tuple[Program | None, ...]:
    """The program of each request of a problem on a placement, parsed and not checked.

    None where there is one fixed step, or nothing to do.

    texts: for the requests that have programs, in their order; None for the single collective.
        All-to-alls are single unless there are texts for them, too.

    Raises:
        InputError: sizes that do not fit, too few or too many texts, or one that does not parse.
    """
    placement.check(problem.topology.sizes, problem.axis_sizes)
    found: list[Program | None] = []
    for request, text in zip(problem.requests, _of_each(problem, texts), strict=True):
        scene = Scene.of(problem.topology, placement, problem.axis_indices(request))
        fixed = not request.kind.has_programs and text is None
        alone = fixed or (scene.hierarchy.size == 1 and text is None)
        found.append(
            None if alone else given_program(plain_kind(request.kind), scene.hierarchy, text)
        )
    return tuple(found)


def placed_programs(
    problem: Problem, placement: Placement, texts: Sequence[str | None] = ()
) -> tuple[PlacedProgram, ...]:
    """As :func:`given_programs`, each checked on its scene.

    Raises:
        InputError: also where a program breaks a rule of the semantics, naming step and rule, or
            where nothing can run by the algorithms named.
    """
    problem = replace(problem, topology=running(problem.topology, problem.algorithms))
    programs = given_programs(problem, placement, texts)
    return tuple(
        _placed(
            request,
            Scene.of(problem.topology, placement, problem.axis_indices(request)),
            program,
            problem.pipeline,
        )
        for request, program in zip(problem.requests, programs, strict=True)
    )


def _placed(
    request: Request, scene: Scene, program: Program | None, pipeline: int | None
) -> PlacedProgram:
    if program is None:
        return PlacedProgram(request, scene)
    checked = check_program(demand_of(request.kind), scene.hierarchy, program)
    if (broken := checked.trace.violation) is not None:
        raise InputError(
            f"program '{str(program)[:200]}'",
            f"is not valid: {broken.message} ({broken.kind.value})",
        )
    chunks = 1 if request.kind.has_exchanges else pipeline
    return PlacedProgram(request, scene, program, checked, chunks)


def _of_each(problem: Problem, programs: Sequence[str | None]) -> list[str | None]:
    """The text for each request; None: there is none."""
    requests = problem.requests
    takers = [n for n, request in enumerate(requests) if request.kind.has_programs]
    also = [n for n, one in enumerate(requests) if n in takers or one.kind.has_exchanges]
    if not also and programs:
        given = f"program '{programs[0]}'"[:200]
        raise InputError(given, "a send is one fixed step", "drop the program")
    if len(programs) == len(also):
        takers = also
    elif programs and len(programs) != len(takers):
        raise InputError(
            f"{len(programs)} program{'s' * (len(programs) != 1)}",
            f"the requests that have programs are {', '.join(str(requests[n]) for n in also)}",
            f"give one for each, in this order; '{SINGLE}' for the single collective",
        )
    texts = dict(zip(takers, programs or [None] * len(takers), strict=True))
    return [texts.get(n) for n in range(len(requests))]


def candidates(problem: Problem, texts: Sequence[str]) -> list[Sequence[str]]:
    """What the texts of programs are for: of one request each is a candidate of its own, of several
    each is for one of them."""
    if len(problem.requests) > 1 or not texts:
        return [texts]
    return [[text] for text in texts]


def cost_of(
    problem: Problem, placement: Placement, programs: Sequence[str | None] = ()
) -> Alternative:
    """What the requests of a problem take on a placement, with these programs; nothing is searched.

    Args:
        problem: cluster, axes and requests; ``pipeline`` and ``algorithms`` count too, while rules
            and limits of programs do not: what is given is priced.
        placement: the matrix.
        programs: texts for the requests that have programs (all but sends; all-to-alls may be left
            out together), in their order; None, or no list at all, for single collectives.

    Raises:
        InputError: sizes that do not fit, or programs that are too few, too many or not valid.
    """
    placed = placed_programs(problem, placement, programs)
    answers = tuple(one.answer(one.request.payload_bytes) for one in placed)
    return matrix_alternative(problem, placement.matrix, answers)


def answer_notes(problem: Problem, candidates: Sequence[Alternative]) -> tuple[str, ...]:
    """Notes on the steps of what was priced that do not run by the algorithm named for them.

    Raises:
        InputError: steps of collectives there are, and none runs by an algorithm of the problem.
    """
    answers = (answer for found in candidates for answer in found.requests)
    steps = [step for answer in answers for step in named_steps(answer)]
    return named_notes(problem.topology, problem.algorithms, steps)


def cost_by_size(
    problem: Problem,
    placement: Placement,
    sizes: Sequence[int],
    programs: Sequence[str | None] = (),
) -> tuple[Alternative, ...]:
    """As :func:`cost_of` for each of these payloads in bytes, which every request takes instead of
    its own."""
    placed = placed_programs(problem, placement, programs)
    return tuple(
        matrix_alternative(problem, placement.matrix, tuple(one.answer(size) for one in placed))
        for size in sizes
    )


# Times over sizes: the requests of a problem, or several programs for one, on a placement.


@dataclass(frozen=True, slots=True)
class Curve:
    """One way to answer a request, over the sizes of a sweep.

    ``program`` is None for the single collective and for one fixed step.  ``seconds`` are times of
    one execution; ``answers`` are empty for a single collective that was not asked for.
    """

    program: Program | None
    seconds: tuple[float, ...]
    answers: tuple[RequestAnswer, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Candidates over sizes: ``by_size`` has a row per size, an entry per candidate in each."""

    problem: Problem
    placement: Placement
    sizes: tuple[int, ...]
    by_size: tuple[tuple[Alternative, ...], ...]

    def curves(self, request: int) -> tuple[Curve, ...]:
        """The ways to answer a request (its index), each once, the single collective first."""
        found: dict[Program | None, Curve] = {None: self._single(request)}
        for column in zip(*self.by_size, strict=True):
            answers = tuple(at.requests[request] for at in column)
            program = None if _is_single(answers[0]) else answers[0].program
            seconds = tuple(answer.seconds for answer in answers)
            found[program] = Curve(program, seconds, answers)
        return tuple(found.values())

    def _single(self, request: int) -> Curve:
        singles = (candidates[0].requests[request].single_s for candidates in self.by_size)
        return Curve(None, tuple(singles), ())

    def fastest(self, request: int) -> tuple[tuple[int, int, int], ...]:
        """Which curve is the fastest (the first of tied ones), as runs of sizes: (index of the
        curve, first size, last size)."""
        rows = zip(*(curve.seconds for curve in self.curves(request)), strict=True)
        best = [row.index(min(row)) for row in rows]
        runs = [
            [size for _, size in run]
            for _, run in groupby(zip(best, self.sizes, strict=True), key=itemgetter(0))
        ]
        return tuple((best[self.sizes.index(run[0])], run[0], run[-1]) for run in runs)


def _is_single(answer: RequestAnswer) -> bool:
    """Whether it is the single collective (no other program has one step), or has no program."""
    return answer.program is None or len(answer.program) == 1


def sweep(
    problem: Problem,
    placement: Placement,
    sizes: Sequence[int],
    programs: Sequence[str] = (),
) -> Sweep:
    """What the requests take with each of these payloads in bytes, instead of their own.

    programs: of one request any number, which are compared; of several one for each that has
        programs, as for :func:`~p2smt.plans.given_program.cost_of`.
    """
    columns = [
        cost_by_size(problem, placement, sizes, texts) for texts in candidates(problem, programs)
    ]
    return Sweep(problem, placement, tuple(sizes), tuple(zip(*columns, strict=True)))
