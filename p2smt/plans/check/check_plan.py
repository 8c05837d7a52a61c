"""Checks a plan file: shape, groups, the meaning of its programs, its costs, its restrictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from p2smt.cluster.allocation import allocated, unstated_levels
from p2smt.collectives.demand import demand_of
from p2smt.cost.link_bounds import link_bound_s
from p2smt.cost.regime import regime
from p2smt.cost.scene import Scene, step_payloads
from p2smt.cost.step_time import StepTime, program_s
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.rank_list import RankList, RankMap
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.check.check_restrictions import broken_by_program, broken_rules
from p2smt.plans.file_model import AnyPlan, OldPlanModel, PlanModel, RequestModel, StepModel
from p2smt.plans.problem import allocation_problem, located, plan_problem
from p2smt.plans.rank_scene import RankScene, check_on_ranks, rank_step_groups
from p2smt.plans.sides import PlanSide, plan_sides
from p2smt.plans.solution import (
    RequestAnswer,
    fixed_peak_bytes,
    objective,
    program_answer,
    rank_answer,
    rank_hosts,
)
from p2smt.programs import semantics
from p2smt.programs.check import check_program
from p2smt.programs.parts import ON_DEVICES, CheckedParts
from p2smt.programs.program import (
    Program,
    ProofBasis,
    basis_names,
    lower,
    parse_instruction,
    parse_program,
    proof_bases,
)
from p2smt.programs.semantics import Step, Trace, Violation, ViolationKind
from p2smt.result import PROVED_WITHIN, SAME, Status

OPTIMALITY, LINKS_OF_PLAN = "optimality", "link-level bound of the plan"
"""What only a search can check: both are the least over all placements."""
LINKS_OF_REQUESTS = "link-level bounds of requests"
_NUMBERS = ("ranks", "times", "memory", LINKS_OF_REQUESTS)
CHECKED = ("groups", "meaning", *_NUMBERS, "restrictions")
"""What is held against the plan, in the order in which a person would."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a plan misstates, or a restriction that it breaks; ``request`` counts from 0."""

    kind: str
    message: str
    request: int | None = None


