"""What `solve` answers: alternatives with their requests and steps, and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Literal, Protocol

from p2smt.cluster.allocation import unstated_levels
from p2smt.cluster.topology import Topology
from p2smt.collectives.demand import demand_of, plain_kind
from p2smt.collectives.dispatch import AnyKind, Dispatch
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.accuracy import PriceBasis, PriceRange
from p2smt.cost.dispatch import held_bytes
from p2smt.cost.requested_algorithms import NamedStep
from p2smt.cost.scene import NamedWay, step_payloads
from p2smt.cost.step_time import Pipelined, StepTime
from p2smt.display import Displayed, told
from p2smt.errors import EncodingBug, InputError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.rank_list import RankList, RankMap
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.explanation import Explanation
from p2smt.plans.rank_scene import RankScene
from p2smt.programs.check import Checked, check_program
from p2smt.programs.parts import CheckedParts
from p2smt.programs.program import Grouping, Hierarchy, Program, ProofBasis, proof_bases
from p2smt.result import SAME, SearchLimits, SolveStats, Status


def in_chunks(chunks: int) -> str:
    """`` in 8 chunks``, or nothing for one."""
    return f" in {chunks} chunks" if chunks > 1 else ""


@dataclass(frozen=True, slots=True)
class RequestAnswer:
    """One request on one placement.

    ``seconds`` is the time of one execution in ``chunks`` chunks, ``steps`` and ``payloads``
    are those of one chunk, ``bound_s`` is the solver's proved bound on ``seconds``,
    ``single_s`` the time of the one collective that answers it alone on the same placement,
    ``physical_bound_s`` what no schedule can beat there.  ``program`` is None for a
    single all-to-all, a send, groups of one device, and the one collective on a rank list, which is
    the only step then.  On a rank list ``hierarchy`` is flat, and a program's steps run on the
    slices of :mod:`p2smt.programs.parts`.  ``peak_bytes`` is the most a device holds of the
    vector, ``shards`` the chunk each member of a group ends with (reduce-scatter), ``checked``
    what the program was simulated on.
    """

    request: Request
    hierarchy: Hierarchy
    program: Program | None
    status: Status
    seconds: float
    bound_s: float
    single_s: float
    physical_bound_s: float
    steps: tuple[StepTime, ...]
    payloads: tuple[float, ...]
    peak_bytes: int
    shards: tuple[int, ...] | None
    checked: str
    chunks: int = 1

    @property
    def label(self) -> str:
        """The request in words, with its chunks where there are several."""
        return f"{self.request}{in_chunks(self.chunks)}"

    @property
    def total_s(self) -> float:
        """Time per iteration: ``times`` executions."""
        return self.request.times * self.seconds


@dataclass(frozen=True, slots=True)
class SplitPart:
    """A part of a payload with its program; ``starts_s``: when each of the steps begins."""

    share: Fraction
    answer: RequestAnswer
    starts_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PayloadSplit:
    """The fastest split found of a request, by its number, beside what none is below.

    No ``parts``: none that was found is faster than the request's one program.  ``prices`` of the
    levels prove ``least_s``, or latencies do, where not ``by_bytes``; None: not every program is
    known.  ``one_per_split``: what one program in ever more chunks comes near, over what no split
    is below, by bytes alone.
    """

    request: int
    seconds: float
    parts: tuple[SplitPart, ...]
    prices: tuple[Fraction, ...] = ()
    least_s: float | None = None
    by_bytes: bool = True
    one_per_split: float = 1.0


TIMED_STEP = ("instruction", "seconds", "algorithm", "protocol", "bottleneck", "load_bytes")
"""What is said of the time of a step, in plans and in what commands print."""


def search_data(solver: str, limits: SearchLimits) -> dict[str, Any]:
    """How an answer was sought, in its plan's file."""
    keys = ("time_limit_s", "seed", "workers")
    return {"solver": solver, **{key: getattr(limits, key) for key in keys}}


