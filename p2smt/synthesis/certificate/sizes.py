"""The least time of every payload in a range: bounds on rates, priced, as a value and a JSON file.

A schedule of S steps, R rounds and C chunks takes alpha S + beta n R/C seconds for n bytes.  With a
bound on R/C for each S up to K, and one for any number of steps, no schedule takes less than

    L(n) = min over S <= K of alpha S + beta n bound(S), and alpha (K + 1) + beta n bound(any).

L, and the least time U of some schedules, are the lower envelopes of lines: their ratio is largest
where one line of either follows another, so that finitely many fractions prove every payload.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from p2smt.synthesis.certificate import plain
from p2smt.synthesis.certificate.certificate import (
    MAX_STEPS,
    BoundedCollective,
    BoundKind,
    CertifiedFabric,
    ScheduleCertificate,
    certificate_text,
)
from p2smt.synthesis.certificate.check import check_certificate

KIND = "size-certificate"
SCHEMA_VERSION = 1
MAX_PAYLOAD = 2**62
MAX_COUNT = 2**31
"""Of rounds and chunks."""
MAX_SECONDS = 10**9
"""Of a step, and of a byte."""


def byte_s(collective: BoundedCollective, ranks: int, unit: Fraction) -> Fraction:
    """Seconds of a byte of the payload where R/C is 1; ``unit``: bytes per second of a unit.

    The payload is the whole vector per device, so that chunks counted per rank or pair are so many
    parts of it as there are ranks.
    """
    own = BoundedCollective
    whole = collective in (own.ALL_REDUCE, own.BROADCAST, own.REDUCE)
    return 1 / (unit * (1 if whole else ranks))


@dataclass(frozen=True, slots=True)
class TimeLine:
    """Seconds of n bytes: ``at_zero_s`` + n ``per_byte_s``; ``number``: which of its kind it is."""

    number: int
    at_zero_s: Fraction
    per_byte_s: Fraction

    def at(self, payload: Fraction) -> Fraction:
        """Seconds of so many bytes."""
        return self.at_zero_s + payload * self.per_byte_s


@dataclass(frozen=True, slots=True)
class EnvelopePiece:
    """The line that is least from ``low`` to ``high`` bytes."""

    line: TimeLine
    low: Fraction
    high: Fraction


def lower_envelope(
    lines: Sequence[TimeLine], low: Fraction, high: Fraction
) -> tuple[EnvelopePiece, ...]:
    """Which line is least where between two payloads; of equal ones the less steep, the first."""
    found: list[EnvelopePiece] = []
    start = low
    line = min(lines, key=lambda one: (one.at(low), one.per_byte_s, one.number))
    while True:
        flatter = [one for one in lines if one.per_byte_s < line.per_byte_s]
        ends = [(_crossing(line, one), one.per_byte_s, one.number, one) for one in flatter]
        following = min(ends, default=None)
        if following is None or following[0] >= high:
            return (*found, EnvelopePiece(line, start, high))
        found.append(EnvelopePiece(line, start, following[0]))
        start, line = following[0], following[3]


def _crossing(line: TimeLine, flatter: TimeLine) -> Fraction:
    return (flatter.at_zero_s - line.at_zero_s) / (line.per_byte_s - flatter.per_byte_s)


@dataclass(frozen=True, slots=True)
class SizeCorner:
    """A payload at which a line of either envelope ends: the schedules' least time, the bound."""

    payload: Fraction
    time_s: Fraction
    bound_s: Fraction

    @property
    def ratio(self) -> Fraction:
        """The time in units of the bound."""
        return self.time_s / self.bound_s


def corners_of(
    upper: Sequence[EnvelopePiece], lower: Sequence[EnvelopePiece]
) -> tuple[SizeCorner, ...]:
    """The ends of all pieces, ascending.

    Between two of them both times are linear, and so their ratio is no larger than at these.
    """
    every = sorted({end for one in (*upper, *lower) for end in (one.low, one.high)})
    return tuple(SizeCorner(at, _value(upper, at), _value(lower, at)) for at in every)


def _value(pieces: Sequence[EnvelopePiece], at: Fraction) -> Fraction:
    return next(one.line.at(at) for one in pieces if one.low <= at <= one.high)


@dataclass(frozen=True, slots=True)
class SteppedBound:
    """The bound on R/C of schedules of ``steps`` steps (None: of any number)."""

    steps: int | None
    certificate: ScheduleCertificate


SizeTriple = tuple[int, int, int]
"""Steps, rounds and chunks of a schedule."""