@dataclass(frozen=True, slots=True)
class PlanReport:
    """Verdict on a plan: what it breaks or misstates, and the times recomputed.

    ``violations`` are broken rules of programs by request; ``notes`` the rest, each of kind
    ``cost``, ``ranks``, ``bound`` or ``restriction``.  ``checked_on`` says of each request what
    its program was run on, ``not_checked`` what nothing here has looked at.  ``seconds`` per
    request and ``objective_s`` come from the cost model (0 where a request is not valid), and so do
    ``regimes``, what decides the time of each request (:mod:`p2smt.cost.regime`).  ``unstated``
    are levels whose bandwidth nobody stated: times on them mean something only where they do not
    block.  ``besides``: what else was checked, by a package that knows more of it.
    """

    violations: tuple[tuple[int, Violation], ...]
    notes: tuple[Note, ...]
    checked_on: tuple[str, ...]
    seconds: tuple[float, ...]
    objective_s: float
    regimes: tuple[str | None, ...]
    not_checked: tuple[str, ...]
    unstated: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether no rule is broken and nothing is misstated."""
        return not self.violations and not self.notes

    @property
    def checked(self) -> tuple[str, ...]:
        """What was checked."""
        return (*(what for what in CHECKED if what not in self.not_checked), *self.besides)


def check_plan(plan: AnyPlan, source: str) -> PlanReport:
    """Check every request of a plan device by device, recompute its numbers, hold it to its rules.

    Groups larger than the semantics can hold are checked on the quotient; the report says so.
    No search is made, so nothing is said of optimality (:mod:`p2smt.search.prove`).

    Raises:
        InputError: sizes that do not fit, unknown axes or levels, or programs that do not parse.
    """
    sides = [_checked(side, source) for side in plan_sides(plan, source)]
    placed = sorted((one for side in sides for one in side.requests), key=lambda one: one.number)
    found = [one.found for one in placed]
    problem, where = sides[0].problem, sides[0].where
    total_s = with_programs_s = _objective(sides, _seconds)
    on_hosts = isinstance(where, RankList) and problem.topology.hosts is not None
    if on_hosts:
        total_s = _objective(sides, _single_s)
    several = on_hosts and any(request.program is not None for request in plan.requests)
    violations = [(n, one.broken) for n, one in enumerate(found) if one.broken is not None]
    notes = [note for one in found for note in one.notes]
    if plan.ranks != where.rank_tensor().ravel().tolist():
        notes.append(Note("ranks", "ranks are not those of the matrix"))
    if isinstance(plan, PlanModel) and plan.hosts not in (None, _hosts(problem, plan)):
        notes.append(Note("ranks", "hosts are not those of the devices of the ranks"))
    notes += _of_allocation(plan, problem, source)
    if not violations:
        programs_s = with_programs_s if several else None
        notes += [Note("cost", text) for text in plan_notes(plan, total_s, programs_s)]
        physical_s = _objective(sides, _physical_s)
        notes += [Note("bound", text) for text in plan_bounds(plan, physical_s, on_hosts)]
    if isinstance(plan, PlanModel):
        notes += [Note("bound", text) for text in _basis(plan, sides)]
        broken = dict.fromkeys(one for side in sides for one in _broken(side))
        notes += [Note("restriction", text, n) for n, text in broken]
    return PlanReport(
        tuple(violations),
        tuple(notes),
        tuple(one.how for one in found),
        tuple(map(_seconds, found)),
        total_s,
        tuple(_regime(problem, *one) for one in zip(plan.requests, found, strict=True)),
        tuple(_not_checked(plan, found)),
        unstated_levels(problem.topology),
    )


class _PlacedRequest(NamedTuple):
    """A request by its number in the plan, and what was found of it."""

    number: int
    found: _Found


class _CheckedSide(NamedTuple):
    """The plan of one matrix, the problem it answers, and what was found of its requests."""

    plan: AnyPlan
    problem: Problem
    where: RankMap
    requests: tuple[_PlacedRequest, ...]


def _checked(side: PlanSide, source: str) -> _CheckedSide:
    problem, where = plan_problem(side.plan, source)
    with located(source):
        found = tuple(
            _PlacedRequest(n, _check(side.plan, problem, at, where, n))
            for at, n in enumerate(side.numbers)
        )
    return _CheckedSide(side.plan, problem, where, found)


def _objective(sides: Sequence[_CheckedSide], value: Callable[[_Found], float]) -> float:
    """The objective of times of requests; two sides add."""
    return sum(
        objective(side.problem, tuple(value(one.found) for one in side.requests)) for side in sides
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found of one request: the rule that it breaks, or its numbers and notes on them."""

    how: str
    broken: Violation | None = None
    expected: Expected | None = None
    notes: tuple[Note, ...] = ()


def _basis(plan: PlanModel, sides: Sequence[_CheckedSide]) -> Iterator[str]:
    """What is wrong with why no program is said to be missed."""
    bases: dict[int, ProofBasis] = {}
    for side in sides:
        bases |= proof_bases(side.problem, plan.limits.solver)
    expected = basis_names(bases)
    said = [one.value for one in plan.basis or ()]
    if said and said != expected:
        yield f"basis says {', '.join(said)}; it is {', '.join(expected) or 'none'}"


def _seconds(found: _Found) -> float:
    return 0.0 if found.expected is None else found.expected.seconds


def _physical_s(found: _Found) -> float:
    return 0.0 if found.expected is None else found.expected.physical_bound_s


def _single_s(found: _Found) -> float:
    return 0.0 if found.expected is None else found.expected.single_s


def _hosts(problem: Problem, plan: PlanModel) -> list[str] | None:
    hosts = rank_hosts(problem.topology, plan.ranks)
    return None if hosts is None else list(hosts)


