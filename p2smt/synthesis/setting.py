"""What is asked of a synthesis: a collective over a fabric, in steps, rounds and chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from math import ceil

from p2smt.collectives.contract import RULES, MadeOf
from p2smt.collectives.names import collective_named
from p2smt.errors import EncodingBug, InputError, OutOfTimeError
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.symmetries import Effort, fabric_symmetries
from p2smt.problems.ports import edge_ports
from p2smt.problems.schedule import (
    DisseminationProblem,
    EdgeRow,
    ScheduleClass,
    ScheduleSymmetry,
    StepSends,
    SumSchedule,
    check_steps,
)
from p2smt.result import Result, SearchLimits, Status, StopWatch
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.report import Report, Verdict
from p2smt.schedules.verify.verify import verify
from p2smt.solvers.ask import Solver
from p2smt.synthesis.bounds import RateBound, distance_bound, rate_bound
from p2smt.synthesis.certificate.certificate import BoundKind
from p2smt.synthesis.group_order import ThresholdMemory, ladder
from p2smt.synthesis.lowering import lowered
from p2smt.synthesis.reversal import reversed_sums, sums_of
from p2smt.synthesis.schedule_replay import (
    broken_sum_rule,
    disseminate,
    dissemination_problem,
    spreads,
    sum_demands,
)
from p2smt.synthesis.wreaths import WREATHED, moved_by_routes, wreath_products

NAMES = {
    "all-gather": "allgather",
    "all-reduce": "allreduce",
    "all-to-all": "alltoall",
    "broadcast": "broadcast",
    "gather": "gather",
    "reduce": "reduce",
    "reduce-scatter": "reduce_scatter",
    "scatter": "scatter",
}
"""The collectives that schedules are synthesized for: as people write them, and as contracts do."""

ALL_REDUCE = "allreduce"
REVERSED = {"reduce_scatter": "allgather", "reduce": "broadcast"}
"""Sums at one rank: those whose schedules, run backwards, are schedules of these."""

CHUNKS_OF = {"allgather": "per rank", "reduce_scatter": "per rank"}
CHUNKS_OF |= dict.fromkeys(("alltoall", "scatter", "gather"), "per pair")
CHUNKS_OF |= dict.fromkeys(("allreduce", "broadcast", "reduce"), "in all")
"""What ``chunks`` counts: those of a rank, of a pair that sends, or all."""


def synthesized_collective(text: str) -> str:
    """The collective of that name, such as ``all-gather``, ``allgather`` or ``AllGather``.

    Raises:
        InputError: schedules are synthesized for none of that name.
    """
    found = collective_named(text)
    if found in NAMES.values():
        return str(found)
    rule = f"is none of {', '.join(NAMES)}"
    raise InputError(f"collective {text[:40]!r}", rule, "name one of them")


def shown_collective(collective: str) -> str:
    """The name of a collective as people write it."""
    return next(shown for shown, name in NAMES.items() if name == collective)


@dataclass(frozen=True, slots=True)
class SynthesisSetting:
    """What is asked about: ``collective`` over ``fabric``, from or to ``root`` where it has one.

    ``symmetry``: schedules with symmetries may be tried first.  ``messages``: of a chunk over an
    edge in a step, at most; of all-reduce.
    """

    fabric: Fabric
    collective: str
    root: int = 0
    symmetry: bool = True
    messages: int = 1

    def __post_init__(self) -> None:
        if self.collective not in CHUNKS_OF:
            rule = f"is none of {', '.join(CHUNKS_OF)}"
            raise InputError(f"collective {self.collective[:40]!r}", rule)
        if self.fabric.ranks < 2:
            given = f"fabric {self.fabric.name[:60]} of one rank"
            raise InputError(given, "sends nothing", "take one of two ranks or more")
        if not 0 <= self.root < self.fabric.ranks:
            rule = f"the ranks are 0 to {self.fabric.ranks - 1}"
            raise InputError(f"root {self.root}", rule, "name one of them")
        if self.root and not self.rooted:
            given = f"root {self.root} of {shown_collective(self.collective)}"
            raise InputError(given, "it has no root", "leave it out")
        if self.messages < 1:
            raise InputError(f"{self.messages} messages", "must be at least 1")
        if self.messages > 1 and self.collective != ALL_REDUCE:
            given = f"{self.messages} messages of {shown_collective(self.collective)}"
            raise InputError(given, "it needs no chunk over an edge twice", "leave them out")
        self.fabric.check_connected()

    @property
    def edges(self) -> tuple[EdgeRow, ...]:
        """Source, target and loaded capacities of each edge of the fabric."""
        return self.fabric.edge_rows

    @property
    def rooted(self) -> bool:
        """Whether one of the ranks is the root."""
        return RULES[self.collective].rooted

    @property
    def adds(self) -> bool:
        """Whether chunks are added at every rank, not at one alone."""
        return self.collective == ALL_REDUCE

    @property
    def backwards(self) -> bool:
        """Whether its schedules are those of another collective run backwards."""
        rule = RULES[self.collective]
        return rule.source is MadeOf.SUM and not self.adds

    @property
    def copying(self) -> tuple[Fabric, str]:
        """The fabric and the collective of the search for schedules that copy."""
        if not self.backwards:
            return self.fabric, self.collective
        return self.fabric.reversed(), REVERSED[self.collective]


@dataclass(frozen=True, slots=True)
class ScheduleSize:
    """(S, R, C): steps, rounds in all, and chunks as ``CHUNKS_OF`` counts them."""

    steps: int
    rounds: int
    chunks: int

    def __post_init__(self) -> None:
        check_steps(self.steps, self.rounds)
        if self.chunks < 1:
            raise InputError(f"{self.chunks} chunks", "must be at least 1")

    @property
    def rate(self) -> Fraction:
        """Rounds a chunk: what a schedule of large data is measured by."""
        return Fraction(self.rounds, self.chunks)

    def __str__(self) -> str:
        return f"({self.steps},{self.rounds},{self.chunks})"


def enough_rounds(setting: SynthesisSetting, size: ScheduleSize) -> int:
    """Rounds with which so many steps and chunks have a schedule, if they have one with any.

    A chunk goes over an edge ``messages`` times in a step at most: more rounds than all of these
    need on the capacity that they fill most, in every step, are idle.
    """
    fabric = setting.fabric
    ranks = {"in all": 1, "per rank": fabric.ranks, "per pair": fabric.ranks**2}
    sent = size.chunks * ranks[CHUNKS_OF[setting.collective]] * setting.messages
    loads = Counter(k for edge in fabric.edges for k in edge.loads)
    each = (ceil(sent * many / fabric.capacities[k].bandwidth) for k, many in loads.items())
    return size.steps * max(each, default=1)


# What a synthesis found, in words that keep apart what is proved and what is not.


class Answer(StrEnum):
    """What became of a question.

    No schedule: none at all, by a bound or by a search that is complete in the class it names.
    No symmetric schedule: none that any of the groups tried takes to itself; without symmetry it is
    open.
    """

    SCHEDULE = "schedule"
    NO_SCHEDULE = "no schedule"
    NO_SYMMETRIC = "no symmetric schedule"
    UNKNOWN = "unknown"


LETTERS = {
    ScheduleClass.TREES: "T",
    ScheduleClass.ACCUMULATORS: "A",
    ScheduleClass.PARTIAL_SUMS: "G",
}
"""The classes of all-reduces by the letters that answers name them with."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A search for schedules of a class that a group takes to itself; ``order``: of the group.

    ``status``: FEASIBLE, INFEASIBLE (none with this group in this class) or UNKNOWN, with ``why``.
    ``family``: None where chunks are only copied.
    """

    order: int
    family: ScheduleClass | None
    status: Status
    wall_s: float
    why: str = ""

    @property
    def complete(self) -> bool:
        """Whether all schedules with the group that are asked about are in the class."""
        return self.family in (None, ScheduleClass.PARTIAL_SUMS)

    @property
    def refutes_all(self) -> bool:
        """Whether it proves that there is no schedule."""
        return self.complete and self.order == 1 and self.status is Status.INFEASIBLE


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The answer to one question, and what it rests on.

    ``reason``: the answer in the words of Answer, with what proves it; ``detail``: more about it.
    ``bound``: rounds a chunk that every schedule in so many steps needs, whatever its chunks; of
    kind DISTANCE, the steps that there are in every schedule; None: it was stopped before.
    ``sums``, ``schedule`` and ``report``: the messages, the same as a schedule, and its check in
    every interleaving.  ``family`` and ``group_order``: the class and the group of what was found.
    ``origin``: of what it was made, where no search found it.
    """

    setting: SynthesisSetting
    size: ScheduleSize
    status: Answer
    reason: str
    detail: str = ""
    sums: SumSchedule | None = None
    schedule: Schedule | None = None
    report: Report | None = None
    bound: RateBound | None = None
    family: ScheduleClass | None = None
    group_order: int | None = None
    origin: str = ""
    attempts: tuple[Attempt, ...] = ()
    wall_s: float = 0.0
    interrupted: bool = False

    @property
    def optimal(self) -> bool:
        """Whether no schedule in so many steps has fewer rounds a chunk: its bound says so."""
        return (
            self.sums is not None
            and self.bound is not None
            and self.bound.kind is not BoundKind.DISTANCE
            and self.rate == self.bound.value
        )

    @property
    def rate(self) -> Fraction:
        """Rounds a chunk."""
        return self.size.rate


