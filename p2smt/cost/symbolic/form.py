"""Symbolic costs as exact data: of one way of a step, of a program, and numbers put into them.

A program of steps that each run in one way costs

    c calls + sum_j A_j alpha_j + n sum_steps max_j(l_j beta_j)

with rationals A and l, and for symbols c (seconds of a call), alpha_j (seconds of a message at
level j), beta_j (seconds per byte on one of its ports or links) and n (bytes of the payload).
Where a step may run in several ways, the least of them counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from p2smt.cluster.topology import Topology
from p2smt.cost.symbolic.exact import decimal
from p2smt.errors import InputError, TooLarge

Rationals = tuple[Fraction, ...]
"""A number for each level, from the outermost."""

MAX_FORMS = 4096
"""Most combinations of ways that a program is spelled out in."""


@dataclass(frozen=True, slots=True)
class LinkNumbers:
    """Numbers for the symbols: ``call_s`` is c, ``latency_s`` alpha, ``s_per_byte`` beta."""

    call_s: Fraction
    latency_s: Rationals
    s_per_byte: Rationals

    def __post_init__(self) -> None:
        if min((self.call_s, *self.latency_s, *self.s_per_byte)) < 0:
            raise InputError("numbers of links", "must not be negative")

    @staticmethod
    def of(topology: Topology) -> LinkNumbers:
        """Those of a topology's links, by the first protocol of each; a call costs nothing."""
        first = [level.link.pieces[0] for level in topology.levels]
        return LinkNumbers(
            Fraction(0),
            tuple(decimal(piece.latency_s) for piece in first),
            tuple(1 / decimal(piece.bandwidth_bytes_per_s) for piece in first),
        )


@dataclass(frozen=True, slots=True)
class SymbolicWay:
    """One algorithm with one protocol: A_j and l_j of a step for the whole payload n."""

    algorithm: str
    protocol: str
    latency: Rationals
    loads: Rationals

    def seconds(self, numbers: LinkNumbers, payload_bytes: Fraction) -> Fraction:
        """The step's time: call, latencies and the worst link."""
        wire = max(map(_times, self.loads, numbers.s_per_byte))
        return numbers.call_s + _dot(self.latency, numbers.latency_s) + wire * payload_bytes


@dataclass(frozen=True, slots=True)
class SymbolicStep:
    """A step by its text and the ways to run it; none: nothing is sent, and it costs nothing."""

    text: str
    ways: tuple[SymbolicWay, ...]

    def seconds(self, numbers: LinkNumbers, payload_bytes: Fraction) -> Fraction:
        """The time of the fastest way."""
        return min((way.seconds(numbers, payload_bytes) for way in self.ways), default=Fraction(0))


@dataclass(frozen=True, slots=True)
class CostForm:
    """The cost of a program of which every step runs in one way.

    ``maxima`` has the loads l_j of each step, those of proportional loads added up, in order: two
    programs with equal forms cost the same on every hardware.
    """

    calls: int
    latency: Rationals
    maxima: tuple[Rationals, ...]

    @staticmethod
    def of(ways: Sequence[SymbolicWay], levels: int) -> CostForm:
        """The form of a program whose steps run in these ways, over so many levels."""
        latency = tuple(sum((way.latency[j] for way in ways), Fraction(0)) for j in range(levels))
        return CostForm(len(ways), latency, merged_maxima([way.loads for way in ways]))

    def seconds(self, numbers: LinkNumbers, payload_bytes: Fraction) -> Fraction:
        """The program's time."""
        fixed = self.calls * numbers.call_s + _dot(self.latency, numbers.latency_s)
        return fixed + self.s_per_byte(numbers.s_per_byte) * payload_bytes

    def s_per_byte(self, betas: Rationals) -> Fraction:
        """What each byte of the payload takes, with one beta for each level."""
        return sum((max(map(_times, loads, betas)) for loads in self.maxima), Fraction(0))


def merged_maxima(maxima: Sequence[Rationals]) -> tuple[Rationals, ...]:
    """The terms of a sum of maxima in order, proportional ones added up, zeros left out."""
    found: dict[Rationals, Fraction] = {}
    for loads in maxima:
        total = sum(loads, Fraction(0))
        if total:
            shape = tuple(load / total for load in loads)
            found[shape] = found.get(shape, Fraction(0)) + total
    return tuple(sorted(tuple(part * total for part in shape) for shape, total in found.items()))


@dataclass(frozen=True, slots=True)
class SymbolicCost:
    """What a program costs on a scene: its steps over the named levels."""

    levels: tuple[str, ...]
    steps: tuple[SymbolicStep, ...]

    def seconds(self, numbers: LinkNumbers, payload_bytes: Fraction) -> Fraction:
        """The program's time with numbers put in: exact."""
        return sum((step.seconds(numbers, payload_bytes) for step in self.steps), Fraction(0))

    def form(self) -> CostForm | None:
        """Its form where each step runs in one way; None: in several."""
        ways = [step.ways for step in self.steps if step.ways]
        if any(len(several) > 1 for several in ways):
            return None
        return CostForm.of([one for (one,) in ways], len(self.levels))

    def forms(self) -> tuple[CostForm, ...]:
        """The distinct forms of which the least is its cost: one for each choice of ways.

        Raises:
            TooLarge: these are too many.
        """
        sending = [step.ways for step in self.steps if step.ways]
        count = math.prod(map(len, sending))
        if count > MAX_FORMS:
            rule = f"at most {MAX_FORMS} can be spelled out"
            raise TooLarge(f"{count} choices of algorithms", rule, "name one: --algorithm ring")
        every = (CostForm.of(chosen, len(self.levels)) for chosen in product(*sending))
        return tuple(dict.fromkeys(every))


def _times(a: Fraction, b: Fraction) -> Fraction:
    return a * b


def _dot(a: Rationals, b: Rationals) -> Fraction:
    return sum(map(_times, a, b), Fraction(0))