def _of_allocation(plan: AnyPlan, problem: Problem, source: str) -> Iterator[Note]:
    """Whether the plan's topology is what its hosts leave of that of all the hosts."""
    hosts, wider = problem.topology.hosts, allocation_problem(plan, problem, source)
    if hosts is None or wider is problem:
        return
    if allocated(wider.topology, hosts.names) != problem.topology:
        yield Note("ranks", "the topology is not that of its hosts in the allocation")


def _regime(problem: Problem, model: RequestModel, found: _Found) -> str | None:
    """What decides the time of a request; None where nothing does, or it is not valid."""
    if found.expected is None:
        return None
    return regime(problem.topology, found.expected.steps, model.chunks)


def _check(plan: AnyPlan, problem: Problem, at: int, where: RankMap, n: int) -> _Found:
    """What is found of the request at a place of a plan, which is the n-th of the whole one."""
    model = plan.requests[at]
    expected, how = _expected(problem, at, model, where)
    if isinstance(expected, Violation):
        return _Found(how, expected)
    names = problem.topology.names
    notes = [
        *(Note("cost", text, n) for text in request_notes(n, model, expected, names)),
        *(Note("bound", text, n) for text in request_bounds(n, model, expected, plan.links_alone)),
    ]
    return _Found(how, None, expected, tuple(notes))


def _broken(side: _CheckedSide) -> Iterator[tuple[int | None, str]]:
    """Restrictions that the placement breaks, and those that the valid requests do."""
    for text in broken_rules(side.problem, side.where):
        yield None, text
    pairs = zip(side.plan.requests, side.requests, strict=True)
    for at, (model, one) in enumerate(pairs):
        if one.found.broken is None:
            for text in broken_by_program(side.problem, at, model, side.where):
                yield one.number, text


def _expected(
    problem: Problem, n: int, model: RequestModel, where: RankMap
) -> tuple[Expected | Violation, str]:
    """The numbers of a request, or the rule that it breaks; and what it was run on."""
    request = problem.requests[n]
    if isinstance(where, RankList):
        return _on_ranks(problem, request, model, where)
    axes = problem.axis_indices(request)
    scene = Scene.of(problem.topology, where, axes)
    trace, how = check_request(model, scene, where.groups(axes))
    return trace.violation or on_scene(model, scene, trace), how


def _on_ranks(
    problem: Problem, request: Request, model: RequestModel, where: RankList
) -> tuple[Expected | Violation, str]:
    """As :func:`_expected`, of a rank list; on named hosts a request may have a program."""
    groups = rank_step_groups(problem, request, where)
    taking = request.kind.has_programs and groups.shape[1] > 1
    if model.program is None or not taking or problem.topology.hosts is None:
        broken = check_single_on_ranks(model, groups)
        answer = rank_answer(problem, request, where)
        return broken or on_ranks(answer), answer.checked
    scene, program = RankScene.of(problem, request, where), parse_program(model.program)
    trace = check_program_on_ranks(model, program, scene)
    if trace.violation is not None:
        return trace.violation, ON_DEVICES
    timed = scene.timed_in(program, trace.payload_rows, model.chunks)
    answer = program_answer(request, scene, program, CheckedParts(trace), timed)
    return on_ranks(answer), answer.checked


def _not_checked(plan: AnyPlan, found: Sequence[_Found]) -> Iterator[str]:
    yield OPTIMALITY
    if plan.matrix is not None:
        yield LINKS_OF_PLAN
    if not plan.links_alone:
        yield LINKS_OF_REQUESTS
    if isinstance(plan, OldPlanModel):
        yield "restrictions"
    for n, one in enumerate(found, start=1):
        if one.how.startswith("quotient"):
            yield f"request {n} device by device"


# Compares the numbers in a plan file with those that the cost model and the checker find.
# What only a search proves is not compared: the solver's bounds, beyond that none lies above its
# time, that "optimal" means equal, and that a bound is told only where one can be known.  The
# link-level bound of a plan is the least over all placements, so that of its own lies above it.
# Plans of version 1 counted latencies in theirs, where no library ran: these are not compared.


_ROUNDING = 1e-13  # payloads and loads may be fractions of a byte: only float rounding is allowed