# Schedules of collectives that copy, or that add at one rank, from the search for copies.


def copied(
    setting: SynthesisSetting,
    size: ScheduleSize,
    symmetries: tuple[ScheduleSymmetry, ...],
    limits: SearchLimits,
    solver: Solver,
) -> Result[SumSchedule]:
    """A schedule: FEASIBLE; INFEASIBLE: there is none with these symmetries; UNKNOWN.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
    """
    return copied_as(setting, copy_problem(setting, size, symmetries), limits, solver)


def copied_as(
    setting: SynthesisSetting, problem: DisseminationProblem, limits: SearchLimits, solver: Solver
) -> Result[SumSchedule]:
    """The same of a question about copies that is given: that of the setting, or narrower.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
    """
    found = disseminate(problem, limits, solver)
    sums = None if found.value is None else _as_sums(setting, problem, found.value)
    return Result(found.status, sums, stats=found.stats)


def _as_sums(
    setting: SynthesisSetting, problem: DisseminationProblem, steps: tuple[StepSends, ...]
) -> SumSchedule:
    if setting.backwards:
        return reversed_sums(problem, steps, setting.edges)
    return sums_of(problem, steps)


def copy_problem(
    setting: SynthesisSetting, size: ScheduleSize, symmetries: tuple[ScheduleSymmetry, ...]
) -> DisseminationProblem:
    """The question about copies: for sums at one rank, over the reversed fabric."""
    fabric, collective = setting.copying
    chunks = spreads(collective, fabric.ranks, size.chunks, setting.root)
    problem = dissemination_problem(fabric, chunks, size.steps, size.rounds)
    return replace(problem, symmetries=symmetries)


