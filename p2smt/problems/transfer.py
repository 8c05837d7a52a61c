"""How fast classes of data can reach those who need them, port by port, as a linear program.

A class is a number of bytes with devices that hold it and devices that need it.  Classes, and
the devices of a class in a node, that symmetries make of each other are one row with a count: full
problems have counts of 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from p2smt.errors import InputError, TooLarge


@dataclass(frozen=True, slots=True)
class ClassMember:
    """``count`` like devices that hold or need a class in a node; ports by number.

    ``out``, ``into``: between nodes; ``give``, ``take``: inside the node.
    """

    count: int
    needs: bool
    out: tuple[int, ...]
    into: tuple[int, ...]
    give: tuple[int, ...]
    take: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClassPart:
    """``count`` like nodes with holders or needers of a class."""

    count: int
    members: tuple[ClassMember, ...]

    @property
    def held(self) -> bool:
        """Whether a device of it holds the class."""
        return any(not member.needs for member in self.members)

    @property
    def needed(self) -> bool:
        """Whether a device of it needs the class."""
        return any(member.needs for member in self.members)


@dataclass(frozen=True, slots=True)
class ClassRow:
    """``count`` like classes of so many bytes each."""

    count: int
    payload_bytes: int
    parts: tuple[ClassPart, ...]

    @property
    def nodes(self) -> int:
        """Nodes with holders or needers."""
        return sum(part.count for part in self.parts)


@dataclass(frozen=True, slots=True)
class TransferProblem:
    """The least time of the bandwidth part; ``ports`` are (how many alike, bytes per second)."""

    ports: tuple[tuple[int, Fraction], ...]
    classes: tuple[ClassRow, ...]

    def __post_init__(self) -> None:
        if any(count < 1 or rate <= 0 for count, rate in self.ports):
            raise InputError("a port without a rate", "must pass more than 0 bytes per second")
        for row in self.classes:
            if row.payload_bytes < 1 or not any(part.held for part in row.parts):
                raise InputError("a class", "must have bytes and a holder")


@dataclass(frozen=True, slots=True)
class FlowShares:
    """What part of a class one device of a member gets over the network, and how often it sends it.

    ``entering``: 0 to 1; ``sending``: over the network; ``giving``: inside its node.
    """

    entering: float
    sending: float
    giving: float


@dataclass(frozen=True, slots=True)
class TransferFlows:
    """An optimum as a solver's floats: seconds, shares by class, part and member, and prices.

    ``prices`` are seconds per byte of one port of each kind: nothing is proved by them as they are.
    """

    seconds: float
    shares: tuple[tuple[tuple[FlowShares, ...], ...], ...]
    prices: tuple[float, ...]


# Whole pieces, each along one tree.


MAX_TICKS = 2**50
MAX_MEMBERS = 20_000


@dataclass(frozen=True, slots=True)
class PieceProblem:
    """Pieces of classes that go along one tree each, in whole numbers; all counts are 1.

    Times are in ticks of ``tick_s`` seconds, rounded up; ``at_most``: no port takes more of them.
    """

    rates: tuple[Fraction, ...]
    pieces: tuple[ClassRow, ...]
    tick_s: Fraction
    at_most: int | None = None

    def __post_init__(self) -> None:
        if any(rate <= 0 for rate in self.rates) or self.tick_s <= 0:
            raise InputError("a port without a rate", "must pass more than 0 bytes per second")
        for row in self.pieces:
            counts = {row.count, *(part.count for part in row.parts)}
            counts |= {member.count for part in row.parts for member in part.members}
            if counts != {1} or not any(part.held for part in row.parts):
                raise InputError("a piece", "must stand for one alone, and have a holder")

    def check_size(self) -> None:
        """That a solver may be asked.

        Raises:
            TooLarge: pieces have too many devices in all.
        """
        if sum(len(part.members) for row in self.pieces for part in row.parts) > MAX_MEMBERS:
            raise TooLarge("these pieces", f"have more than {MAX_MEMBERS} devices in all")

    def ticks(self, port: int, piece: int) -> int:
        """What one copy of a piece takes at a port."""
        return math.ceil(self.pieces[piece].payload_bytes / self.rates[port] / self.tick_s)


def tick_of(rates: Sequence[Fraction], pieces: Sequence[ClassRow]) -> Fraction:
    """Seconds of a tick: an exact one where sums of ticks stay small enough, else a short one."""
    numerators = math.lcm(*(rate.numerator for rate in rates))
    exact = Fraction(math.gcd(*(rate.denominator for rate in rates)), numerators)
    most = sum(
        row.payload_bytes * sum(len(part.members) for part in row.parts) for row in pieces
    ) / min(rates)
    return max(exact, most / MAX_TICKS)


@dataclass(frozen=True, slots=True)
class PieceSends:
    """Whether a piece enters a device over the network, how often it sends it, and gives it on.

    ``sending``: over the network; ``giving``: inside its node.
    """

    enters: bool
    sending: int
    giving: int


PieceFlows = tuple[tuple[tuple[PieceSends, ...], ...], ...]
"""By piece, part and member."""