def request_notes(
    n: int, model: RequestModel, expected: Expected, levels: Sequence[str]
) -> Iterator[str]:
    """What a valid request misstates; ``n`` counts requests from 0."""
    where, shards = f"request {n + 1}", expected.shards
    yield from differ(f"{where} seconds", model.seconds, expected.seconds)
    yield from differ(f"{where} single_collective_s", model.single_collective_s, expected.single_s)
    if model.peak_bytes != expected.peak_bytes:
        yield f"{where} peak_bytes says {model.peak_bytes}, it needs {expected.peak_bytes}"
    if model.chunks > 1 and len(expected.steps) <= 1:
        yield f"{where} chunks says {model.chunks}, but only several steps are pipelined"
    if model.shards != (None if shards is None else list(shards)):
        yield f"{where} shards are not those that the members end with"
    found = zip(model.steps, expected.steps, expected.payloads, strict=True)
    for number, (step, time, payload) in enumerate(found, start=1):
        yield from _step_notes(f"{where} step {number}", step, time, payload, levels)


def _step_notes(
    where: str, step: StepModel, time: StepTime, payload: float, levels: Sequence[str]
) -> Iterator[str]:
    yield from differ(f"{where} seconds", step.seconds, time.seconds)
    yield from differ(f"{where} payload_bytes", step.payload_bytes, payload, _ROUNDING)
    yield from differ(f"{where} load_bytes", step.load_bytes, time.load_bytes, _ROUNDING)
    bottleneck = None if time.level is None else levels[time.level]
    said = (step.algorithm, step.protocol, step.bottleneck)
    if said != (time.algorithm, time.protocol, bottleneck):
        yield f"{where} algorithm, protocol or bottleneck is not that of the cost model"


def plan_notes(plan: AnyPlan, objective_s: float, programs_s: float | None) -> Iterator[str]:
    """What a plan misstates as a whole.

    ``programs_s``: on named hosts the objective with programs (None: no request has one), where
    ``objective_s`` is that of one collective per request.
    """
    yield from differ("objective_s", plan.objective_s, objective_s)
    said = plan.with_programs_s if isinstance(plan, PlanModel) else None
    if said is not None and programs_s is None:
        yield f"with_programs_s says {said}, but no request has a program beside its collective"
    elif said is None and programs_s is not None and plan.objective_s is not None:
        yield f"with_programs_s is missing: with the programs of the requests it is {programs_s}"
    elif said is not None and programs_s is not None:
        yield from differ("with_programs_s", said, programs_s)
    peak_bytes = max(request.peak_bytes for request in plan.requests)
    if plan.peak_bytes != peak_bytes:
        yield f"peak_bytes says {plan.peak_bytes}, the largest of its requests {peak_bytes}"


def request_bounds(
    n: int, model: RequestModel, expected: Expected, links_alone: bool
) -> Iterator[str]:
    """What is wrong with the bounds and the status of a valid request.

    ``links_alone``: its link-level bound counts nothing else, as in files of today.
    """
    where, physical_s = f"request {n + 1}", expected.physical_bound_s
    if links_alone:
        yield from differ(f"{where} physical_bound_s", model.physical_bound_s, physical_s)
    if model.bound_s is None or model.seconds is None:
        return
    yield from bound_notes(where, model.bound_s, model.seconds, model.status)
    proved_s = expected.proved_s
    if not expected.searched and model.bound_s > proved_s * (1 + SAME):
        yield f"{where}: bound_s lies above the only one that is known, {proved_s}"


