"""What an MSCCL XML file holds: algorithm, gpus, thread blocks, steps; and the types of steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from p2smt.interop.safe_xml import error_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from p2smt.errors import InputError
    from p2smt.schedules.model import Buffer


class StepType(NamedTuple):
    """What a type of step does; ``adds``: its destination is also a source."""

    receives: bool = False
    reads: bool = False
    writes: bool = False
    sends: bool = False
    adds: bool = False


STEP_TYPES = {
    "s": StepType(reads=True, sends=True),
    "r": StepType(receives=True, writes=True),
    "rcs": StepType(receives=True, writes=True, sends=True),
    "rrc": StepType(receives=True, reads=True, writes=True),
    "rrs": StepType(receives=True, reads=True, sends=True),
    "rrcs": StepType(receives=True, reads=True, writes=True, sends=True),
    "cpy": StepType(reads=True, writes=True),
    "re": StepType(reads=True, writes=True, adds=True),
    "nop": StepType(),
}
"""The types of steps."""


class RawPlace(NamedTuple):
    """A chunk of a buffer of the gpu itself, as a step names it."""

    buffer: Buffer
    start: int


@dataclass(frozen=True, slots=True)
class RawStep:
    """A step: what it reads and stores (None: its type does not), its block and step to wait for.

    announced: ``hasdep``; None where it is missing.
    """

    line: int
    kind: str
    source: RawPlace | None
    target: RawPlace | None
    count: int
    wait: tuple[int, int] | None = None
    announced: bool | None = None


@dataclass(frozen=True, slots=True)
class RawBlock:
    """A thread block."""

    line: int
    number: int
    send: int
    receive: int
    channel: int
    steps: tuple[RawStep, ...] = ()


@dataclass(frozen=True, slots=True)
class RawGpu:
    """A gpu: chunks of input, output and scratch; copies made before its blocks run.

    blocks: by number, in document order.
    """

    line: int
    rank: int
    chunks: tuple[int, int, int]
    copies: tuple[RawStep, ...] = ()
    blocks: Mapping[int, RawBlock] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawAlgo:
    """The file; None: the attribute is missing.

    collective: as written, known or not.
    sized: whether it says which sizes it is for (``minBytes`` and ``maxBytes``).
    gpus: by rank, in document order.
    """

    source: str
    line: int
    name: str
    ranks: int
    collective: str | None
    protocol: str
    channels: int | None
    chunks: int | None
    in_place: bool | None
    out_of_place: bool | None
    sized: bool = False
    gpus: Mapping[int, RawGpu] = field(default_factory=dict)

    def error(self, rule: str, remedy: str, line: int | None = None) -> InputError:
        """An error about a line, that of the algorithm if none is given."""
        return error_at(self.source, line or self.line, rule, remedy)