@dataclass(frozen=True, slots=True)
class SizeCertificate:
    """The claim: from ``low`` to ``high`` bytes ``schedules`` take at most ``ratio`` times L.

    ``alpha_s``: seconds of a step; ``beta_s``: of a byte of the payload where R/C is 1.  ``least``
    says how many steps every schedule has, ``bounds`` follow from these on, that of any number of
    steps last.  That there are such schedules their files show.
    """

    alpha_s: Fraction
    beta_s: Fraction
    low: int
    high: int
    schedules: tuple[SizeTriple, ...]
    least: ScheduleCertificate
    bounds: tuple[SteppedBound, ...]
    corners: tuple[SizeCorner, ...] = ()
    ratio: Fraction = Fraction(0)

    @property
    def fabric(self) -> CertifiedFabric:
        """The fabric of its bounds."""
        return self.least.fabric

    def times(self) -> tuple[EnvelopePiece, ...]:
        """The schedules' least times, the lines numbered as these."""
        lines = [
            TimeLine(at, self.alpha_s * steps, self.beta_s * Fraction(rounds, chunks))
            for at, (steps, rounds, chunks) in enumerate(self.schedules)
        ]
        return lower_envelope(lines, Fraction(self.low), Fraction(self.high))

    def least_times(self) -> tuple[EnvelopePiece, ...]:
        """The bound L, the lines numbered by their steps."""
        most = max((one.steps for one in self.bounds if one.steps is not None), default=None)
        beyond = int(self.least.bound) if most is None else most + 1
        steps = [one.steps or beyond for one in self.bounds]
        lines = [
            TimeLine(count, self.alpha_s * count, self.beta_s * one.certificate.bound)
            for count, one in zip(steps, self.bounds, strict=True)
        ]
        return lower_envelope(lines, Fraction(self.low), Fraction(self.high))

    def corner_at(self, payload: Fraction) -> SizeCorner:
        """The least times at a payload in the range."""
        times, least = _value(self.times(), payload), _value(self.least_times(), payload)
        return SizeCorner(payload, times, least)

    def proving(self, corners: tuple[SizeCorner, ...]) -> SizeCertificate:
        """The same claim with its corners and the largest ratio at them."""
        return replace(self, corners=corners, ratio=max(one.ratio for one in corners))

    def data(self) -> dict[str, Any]:
        """The certificate as plain data."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "alpha_s": str(self.alpha_s),
            "beta_s": str(self.beta_s),
            "from_bytes": self.low,
            "to_bytes": self.high,
            "schedules": plain.data_of(self.schedules),
            "least_steps": self.least.data(),
            "bounds": [
                {"steps": one.steps, "certificate": one.certificate.data()} for one in self.bounds
            ],
            "corners": [
                {"bytes": str(c.payload), "time_s": str(c.time_s), "bound_s": str(c.bound_s)}
                for c in self.corners
            ],
            "ratio": str(self.ratio),
        }

    def text(self) -> str:
        """The certificate as the text of its file."""
        return json.dumps(self.data()) + "\n"

    @staticmethod
    def load(path: str | os.PathLike[str]) -> SizeCertificate:
        """What the certificate in a file claims; the claim is not checked.

        Raises:
            InputError: the file cannot be read, or is no certificate.
        """
        source = f"certificate {str(path)[:200]!r}"
        return SizeCertificate.of_text(certificate_text(path, source), source)

    @staticmethod
    def of_text(text: str, source: str = "certificate") -> SizeCertificate:
        """The claim in the text of a file; ``source`` names it in messages.

        Raises:
            InputError: it is no certificate.
        """
        return SizeCertificate.of_data(plain.parsed(text, source), source)

    @staticmethod
    def of_data(data: Any, source: str = "certificate") -> SizeCertificate:
        """The claim in the data of a file.

        Raises:
            InputError: it is no certificate.
        """
        return _certificate(data, source)


_KEYS = (
    *("schema_version", "kind", "alpha_s", "beta_s", "from_bytes", "to_bytes", "schedules"),
    *("least_steps", "bounds", "corners", "ratio"),
)


def _certificate(data: Any, source: str) -> SizeCertificate:
    version, kind, alpha, beta, low, high, schedules, least, bounds, corners, ratio = plain.keys(
        data, _KEYS, source
    )
    if type(version) is not int or version != SCHEMA_VERSION:
        raise plain.refused(source, "schema_version", f"must be {SCHEMA_VERSION}")
    if kind != KIND:
        raise plain.refused(source, "kind", f"must be {KIND}")

    def triple(one: Any) -> SizeTriple:
        steps, rounds, chunks = (
            plain.whole(number, MAX_COUNT, source, "a number of a schedule")
            for number in plain.row(one, 3, source, "a schedule")
        )
        if not 1 <= steps <= rounds or chunks < 1:
            raise plain.refused(source, f"schedule {one}", "must have a round a step, and a chunk")
        return steps, rounds, chunks

    def bound(one: Any) -> SteppedBound:
        steps, certificate = plain.keys(one, ("steps", "certificate"), source)
        number = plain.open_number(steps, MAX_STEPS, source, "steps")
        return SteppedBound(number, ScheduleCertificate.of_data(certificate, source))

    def corner(one: Any) -> SizeCorner:
        found = plain.keys(one, ("bytes", "time_s", "bound_s"), source)
        payload, time_s, bound_s = (plain.fraction(text, source, "a corner") for text in found)
        return SizeCorner(payload, time_s, bound_s)

    least_bytes, most_bytes = (
        plain.whole(one, MAX_PAYLOAD, source, "a payload") for one in (low, high)
    )
    if not 1 <= least_bytes <= most_bytes:
        raise plain.refused(source, "from_bytes", "must be 1 or more, and at most to_bytes")
    found = SizeCertificate(
        plain.fraction(alpha, source, "alpha_s"),
        plain.fraction(beta, source, "beta_s"),
        least_bytes,
        most_bytes,
        plain.items(schedules, triple, source, "schedules"),
        ScheduleCertificate.of_data(least, source),
        plain.items(bounds, bound, source, "bounds"),
        plain.items(corners, corner, source, "corners"),
        plain.fraction(ratio, source, "ratio"),
    )
    if not (0 < len(found.schedules) < MAX_STEPS and found.bounds and found.beta_s):
        raise plain.refused(source, "a claim", "needs a schedule, a bound, and beta_s above 0")
    if max(found.alpha_s, found.beta_s) > MAX_SECONDS:
        raise plain.refused(source, "alpha_s and beta_s", f"must be at most {MAX_SECONDS} seconds")
    return found


# The check: every number is derived again, and must be the one that is claimed.


@dataclass(frozen=True, slots=True)
class SizeReport:
    """The verdict on a certificate, and what is wrong."""

    claim: SizeCertificate
    faults: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether the claim is proved."""
        return not self.faults