def plan_bounds(plan: AnyPlan, physical_s: float, on_hosts: bool) -> Iterator[str]:
    """What is wrong with the bounds and the status of a plan.

    ``physical_s`` is the objective of what the links allow on the plan's own placement.
    ``on_hosts``: a rank list on named hosts, whose orders were searched.
    """
    if plan.bound_s is None or plan.objective_s is None or plan.physical_bound_s is None:
        return
    yield from bound_notes("the plan", plan.bound_s, plan.objective_s, plan.status)
    if on_hosts:
        if plan.physical_bound_s > plan.objective_s * (1 + SAME):
            yield "the plan: physical_bound_s lies above the time that it bounds"
        return
    settled = all(request.status is Status.OPTIMAL for request in plan.requests)
    if plan.status is Status.OPTIMAL and not settled:
        yield "the plan is called optimal, but not each of its requests is"
    if plan.status is Status.OPTIMAL and plan.matrix is None:
        yield "the plan is called optimal, but rank lists were not searched"
    if plan.matrix is None and max(plan.bound_s, plan.physical_bound_s) > 0:
        yield "bound_s and physical_bound_s of a rank list are 0: nothing bounds rank orders"
    if (
        plan.matrix is not None
        and plan.links_alone
        and plan.physical_bound_s > physical_s * (1 + SAME)
    ):
        yield f"physical_bound_s lies above {physical_s}, which the links allow this placement"


def differ(what: str, said: float | None, found: float, tolerance: float = SAME) -> Iterator[str]:
    """That a number is not the cost model's, if it is not; None: none is told."""
    if said is not None and abs(said - found) > tolerance * max(abs(found), 1e-30):
        yield f"{what} says {said}, the cost model {found}"


def bound_notes(where: str, bound: float, value: float, status: Status) -> Iterator[str]:
    """What is wrong with a bound on a value, and with what the status says of both."""
    if bound > value * (1 + SAME):
        yield f"{where}: bound_s lies above the time that it bounds"
    if status is Status.OPTIMAL and bound < value * (1 - PROVED_WITHIN):
        yield f"{where}: is called optimal, but bound_s lies below its time"
    if status not in (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN):
        yield f"{where}: the status {status.value} is none of a plan"


# Checks the steps of a plan's request: their groups, and what the program means on them.


def check_request(model: RequestModel, scene: Scene, groups: IntArray) -> tuple[Trace, str]:
    """The trace of a request's steps as the file lists them, and what it was run on.

    ``groups`` are the reduction groups of the request's axes.  A rank in a violation is a
    device of the first reduction group.

    Raises:
        InputError: a program or instruction that is no text of the language, or names a level
            that the topology lacks.
    """
    if model.program is not None and model.kind.has_exchanges and scene.hierarchy.size > 1:
        program = parse_program(model.program, model.kind)
        trace, how = _check_exchanges(model, program, scene, groups)
        return _in_devices(trace, groups), how
    if model.program is None or not model.kind.has_programs:
        how = "one fixed step" if scene.hierarchy.size > 1 else "nothing to do"
        return Trace(_fixed_violation(model, scene, groups)), how
    trace, how = _check_program(model, parse_program(model.program), scene, groups)
    return _in_devices(trace, groups), how


def check_single_on_ranks(model: RequestModel, groups: IntArray) -> Violation | None:
    """A request on a rank list that is the one collective on the groups of its axes."""
    kind, alone = model.kind.value, groups.shape[1] == 1
    if model.program is not None:
        return _violation(0, f"a request {kind} on a rank list is one step and has no program")
    if len(model.steps) != (0 if alone else 1):
        wanted = "no step" if alone else "one step"
        return _violation(0, f"a request {kind} over {groups.shape[1]} devices needs {wanted}")
    if alone:
        return None
    step = model.steps[0]
    if step.instruction != kind or sorted(step.groups) != sorted(groups.tolist()):
        return _violation(1, f"step 1: is not {kind} on the groups of the axes")
    return None


def check_program_on_ranks(model: RequestModel, program: Program, scene: RankScene) -> Trace:
    """The trace of a request's program on a rank list, on every group.

    Violations name devices.

    Raises:
        InputError: a program or instruction that is no text of the language, or names a level
            that the topology lacks.
        TooLarge: a group has more members than states are checked for.
    """
    listed = tuple(parse_instruction(step.instruction) for step in model.steps)
    if listed != program.instructions:
        return _broken_trace(0, "the instructions of the steps are not those of the program")
    checked = check_on_ranks(scene, program)
    if (broken := checked.trace.violation) is not None:
        group = scene.groups[checked.group].tolist()
        rank = None if broken.rank is None else group[broken.rank]
        members = tuple(group[position] for position in broken.group)
        text = broken.message + _counted_in(broken, group)
        named = replace(broken, group=members, rank=rank, message=text)
        return replace(checked.trace, violation=named)
    for number, (step, one) in enumerate(zip(model.steps, listed, strict=True), start=1):
        wanted = sorted(map(list, scene.step_groups(one)))
        if sorted(step.groups) != wanted:
            return _broken_trace(
                number, f"step {number}: the groups are not those of its instruction"
            )
    return checked.trace