def timed_step(instruction: str, step: StepTime, levels: Sequence[str]) -> dict[str, Any]:
    """A step with the keys TIMED_STEP; ``levels`` are the names of the topology's.

    ``bottleneck`` is the level whose worst link bounds the step, with its load.
    """
    worst = None if step.level is None else levels[step.level]
    values = (instruction, step.seconds, step.algorithm, step.protocol, worst, step.load_bytes)
    return dict(zip(TIMED_STEP, values, strict=True))


def timed_steps(answer: RequestAnswer) -> list[dict[str, Any]]:
    """The steps of an answer with the times of one chunk, each as :func:`timed_step` has it.

    The instruction of what is one fixed step is the name of its kind.
    """
    levels = [name for name, _ in answer.hierarchy.aliases[1:]]
    fixed = (answer.request.kind.value,) * len(answer.steps)
    names = map(str, answer.program.instructions if answer.program else fixed)
    return [timed_step(*named, levels) for named in zip(names, answer.steps, strict=True)]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A placement with a program per request; ``status`` OPTIMAL if each program is.

    Instead of a matrix there may be a rank list, which no matrix expresses; each request is
    then the one collective, and the status FEASIBLE.  On named
    hosts requests may have programs, too (:mod:`p2smt.plans.rank_scene`).

    Raises:
        InputError: there is neither a matrix nor a rank list, or both.
    """

    matrix: Matrix | None
    requests: tuple[RequestAnswer, ...]
    objective_s: float
    status: Status
    rank_list: RankList | None = None

    def __post_init__(self) -> None:
        if (self.matrix is None) == (self.rank_list is None):
            raise InputError("an alternative", "has either a matrix or a rank list")

    @property
    def placement(self) -> RankMap:
        """Where the ranks lie."""
        if self.rank_list is not None:
            return self.rank_list
        return Placement(self.matrix or ())

    def devices_by_host(self, topology: Topology) -> tuple[tuple[str, int], ...]:
        """The host of each rank (empty where nodes have no names) with the device there, which mean
        the same on every choice of hosts."""
        each = topology.devices_under(topology.node_level)
        hosts = rank_hosts(topology, self.ranks)
        if hosts is None:
            return tuple(("", device) for device in self.ranks)
        return tuple((host, one % each) for host, one in zip(hosts, self.ranks, strict=True))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The device of each rank, ranks being row-major over the axes."""
        return tuple(self.placement.rank_tensor().ravel().tolist())

    @property
    def peak_bytes(self) -> int:
        """Peak memory per device: requests do not overlap, so the largest counts."""
        return max(r.peak_bytes for r in self.requests)


@dataclass(frozen=True, slots=True)
class RankOrder:
    """Ranks on devices in some order, one collective per request: what answers are compared with.

    ``seconds`` are times per execution of each request.  ``matrix`` is the one that expresses the
    order, or None if there is none.  ``breaks``: the restrictions that keep it from being an
    answer, in words.  ``within``: the range of its objective; None where it takes no time.
    """

    name: str
    seconds: tuple[float, ...]
    objective_s: float
    matrix: Matrix | None = None
    breaks: tuple[str, ...] = ()
    within: PriceRange | None = None


class Shown(Enum):
    """Whether who measures would find a difference that is predicted."""

    YES = "would show"
    PERHAPS = "may not show"
    UNMEASURED = "not measured anywhere: run p2smt calibrate for 2 minutes"


def shown(faster: PriceRange | None, slower: PriceRange | None) -> Shown:
    """Whether a difference exceeds the ranges of both times, where something measured says them."""
    if faster is None or slower is None:
        return Shown.PERHAPS
    if PriceBasis.ASSUMED in (faster.basis, slower.basis):
        return Shown.UNMEASURED
    return Shown.YES if faster.clearly_below(slower) else Shown.PERHAPS