def owners(setting: SynthesisSetting, size: ScheduleSize) -> tuple[int, ...] | None:
    """Of each chunk the rank that its data belongs to; None where all ranks share every chunk.

    Of what leaves or comes to a root it is the other end.
    """
    if CHUNKS_OF[setting.collective] == "in all":
        return None
    _, collective = setting.copying
    routes = spreads(collective, setting.fabric.ranks, size.chunks, setting.root)
    return tuple(r.goals[0] if setting.collective == "scatter" else r.root for r in routes)


# The schedule that messages make, replayed before and checked after.


def lower(
    setting: SynthesisSetting, size: ScheduleSize, sums: SumSchedule
) -> tuple[Schedule, Report]:
    """The messages as thread blocks, and their check in every interleaving.

    Raises:
        EncodingBug: the messages break a rule of fabric, steps or collective, or are wrong in some
            interleaving.
    """
    if broken := broken_synthesis(setting, size, sums):
        raise EncodingBug(broken, (setting, size), sums)
    schedule = lowered(
        sums,
        edges=setting.edges,
        ranks=setting.fabric.ranks,
        collective=setting.collective,
        chunks=size.chunks,
        root=setting.root,
        name=schedule_name(setting, size),
    )
    report = verify(schedule)
    if report.verdict is Verdict.INVALID:
        reason = f"the schedule is wrong: {report.violations[0].message}"
        raise EncodingBug(reason, (setting, size), sums)
    return schedule, report