def _check_program(
    model: RequestModel, program: Program, scene: Scene, groups: IntArray
) -> tuple[Trace, str]:
    hierarchy, steps = scene.hierarchy, []
    listed = tuple(parse_instruction(step.instruction) for step in model.steps)
    if listed != program.instructions:
        text = "the instructions of the steps are not those of the program"
        return _broken_trace(0, text), "devices"
    for number, step in enumerate(model.steps, start=1):
        local = _local_groups(step.groups, groups)
        if local is None:
            text = f"step {number}: the groups do not repeat over the axes' reduction groups"
            return _broken_trace(number, text), "devices"
        steps.append(Step(listed[number - 1].reduction, local))
    if hierarchy.size > semantics.MAX_DEVICES:
        quotient = check_program(demand_of(model.kind), hierarchy, program)
        trace, how = quotient.trace, quotient.how
    else:
        trace, how = semantics.run(demand_of(model.kind), hierarchy.size, steps), "devices"
    return (
        trace if trace.violation else _unexpected_groups(model, program, scene, groups) or trace
    ), how


def _check_exchanges(
    model: RequestModel, program: Program, scene: Scene, groups: IntArray
) -> tuple[Trace, str]:
    """The trace of an all-to-all's program, whose steps have the groups of its instructions."""
    listed = tuple(parse_instruction(step.instruction, model.kind) for step in model.steps)
    if listed != program.instructions:
        text = "the instructions of the steps are not those of the program"
        return _broken_trace(0, text), "devices"
    checked = check_program(demand_of(model.kind), scene.hierarchy, program)
    broken = None if checked.trace.violation else _unexpected_groups(model, program, scene, groups)
    return broken or checked.trace, checked.how


def _unexpected_groups(
    model: RequestModel, program: Program, scene: Scene, groups: IntArray
) -> Trace | None:
    """Broken if some step's groups, in any order, are not those that its instruction forms."""
    hierarchy = scene.hierarchy
    for number, (step, instruction) in enumerate(
        zip(model.steps, program.instructions, strict=True), start=1
    ):
        wanted = lower(groups, hierarchy.factors, hierarchy.grouping(instruction))
        if sorted(step.groups) != sorted(wanted.tolist()):
            return _broken_trace(
                number, f"step {number}: the groups are not those of its instruction"
            )
    return None


def _broken_trace(step: int, text: str) -> Trace:
    return Trace(_violation(step, text))


def _violation(step: int, text: str) -> Violation:
    return Violation(ViolationKind.GROUP_SHAPE, step, (), None, None, text)


def _fixed_violation(model: RequestModel, scene: Scene, groups: IntArray) -> Violation | None:
    """A request with one fixed step runs on the reduction groups themselves."""
    kind, alone = model.kind.value, scene.hierarchy.size == 1
    if model.program is not None:
        return _violation(0, f"a request {kind} has one fixed step and no program")
    if alone and not model.steps:
        return None
    if alone or model.kind.has_programs or len(model.steps) != 1:
        wanted = "no step" if alone else "a program" if model.kind.has_programs else "one step"
        return _violation(0, f"a request {kind} over {scene.hierarchy.size} devices needs {wanted}")
    if model.steps[0].instruction != kind or model.steps[0].groups != groups.tolist():
        return _violation(1, f"step 1: is not {kind} on the groups of the axes")
    return None