@dataclass(frozen=True, slots=True)
class ProgramGain:
    """What programs gain on the answer's placement; objectives in seconds.

    ``singles_s`` is one collective each as the library chooses it, ``answer_s`` the answer.
    ``named_s`` is one collective each where ``named`` requests run by the cheapest way that the
    library has, which its rule does not take.  ``advised``: where each of these differs by more
    than the ranges of both times, so that it is worth naming.
    """

    singles_s: float
    named_s: float
    answer_s: float
    named: tuple[tuple[Request, NamedWay], ...] = ()
    advised: bool = False

    @property
    def over_singles(self) -> float:
        """Time of one collective each over the answer's, less one."""
        return self.singles_s / self.answer_s - 1

    @property
    def by_choice(self) -> float:
        """The same of naming algorithms: what it gains without any program."""
        return self.singles_s / self.named_s - 1

    @property
    def part_by_choice(self) -> float:
        """The part of the time saved that naming algorithms saves, at most all of it."""
        saved = self.singles_s - max(self.named_s, self.answer_s)
        return saved / (self.singles_s - self.answer_s)


@dataclass(frozen=True, slots=True)
class Gain:
    """What the answer gains over the default layout: its time over the answer's, less one.

    ``answer`` and ``default`` are the ranges of both times (None: it takes none); ``programs`` what
    programs have in it, on the answer's placement (None: nothing).
    """

    over_default: float
    answer: PriceRange | None = None
    default: PriceRange | None = None
    programs: ProgramGain | None = None

    @property
    def shown(self) -> Shown:
        """Whether who measures would find it."""
        return shown(self.answer, self.default)

    @property
    def measurable(self) -> bool | None:
        """Whether the gain exceeds the ranges of both times; None: nobody measured such a time."""
        return None if self.shown is Shown.UNMEASURED else self.shown is Shown.YES

    @property
    def sides(self) -> tuple[PriceRange, ...]:
        """The ranges that there are."""
        return tuple(one for one in (self.answer, self.default) if one is not None)

    @property
    def error(self) -> float | None:
        """The largest part by which a measured time may be another; None: nobody measured one."""
        if self.shown is Shown.UNMEASURED:
            return None
        ends = ((end, one.seconds) for one in self.sides for end in (one.low_s, one.high_s))
        return max((abs(end / seconds - 1) for end, seconds in ends), default=0.0)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """The winner on a cluster with one level's bandwidth, or the cost of every call, changed.

    ``level`` None: the calls'.  ``winner_s`` is its objective there, ``optimum_s`` the proved
    optimum there (or the best found, if ``status`` is not OPTIMAL).
    """

    level: str | None
    factor: float
    winner_s: float
    optimum_s: float
    status: Status

    @property
    def what(self) -> Literal["bandwidth", "call"]:
        """What was changed."""
        return "call" if self.level is None else "bandwidth"

    @property
    def holds(self) -> bool | None:
        """Whether the winner is still optimal (to ``SAME``); None: not settled."""
        if self.winner_s > self.optimum_s * (1 + SAME):
            return False
        return True if self.status is Status.OPTIMAL else None


@dataclass(frozen=True, slots=True)
class NearOptimal:
    """Placement matrices that cost, with their best programs, at most ``1 + within`` times the
    optimum.

    ``alternatives`` are those found, in order of time, the optimum first.  COMPLETE: there are
    no others; TRUNCATED: there are at least these.  ``listed``: they are wanted one by one, not
    only their number.
    """

    within: float
    status: Status
    alternatives: tuple[Alternative, ...]
    listed: bool

    def below(self, optimum_s: float) -> NearOptimal:
        """Those near a lesser optimum: a rank order's, which no matrix expresses."""
        limit_s = (1 + self.within) * optimum_s * (1 + SAME)
        near = tuple(one for one in self.alternatives if one.objective_s <= limit_s)
        return replace(self, alternatives=near)


