"""What is asked of a synthesis: a collective over a fabric, in steps, rounds and chunks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.collectives.contract import RULES, MadeOf
from p2smt.errors import InputError
from p2smt.problems.edge_ways import EdgeRow
from p2smt.problems.schedule import check_steps

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


def collective_named(text: str) -> str:
    """The collective of that name, such as ``all-gather``, ``allgather`` or ``all_gather``.

    Raises:
        InputError: schedules are synthesized for none of that name.
    """
    found = text.replace("-", "").replace("_", "")
    for known in NAMES.values():
        if known.replace("_", "") == found:
            return known
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
