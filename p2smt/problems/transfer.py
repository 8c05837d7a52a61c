"""How fast classes of data can reach those who need them, port by port, as a linear program.

A class is a number of bytes with devices that hold it and devices that need it.  Classes, and
the devices of a class in a node, that symmetries make of each other are one row with a count: full
problems have counts of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from p2smt.errors import InputError


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