@dataclass(frozen=True, slots=True, repr=False)
class Solution(Displayed):
    """The answer to a problem.

    ``bound_s`` is the solver's proved bound on the objective of this problem,
    ``physical_bound_s`` the least objective that the links allow; 0 where none was proved
    (:func:`~p2smt.result.known_bound`).  ``ranking`` is COMPLETE
    if the alternatives are proved to be the best ones in order.  ``conflict``: where it is
    infeasible, restrictions that leave no answer (none of them can be left out), in words.
    ``notes``: what else is to be known of the answer, in words.  ``limits`` and ``top`` are those
    that the search was given.  ``matrices``: where the answer is a rank order, what was proved of
    the best matrix.  ``near``: placements near the optimum, if they were looked for.
    ``gain``: over the default layout, where there is an answer.  ``allocation``: of an answer on
    named hosts, which is a rank list; its bounds hold for every order of the hosts.
    ``explanation``: what the answer rests on, ``splits``: of its payloads over programs that run at
    once; if that was asked for.
    """

    problem: Problem
    status: Status
    alternatives: tuple[Alternative, ...]
    bound_s: float
    physical_bound_s: float
    ranking: Status
    stats: SolveStats
    default: RankOrder | None = None
    compared: RankOrder | None = None
    sensitivity: tuple[Perturbation, ...] = ()
    interrupted: bool = False
    conflict: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    limits: SearchLimits = field(default_factory=SearchLimits)
    top: int = 1
    matrices: Status | None = None
    near: NearOptimal | None = None
    gain: Gain | None = None
    allocation: Allocation | None = None
    explanation: Explanation | None = None
    splits: tuple[PayloadSplit, ...] | None = None

    def summary(self) -> str:
        """Axes, cluster, status and time."""
        axes = ",".join(f"{axis.name}={axis.size}" for axis in self.problem.axes)
        topology = self.problem.topology
        timed = self.best is not None and not unstated_levels(topology)
        seconds = self.best.objective_s if self.best is not None and timed else None
        return f"{axes} on {topology.name!r}: {told(self.status.value, seconds)}"

    @property
    def bounded(self) -> bool:
        """Whether the bounds are of the answer: a rank list has none, but on named hosts."""
        return self.allocation is not None or self.best is None or self.best.matrix is not None

    @property
    def bases(self) -> dict[int, ProofBasis]:
        """What a proved optimum rests on as to programs, by levels of a request.

        Nothing where the answer is not proved best, or is a rank list.
        """
        if self.status is not Status.OPTIMAL or self.best is None or self.best.matrix is None:
            return {}
        return proof_bases(self.problem, self.stats.solver)

    @property
    def finished(self) -> bool:
        """Whether the search over matrices came to its end: with the best one, or with none."""
        return (self.matrices or self.status) in (Status.OPTIMAL, Status.INFEASIBLE)

    @property
    def best(self) -> Alternative | None:
        """The first alternative."""
        return self.alternatives[0] if self.alternatives else None


class ProofStatus(Enum):
    """What solving again says of a plan."""

    PROVED = "proved"  # no matrix of the problem is faster, by more than a tick
    REFUTED = "refuted"  # one is, or a bound in the plan is false
    OPEN = "open"  # the search ended at a limit, or the plan is a rank list and none is known