def broken_synthesis(
    setting: SynthesisSetting, size: ScheduleSize, sums: SumSchedule
) -> str | None:
    """The first rule of fabric, steps, size or collective that messages break; None: none."""
    ranks, messages = setting.fabric.ranks, setting.messages
    demands = sum_demands(setting.collective, ranks, size.chunks, setting.root)
    capacities = setting.fabric.bandwidths
    steps, rounds = len(sums.steps), sum(step.rounds for step in sums.steps)
    if (steps, rounds) != (size.steps, size.rounds):
        return f"it has {steps} steps and {rounds} rounds"
    return broken_sum_rule(sums, setting.edges, capacities, demands, messages)


def schedule_name(setting: SynthesisSetting, size: ScheduleSize) -> str:
    """Such as ``all-gather-dgx1-3-7-6``."""
    return f"{question_name(setting)}-{size.steps}-{size.rounds}-{size.chunks}"


def question_name(setting: SynthesisSetting) -> str:
    """Such as ``all-gather-dgx1``."""
    fabric = "".join(c if c.isalnum() or c in "-_." else "-" for c in setting.fabric.name[:60])
    return f"{shown_collective(setting.collective)}-{fabric}"


# How many pairs of a chunk and a port or link a question has, counted before anything is built.


MAX_PAIRS = 20_000_000
"""Beyond it no search is begun, whatever the symmetries: see the encodings."""


def too_many_pairs(
    setting: SynthesisSetting, chunks: int, solver: Solver = Solver.CPSAT
) -> tuple[str, str, str] | None:
    """Why no model could be built: what is given, the rule, a remedy; None: one may be.

    With z3 every edge has variables of its own.
    """
    every, what, one = chunk_count(setting, chunks), "edges", "an edge"
    ways: Sized = setting.edges
    if solver is Solver.CPSAT:
        ways, what, one = edge_ports(setting.edges), "ports and links", "a port or link"
    if every * len(ways) <= MAX_PAIRS:
        return None
    return (
        f"{every} chunks, {len(ways)} {what}",
        f"have more than {MAX_PAIRS} pairs of a chunk and {one}",
        "ask for fewer chunks, or a smaller fabric",
    )


MOST_MESSAGES = 150_000
"""Of a schedule that is made without a search: more take minutes to lower and to check."""


def too_many_messages(setting: SynthesisSetting) -> bool:
    """Whether every schedule has more messages than may be made.

    Then no frontier seeks one either: over 512 ranks none was found in minutes.
    """
    ranks = setting.fabric.ranks
    return CHUNKS_OF[setting.collective] == "per rank" and ranks * (ranks - 1) > MOST_MESSAGES


def chunk_count(setting: SynthesisSetting, chunks: int) -> int:
    """All chunks, where so many are asked for as the collective counts them."""
    ranks = setting.fabric.ranks
    if CHUNKS_OF[setting.collective] == "per rank":
        return chunks * ranks
    if CHUNKS_OF[setting.collective] == "per pair":
        return chunks * (ranks - 1) * (1 if setting.rooted else ranks)
    return chunks