def check_sizes(claim: SizeCertificate) -> SizeReport:
    """Derive bounds, envelopes and their ratio again; the first fault is enough."""
    fault = next(_faults(claim), None)
    return SizeReport(claim, () if fault is None else (fault,))


def _faults(claim: SizeCertificate) -> Iterator[str]:
    yield from _faults_of_bound(claim, "the least number of steps", claim.least)
    if claim.least.kind is not BoundKind.DISTANCE:
        yield "the least number of steps is no bound by distance"
    first, last = int(claim.least.bound), len(claim.bounds) - 1
    for number, one in enumerate(claim.bounds):
        steps = None if number == last else first + number
        if one.steps != steps:
            yield f"bound {number + 1} must be for {steps or 'any number of'} steps"
        yield from _faults_of_bound(claim, f"bound {number + 1}", one.certificate)
        if one.certificate.kind is BoundKind.DISTANCE:
            yield f"bound {number + 1} is one on steps, not on R/C"
        if one.certificate.steps not in (None, steps):
            yield f"bound {number + 1} is proved for {one.certificate.steps} steps"
    bounds = {one.steps: one.certificate.bound for one in claim.bounds}
    for triple in claim.schedules:
        least = bounds.get(triple[0], bounds[None])
        if triple[0] < first or Fraction(*triple[1:]) < least:
            yield f"no schedule is {triple}: it is below the bounds"
    corners = corners_of(claim.times(), claim.least_times())
    if corners != claim.corners:
        yield "the corners are not those of the schedules' times and of the bounds"
    if claim.ratio != max(one.ratio for one in corners):
        yield "the ratio is not the largest of time and bound"


def _faults_of_bound(
    claim: SizeCertificate, what: str, certificate: ScheduleCertificate
) -> Iterator[str]:
    asked = (claim.fabric, claim.least.collective, claim.least.root)
    if (certificate.fabric, certificate.collective, certificate.root) != asked:
        yield f"{what} is about another question"
    report = check_certificate(certificate)
    yield from (f"{what}: {fault}" for fault in report.faults)
    if report.valid and report.proved != certificate.bound:
        yield f"{what}: {plain.words(certificate.bound)} is claimed, and more is proved"
