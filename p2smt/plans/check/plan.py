"""Checks a plan file: shape, groups, the meaning of its programs, its costs, its restrictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.cluster.nodes.allocation import allocated
from p2smt.cluster.nodes.blocking import unstated_levels
from p2smt.cost.regime import regime
from p2smt.cost.scene import Scene
from p2smt.parallelism.rank_list import RankList, RankMap
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.allocation import rank_hosts
from p2smt.plans.check.numbers import plan_bounds, plan_notes, request_bounds, request_notes
from p2smt.plans.check.restrictions import broken_by_program, broken_rules
from p2smt.plans.check.steps import check_program_on_ranks, check_request, check_single_on_ranks
from p2smt.plans.expected import Expected, on_ranks, on_scene
from p2smt.plans.file_model import AnyPlan, OldPlanModel, PlanModel, RequestModel
from p2smt.plans.problem import allocation_problem, located, plan_problem
from p2smt.plans.rank_answer import rank_answer, rank_step_groups
from p2smt.plans.rank_program import ON_DEVICES, rank_program_answer
from p2smt.plans.rank_scene import RankScene
from p2smt.plans.solution import objective
from p2smt.programs.basis import basis_names, proof_bases
from p2smt.programs.program import parse_program
from p2smt.programs.semantics import Violation

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
    problem, where = plan_problem(plan, source)
    with located(source):
        found = [_check(plan, problem, n, where) for n in range(len(plan.requests))]
    seconds = tuple(0.0 if one.expected is None else one.expected.seconds for one in found)
    total_s = with_programs_s = objective(problem, seconds)
    on_hosts = isinstance(where, RankList) and problem.topology.hosts is not None
    if on_hosts:
        total_s = objective(problem, tuple(_single_s(one) for one in found))
    several = on_hosts and any(request.program is not None for request in plan.requests)
    violations = [(n, one.broken) for n, one in enumerate(found) if one.broken is not None]
    notes = [note for one in found for note in one.notes]
    if plan.ranks != where.rank_tensor().ravel().tolist():
        notes.append(Note("ranks", "ranks are not those of the matrix"))
    if isinstance(plan, PlanModel) and plan.hosts not in (None, _hosts(problem, plan)):
        notes.append(Note("ranks", "hosts are not those of the devices of the ranks"))
    notes += _of_allocation(plan, problem, source)
    if not violations:
        bounds_s = tuple(one.expected.physical_bound_s for one in found if one.expected)
        programs_s = with_programs_s if several else None
        notes += [Note("cost", text) for text in plan_notes(plan, total_s, programs_s)]
        physical_s = objective(problem, bounds_s)
        notes += [Note("bound", text) for text in plan_bounds(plan, physical_s, on_hosts)]
    if isinstance(plan, PlanModel):
        notes += [Note("bound", text) for text in _basis(plan, problem)]
        notes += [Note("restriction", text, n) for n, text in _broken(plan, problem, where, found)]
    return PlanReport(
        tuple(violations),
        tuple(notes),
        tuple(one.how for one in found),
        seconds,
        total_s,
        tuple(_regime(problem, *one) for one in zip(plan.requests, found, strict=True)),
        tuple(_not_checked(plan, found)),
        unstated_levels(problem.topology),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found of one request: the rule that it breaks, or its numbers and notes on them."""

    how: str
    broken: Violation | None = None
    expected: Expected | None = None
    notes: tuple[Note, ...] = ()


def _basis(plan: PlanModel, problem: Problem) -> Iterator[str]:
    """What is wrong with why no program is said to be missed."""
    expected = basis_names(proof_bases(problem, plan.limits.solver))
    said = [one.value for one in plan.basis or ()]
    if said and said != expected:
        yield f"basis says {', '.join(said)}; it is {', '.join(expected) or 'none'}"


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


def _check(plan: AnyPlan, problem: Problem, n: int, where: RankMap) -> _Found:
    model = plan.requests[n]
    expected, how = _expected(problem, n, model, where)
    if isinstance(expected, Violation):
        return _Found(how, expected)
    names = problem.topology.names
    notes = [
        *(Note("cost", text, n) for text in request_notes(n, model, expected, names)),
        *(Note("bound", text, n) for text in request_bounds(n, model, expected, plan.links_alone)),
    ]
    return _Found(how, None, expected, tuple(notes))


def _broken(
    plan: PlanModel, problem: Problem, where: RankMap, found: Sequence[_Found]
) -> Iterator[tuple[int | None, str]]:
    """Restrictions that the placement breaks, and those that the valid requests do."""
    for text in broken_rules(problem, where):
        yield None, text
    for n, (model, one) in enumerate(zip(plan.requests, found, strict=True)):
        if one.broken is None:
            for text in broken_by_program(problem, n, model, where):
                yield n, text


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
    answer = rank_program_answer(scene, where, program, trace, timed)
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