# What is proved before any search: steps and rates that no schedule is below.


def fewest_steps(setting: SynthesisSetting) -> RateBound:
    """The least steps of any schedule: the longest way that some data has to go."""
    return distance_bound(setting.fabric, setting.collective, setting.root)


def least_rate(
    setting: SynthesisSetting, steps: int | None, watch: StopWatch, whole: StopWatch
) -> RateBound | None:
    """Rounds a chunk that every schedule in so many steps needs (None: in any number).

    When the watch's time is over, a weaker bound than there could be; of a large fabric, when that
    of ``whole`` is over, none.  Symmetries of the fabric
    make the question smaller, and change nothing else, whether schedules may have them or not.
    """
    fixed = [setting.root] if setting.rooted else []
    symmetries = fabric_symmetries(setting.fabric, fixed=fixed, effort=Effort(watch=watch))
    asked = (setting.fabric, setting.collective, steps, setting.root, symmetries, watch, whole)
    try:
        return rate_bound(*asked)
    except OutOfTimeError:
        return None


# Groups of symmetries to try, from the largest of use down to none.


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """A group by its order, and its generators as symmetries of a question's chunks.

    ``apart``: it is none of those that are listed, whose orders say which are tried first.
    """

    order: int
    symmetries: tuple[ScheduleSymmetry, ...] = ()
    apart: bool = False


NO_SYMMETRY = GroupChoice(1)


def rungs(
    setting: SynthesisSetting,
    chunks: int,
    watch: StopWatch | None = None,
    memory: ThresholdMemory | None = None,
    solver: Solver = Solver.CPSAT,
) -> Iterator[GroupChoice]:
    """The groups, the one without symmetries last; it alone if symmetry is not wanted.

    They move the edges and chunks of ``setting.copying``.  Groups that are larger than all that are
    listed come first where these have fewer elements than there are ranks, else after one of the
    second order: what the first finds takes no longer.  Where every search would be too large no
    group is made.
    ``memory``: of other sizes of the same question.
    """
    if not setting.symmetry or too_many_pairs(setting, chunks, solver):
        yield NO_SYMMETRY
        return
    fabric, collective = setting.copying
    largest, memory = 0, memory or ThresholdMemory()
    apart: Iterator[GroupChoice] = iter(())
    for group, symmetries in ladder(fabric, collective, chunks, setting.root, watch, memory):
        if not largest:
            largest = group.order
            apart = _wreaths(setting, chunks, largest, watch, memory)
        if group.order == 1 or largest < fabric.ranks:
            yield from apart
        yield GroupChoice(group.order, symmetries)
        if group.order < largest:
            yield from apart


def _wreaths(
    setting: SynthesisSetting,
    chunks: int,
    largest: int,
    watch: StopWatch | None,
    memory: ThresholdMemory,
) -> Iterator[GroupChoice]:
    """Wreath products with more elements than the largest group that is listed."""
    fabric, collective = setting.copying
    if collective not in WREATHED:
        return
    if memory.wreaths is None:
        found = wreath_products(fabric, watch)
        memory.wreaths = None if watch is not None and watch.expired() else found
    routes = spreads(collective, fabric.ranks, chunks, setting.root)
    for group in memory.wreaths or ():
        if group.order > largest:
            moved = moved_by_routes(fabric, group.generators, routes)
            yield GroupChoice(group.order, moved, apart=True)


# How far a synthesis has come, for whoever shows it.


@dataclass(frozen=True, slots=True)
class SynthesisState:
    """What is tried now; the bound on rounds a chunk in so many steps, and the best one found.

    ``doing``: with which group and class.
    """

    size: ScheduleSize
    bound: Fraction | None = None
    best: Fraction | None = None
    doing: str = ""


Tell = Callable[[SynthesisState], None]


def tell_nobody(_state: SynthesisState) -> None:
    """Where nobody looks on."""