@dataclass(frozen=True, slots=True)
class PlanProof:
    """What solving a plan's problem again says of it.

    ``objective_s`` is the plan's, ``bound_s`` what no matrix with its programs beats (where the
    plan is proved, at least its objective less one tick; 0 for a rank list, which nothing bounds).
    Of rank orders that no matrix expresses the default one alone is tried.  ``better`` is a faster
    answer, ``false`` says which bounds in the plan the search contradicts, ``unsettled`` which it
    neither contradicts nor proves, ``weaker`` which are true but less than it proves;
    ``listed``: the plan is a rank list; ``on_hosts``: one on named hosts, whose orders are bounded.
    """

    status: ProofStatus
    objective_s: float
    bound_s: float
    better: Alternative | None
    false: tuple[str, ...]
    solution: Solution
    listed: bool = False
    on_hosts: bool = False
    unsettled: tuple[str, ...] = ()
    weaker: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether it is known that no matrix is faster, or that the plan claims what is false."""
        return self.status is not ProofStatus.OPEN

    @property
    def links_settled(self) -> bool:
        """Whether the link-level bound of the plan was compared with what was proved."""
        return self.settled and self.better is None and not self.listed


def faster_orders(solution: Solution) -> tuple[RankOrder, ...]:
    """Compared rank orders that beat the answer: restrictions or no matrix kept them out of it."""
    best = solution.best
    orders = [x for x in (solution.default, solution.compared) if x is not None]
    if best is None:
        return ()
    return tuple(x for x in orders if x.objective_s < best.objective_s * (1 - SAME))


def objective(problem: Problem, seconds: tuple[float, ...]) -> float:
    """The objective of these times per execution, in the order of the requests."""
    totals = [r.times * s for r, s in zip(problem.requests, seconds, strict=True)]
    return max(totals) if problem.objective == "max" else sum(totals)


# What an answer on named hosts says besides where ranks lie and what that costs: their names.


@dataclass(frozen=True, slots=True)
class OrderNear:
    """An order of hosts near the best one: the host of each cell of the grid of nodes, row-major.

    ``seconds`` are those of an execution of each request; ``alike``: so many orders, this among
    them, have the same ``inside`` and the same times.
    """

    objective_s: float
    seconds: tuple[float, ...]
    inside: Matrix
    hosts: tuple[str, ...]
    alike: int = 1


@dataclass(frozen=True, slots=True)
class HostsNear:
    """The orders that take at most ``1 + within`` times what the answer does, the fastest first.

    COMPLETE: there are no others; of all orders ``looked`` were looked at.
    """

    within: float
    status: Status
    orders: tuple[OrderNear, ...]
    looked: int

    @property
    def count(self) -> int:
        """How many there are, those alike each."""
        return sum(one.alike for one in self.orders)


@dataclass(frozen=True, slots=True)
class Allocation:
    """An answer on the hosts that a job got.

    ``topology`` is the cluster of the hosts that the job got; ``listed`` are those as they were
    given, ``idle`` those of them that have no rank.
    ``inside`` is the parallelism matrix inside each node: rows are the axes, columns the levels
    inside nodes, outermost first.  ``with_programs_s`` is the objective with the best programs
    found on the same ranks, instead of one collective per request (None: none is faster, or none
    was looked for).  ``near``: orders near it, if they were looked for.
    """

    topology: Topology
    listed: tuple[str, ...]
    idle: tuple[str, ...]
    inside: Matrix
    with_programs_s: float | None = None
    near: HostsNear | None = None


def rank_hosts(topology: Topology, ranks: Sequence[int]) -> tuple[str, ...] | None:
    """The name of the host of each rank, given its device; None where nodes have no names."""
    hosts = topology.hosts
    if hosts is None:
        return None
    each = topology.devices_under(topology.node_level)
    names = dict(zip(hosts.slots, hosts.names, strict=True))
    return tuple(names[device // each] for device in ranks)


# The answer on a rank list: one collective per request, costed device by device.


def rank_alternative(problem: Problem, ranks: RankList) -> Alternative:
    """The rank list with one collective per request; whether rules allow it is not looked at.

    Its status is FEASIBLE: no program of several steps is tried on groups that no matrix gives.
    """
    answers = tuple(rank_answer(problem, request, ranks) for request in problem.requests)
    total_s = objective(problem, tuple(answer.seconds for answer in answers))
    return Alternative(None, answers, total_s, Status.FEASIBLE, ranks)


def rank_answer(problem: Problem, request: Request, ranks: RankList) -> RequestAnswer:
    """One request on a rank list; where programs might be faster no bound is known."""
    scene = RankScene.of_single(problem, request, ranks)
    found, hierarchy, kind = fixed_answer(request, scene), scene.hierarchy, request.kind
    if not kind.has_programs or hierarchy.size == 1:
        return found
    program = Program(
        (hierarchy.instruction(DIRECT[plain_kind(kind)], Grouping(0, hierarchy.depth)),)
    )
    checked = check_program(demand_of(kind), hierarchy, program)
    return replace(
        found,
        status=Status.FEASIBLE,
        bound_s=0.0,
        peak_bytes=request.payload_bytes,
        shards=checked.trace.shards,
        checked=checked.how,
    )


# What a request takes on a scene, with a program or as one fixed step; and all on a matrix.


Ran = Checked | CheckedParts
"""What the semantics say of a program on a scene, and what it was run on."""


class AnyScene(Protocol):
    """Where a request runs, whatever says so: a matrix (:class:`~p2smt.cost.scene.Scene`) or a rank
    list (:class:`~p2smt.plans.rank_scene.RankScene`).  A time is one of all its groups at once."""

    @property
    def hierarchy(self) -> Hierarchy:
        """How the levels cut a group; flat where groups need not be alike."""
        ...

    def fixed_time(self, kind: AnyKind, payload_bytes: int) -> StepTime:
        """Time of the one step that answers a request of this kind."""
        ...

    def least_s(self, request: Request, /) -> float:
        """What no program takes less than, as the model prices it; 0: that is not known."""
        ...

    def physical_bound_s(self, request: Request) -> float:
        """What the links allow at best; 0: that is not known."""
        ...


def program_answer(
    request: Request, scene: AnyScene, program: Program, checked: Ran, timed: Pipelined
) -> RequestAnswer:
    """A valid program as the answer; FEASIBLE, with the bound of any: nothing was searched.

    Raises:
        EncodingBug: it takes less time than its physical bound.
    """
    trace, rows = checked.trace, scene.hierarchy.size
    physical = scene.physical_bound_s(request)
    if physical > timed.seconds * (1 + 1e-9):
        text = f"a program takes {timed.seconds} s, less than its physical bound {physical} s"
        raise EncodingBug(text, str(scene), str(program))
    return RequestAnswer(
        request,
        scene.hierarchy,
        program,
        Status.FEASIBLE,
        timed.seconds,
        min(scene.least_s(request), timed.seconds),
        scene.fixed_time(request.kind, request.payload_bytes).seconds,
        physical,
        timed.steps,
        step_payloads(trace.payload_rows, rows, request.payload_bytes, timed.chunks),
        -(-request.payload_bytes * trace.peak_rows // rows),
        trace.shards,
        checked.how,
        timed.chunks,
    )


def fixed_answer(request: Request, scene: AnyScene) -> RequestAnswer:
    """A request with one fixed step, or none at all in a group of one device."""
    hierarchy = scene.hierarchy
    moved = hierarchy.size > 1
    step = scene.fixed_time(request.kind, request.payload_bytes)
    physical = scene.physical_bound_s(request)
    return RequestAnswer(
        request,
        hierarchy,
        None,
        Status.OPTIMAL,
        step.seconds,
        step.seconds,
        step.seconds,
        min(physical, step.seconds),
        (step,) if moved else (),
        (float(request.payload_bytes),) if moved else (),
        fixed_peak_bytes(request.kind, hierarchy.size, request.payload_bytes),
        None,
        "one fixed step" if moved else "nothing to do",
    )


def fixed_peak_bytes(kind: AnyKind, members: int, payload_bytes: int) -> int:
    """What a device holds of a request of one fixed step: what is sent and what is received."""
    if members == 1:
        return payload_bytes
    if isinstance(kind, Dispatch):
        return held_bytes(kind, members, payload_bytes)
    return 2 * payload_bytes


def named_steps(answer: RequestAnswer) -> tuple[NamedStep, ...]:
    """The collectives of an answer and what runs them; none of a send or an exchange."""
    request, kind = answer.request, answer.request.kind
    whole = None if isinstance(kind, Dispatch) else DIRECT.get(kind)
    if answer.program is not None:
        return steps_named(request, answer.program, answer.steps)
    if whole is None:
        return ()
    return tuple(NamedStep(request.name, whole, step.algorithm) for step in answer.steps)


def steps_named(
    request: Request, program: Program, steps: Sequence[StepTime]
) -> tuple[NamedStep, ...]:
    """The collectives of a request's program and what runs each of its steps; none of an
    all-to-all's, for which a library has one algorithm."""
    pairs = zip(program.instructions, steps, strict=True)
    return tuple(
        NamedStep(f"{i} ({request.name})", i.collective, step.algorithm)
        for i, step in pairs
        if i.collective is not RequestKind.ALL_TO_ALL
    )


def matrix_alternative(
    problem: Problem, matrix: Matrix, answers: tuple[RequestAnswer, ...]
) -> Alternative:
    """A matrix with an answer to each request."""
    proved = all(answer.status is Status.OPTIMAL for answer in answers)
    total_s = objective(problem, tuple(answer.seconds for answer in answers))
    return Alternative(matrix, answers, total_s, Status.OPTIMAL if proved else Status.FEASIBLE)