def _local_groups(step: Sequence[Sequence[int]], groups: IntArray) -> IntArray | None:
    """Positions in the reduction groups; None unless every reduction group has the same ones."""
    if not step or not step[0] or len({len(row) for row in step}) != 1:
        return None
    listed = np.array(step, dtype=np.int64)
    count, members = groups.shape
    if listed.max() >= groups.size or len(listed) % count:
        return None
    where = np.empty((2, groups.size), dtype=np.int64)
    where[0, groups] = np.arange(count)[:, None]
    where[1, groups] = np.arange(members)
    owner, position = where[0, listed], where[1, listed]
    order = np.argsort(owner[:, 0], kind="stable")
    local = position[order].reshape(count, -1, listed.shape[1])
    within = (owner == owner[:, :1]).all()
    even = (np.bincount(owner[:, 0], minlength=count) == len(listed) // count).all()
    return local[0] if within and even and (local == local[0]).all() else None


def _in_devices(trace: Trace, groups: IntArray) -> Trace:
    """The violation in device ids, for the first reduction group."""
    first, broken = groups[0].tolist(), trace.violation
    if broken is None or max(broken.group, default=0) >= len(first):
        return trace
    text = broken.message + _counted_in(broken, first)
    rank = None if broken.rank is None else first[broken.rank]
    members = tuple(first[position] for position in broken.group)
    return replace(trace, violation=replace(broken, group=members, rank=rank, message=text))


def _counted_in(broken: Violation, group: list[int]) -> str:
    """Says in which group a message counts the members that it names, where that is not plain."""
    if broken.rank is None or group == list(range(len(group))):
        return ""
    shown = ", ".join(map(str, group[:4])) + (", .." if len(group) > 4 else "")
    return f" (counted in a reduction group such as {shown})"


# What cost model and checker find for a valid request of a plan, to hold its numbers against.


@dataclass(frozen=True, slots=True)
class Expected:
    """The numbers of a request: times in seconds, steps and payloads of one of its chunks.

    ``physical_bound_s`` is 0 where none is known (several ways to run, on a rank list).
    ``proved_s`` is the only bound that is known (a single step takes what it takes), unless a
    search may have ``searched`` for programs.
    """

    steps: tuple[StepTime, ...]
    payloads: tuple[float, ...]
    seconds: float
    single_s: float
    physical_bound_s: float
    proved_s: float
    peak_bytes: int
    shards: tuple[int, ...] | None
    searched: bool


def on_scene(model: RequestModel, scene: Scene, trace: Trace) -> Expected:
    """The numbers of a request on the groups of a matrix."""
    steps = _step_times(model, scene, trace)
    seconds = program_s(steps, model.chunks)
    bound = link_bound_s(scene.topology, scene.digits, model.kind, model.bytes)
    payloads: Sequence[float] = [float(model.bytes)] * len(steps)
    size = scene.hierarchy.size
    peak, shards = fixed_peak_bytes(model.kind, size, model.bytes), None
    if model.program is not None:
        payloads = step_payloads(trace.payload_rows, size, model.bytes, model.chunks)
        peak, shards = -(-model.bytes * trace.peak_rows // size), trace.shards
    return Expected(
        steps,
        tuple(payloads),
        seconds,
        scene.fixed_time(model.kind, model.bytes).seconds,
        min(bound, seconds),
        seconds,
        peak,
        shards,
        model.program is not None,
    )


def _step_times(model: RequestModel, scene: Scene, trace: Trace) -> tuple[StepTime, ...]:
    if model.program is not None:
        program = parse_program(model.program, model.kind)
        return scene.program_times(program, trace.payload_rows, model.bytes, model.chunks)
    return (scene.fixed_time(model.kind, model.bytes),) if model.steps else ()


def on_ranks(answer: RequestAnswer) -> Expected:
    """The numbers of a request on a rank list, as :mod:`p2smt.plans.solution` and
    :mod:`p2smt.plans.rank_scene` find them."""
    return Expected(
        answer.steps,
        answer.payloads,
        answer.seconds,
        answer.single_s,
        answer.physical_bound_s,
        answer.bound_s,
        answer.peak_bytes,
        answer.shards,
        searched=False,
    )
