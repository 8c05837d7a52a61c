"""Checks a certificate: everything is derived again from the fabric that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from p2smt.synthesis.certificate import plain
from p2smt.synthesis.certificate.certificate import (
    BoundedCollective,
    BoundKind,
    ScheduleCertificate,
    demands,
    is_demanded,
)
from p2smt.synthesis.certificate.duality import NoProof, cheapest, fault_of_generator, proved_bound

MAX_BITS = 4000
"""Of a proved bound, above and below the stroke: a longer one is rounded down."""
_DECIMALS = 10**12


@dataclass(frozen=True, slots=True)
class CertificateReport:
    """The verdict on a certificate: the bound that it proves (None: none), and what is wrong."""

    claim: ScheduleCertificate
    proved: Fraction | None
    faults: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether the claim is proved."""
        return not self.faults


def check_certificate(claim: ScheduleCertificate) -> CertificateReport:
    """Derive the bound of a certificate again; the first fault is enough."""
    try:
        proved = derived_bound(claim)
    except NoProof as fault:
        return CertificateReport(claim, None, (str(fault),))
    faults = []
    if claim.bound > proved:
        faults.append(
            f"the bound {plain.words(claim.bound)} is claimed, and {plain.words(proved)} is proved"
        )
    if proved == 0:
        faults.append("nothing is proved: every schedule has that much")
    return CertificateReport(claim, proved, tuple(faults))


def derived_bound(claim: ScheduleCertificate) -> Fraction:
    """The bound that a certificate proves, whatever it claims.

    Raises:
        NoProof: it proves none; the text says why.
    """
    groups = []
    if claim.kind is not BoundKind.DISTANCE:
        groups = demands(claim.collective, claim.fabric.ranks, claim.root)
    for number, one in enumerate(claim.generators, 1):
        if fault := fault_of_generator(claim.fabric, one, groups):
            raise NoProof(f"generator {number} {fault}")
    if fault := next(_misfits(claim), None):
        raise NoProof(fault)
    if claim.kind is BoundKind.DISTANCE:
        return Fraction(_distance(claim))
    return _rounded(proved_bound(claim, groups))


def _rounded(bound: Fraction) -> Fraction:
    """A bound that can be written down: itself, or a little less."""
    if max(bound.numerator.bit_length(), bound.denominator.bit_length()) <= MAX_BITS:
        return bound
    return Fraction(bound.numerator * _DECIMALS // bound.denominator, _DECIMALS)


def checked_of(claim: ScheduleCertificate) -> tuple[str, ...]:
    """What the check of a certificate holds against it, in words."""
    generators = ("generators",) if claim.generators else ()
    return (*generators, "distance" if claim.kind is BoundKind.DISTANCE else "prices", "bound")


def _misfits(claim: ScheduleCertificate) -> Iterator[str]:
    """What the kind of the bound does not go with."""
    kind, prices, ranks = claim.kind, claim.prices, claim.fabric.ranks
    priced = bool(prices.capacities or prices.shares or prices.cuts or prices.partitions)
    if (kind is BoundKind.DISTANCE) != (prices.pair is not None):
        yield "a pair of ranks goes with bounds by distance, and they with one"
    if kind is BoundKind.DISTANCE and (priced or claim.generators):
        yield "a bound by distance has no prices and no generators"
    if kind is not BoundKind.FLOW and claim.steps is not None:
        yield f"a bound by {kind} holds for every number of steps"
    if kind not in (BoundKind.FLOW, BoundKind.DISTANCE) and (prices.shares or claim.generators):
        yield f"a bound by {kind} has no shares and no generators"
    if kind is BoundKind.DEGREE and any(
        len(cut.ranks) not in (1, ranks - 1) for cut in prices.cuts
    ):
        yield "a bound by degree has cuts around single ranks only"
    if kind in (BoundKind.DEGREE, BoundKind.CUT) and prices.partitions:
        yield f"a bound by {kind} has no partitions"
    if kind is BoundKind.GOSSIP and claim.collective is not BoundedCollective.ALL_REDUCE:
        yield "a bound by gossip is for all-reduce"


def _distance(claim: ScheduleCertificate) -> int:
    """The steps between the two ranks of the claim, whose data is asked for."""
    pair, fabric = claim.prices.pair, claim.fabric
    if pair is None or not is_demanded(claim.collective, fabric.ranks, claim.root, pair):
        raise NoProof("nothing has to go between the ranks of the pair")
    source, target = pair
    way = cheapest(fabric.ranks, fabric.edges, source, lambda _e, _s: 1, None)[target]
    if way is None:
        raise NoProof(f"rank {target} cannot be reached from rank {source} at all")
    return way


def claim_words(claim: ScheduleCertificate, name: str | None = None) -> str:
    """The claim as a sentence; ``name``: of the fabric, if not as the certificate calls it."""
    root = "" if claim.root is None else f" with root {claim.root}"
    fabric = (
        f"{name or claim.fabric.name} ({claim.fabric.ranks} ranks, {len(claim.fabric.edges)} edges)"
    )
    scene = f"{claim.collective}{root} on {fabric}"
    if claim.kind is BoundKind.DISTANCE:
        least = f"{claim.bound} step{'s' * (claim.bound != 1)}"
        return f"{scene}: every schedule has {least} or more, by {claim.kind}"
    steps = "any number of steps" if claim.steps is None else f"{claim.steps} steps"
    if claim.steps == 1:
        steps = "1 step"
    return (
        f"{scene}: every schedule of {steps} has R/C of {claim.bound} or more, rounds a chunk "
        f"{_each(claim.collective)}, by {claim.kind}"
    )


def scope_words() -> str:
    """What a bound by prices, or by distance, does not speak of."""
    return (
        "for every number of chunks and every schedule that does not mix chunks; switches that "
        "copy or add are outside"
    )


def _each(collective: BoundedCollective) -> str:
    own = BoundedCollective
    if collective in (own.ALL_GATHER, own.REDUCE_SCATTER):
        return "of a rank"
    return "of a pair" if collective in (own.ALL_TO_ALL, own.SCATTER, own.GATHER) else "in all"
