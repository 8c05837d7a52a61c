"""The answer to a transfer: the plan, its time with latencies, and its proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from p2smt.collectives.names import RequestKind
from p2smt.cost.accuracy import (
    TEXTBOOK,
    PriceBasis,
    PricedStep,
    PriceRange,
    outermost_crossed,
    range_of_others,
)
from p2smt.result import Status
from p2smt.transfer.bound import relayed_bound_s
from p2smt.transfer.buckets import BucketTimes, bucket_count, bucket_times, fill_s
from p2smt.transfer.certificate import OPTIMAL_WITHIN, gap_of
from p2smt.transfer.ports import Port
from p2smt.transfer.question import TransferQuestion
from p2smt.transfer.search import PlannedMoves, plan_moves


@dataclass(frozen=True)
class TransferAnswer:
    """A plan, and what it comes to."""

    question: TransferQuestion
    found: PlannedMoves

    @cached_property
    def buckets(self) -> BucketTimes:
        """As many buckets as the cap on staging asks for, and the time of their bytes.

        Raises:
            InputError: no number of buckets keeps to the cap.
        """
        asked, pieces = self.question, self.found.pieces
        count = 1
        if asked.memory_bytes is not None:
            count = bucket_count(pieces, asked.item_bytes, asked.memory_bytes)
        return bucket_times(pieces, asked.ports, asked.item_bytes, count)

    @property
    def gap(self) -> Fraction | None:
        """How much longer than the bound the bytes take, as a part of it; None: none is proved."""
        return gap_of(self.buckets.bandwidth_s, self.found.certificate.bound_s)

    @property
    def rounded(self) -> bool:
        """Whether the plan is optimal in one bucket, so that whole elements alone cost a gap."""
        return self.found.optimal and self.status is not Status.OPTIMAL

    @property
    def status(self) -> Status:
        """OPTIMAL by the certificate alone, else FEASIBLE."""
        best = self.gap is not None and self.gap <= OPTIMAL_WITHIN
        return Status.OPTIMAL if best else Status.FEASIBLE

    @cached_property
    def relayed_bound_s(self) -> Fraction | None:
        """Seconds that no plan is below, not even one whose devices pass on for their neighbours.

        None: the time ran out, or the plan is one of these itself.
        """
        asked = self.question
        if asked.relay:
            return None
        known = self.found.certificate
        return relayed_bound_s(asked.moves, asked.ports, asked.item_bytes, known, asked.limits)

    @cached_property
    def fill_s(self) -> float:
        """Seconds that latencies and the filling of the longest chain add, in every bucket."""
        asked, count = self.question, self.buckets.count
        return fill_s(asked.ports, self.found.pieces, asked.item_bytes, count)

    @property
    def total_s(self) -> float:
        """Seconds of the bytes, with latencies and filling."""
        return float(self.buckets.bandwidth_s) + self.fill_s

    @property
    def within(self) -> PriceRange | None:
        """The range of these seconds, as of sends of the most that two devices exchange; None:
        nothing moves."""
        return _range(self)

    @cached_property
    def received(self) -> Mapping[int, int]:
        """Bytes that each device gets."""
        found = Counter[int]()
        for (_, target), payload in self.found.replay.sent.items():
            found[target] += payload
        return found


def _range(answer: TransferAnswer) -> PriceRange | None:
    topology, sent = answer.question.topology, answer.found.replay.sent
    level = outermost_crossed(topology, np.array([*sent])) if sent else None
    if level is None:
        return None
    step = PricedStep(RequestKind.SEND.value, max(sent.values()), answer.total_s, level, 0)
    found = range_of_others(topology, step)
    if answer.question.nominal:
        return replace(found, basis=PriceBasis.ASSUMED, why=TEXTBOOK)
    return found


@dataclass(frozen=True)
class ComparedRule:
    """What the rule of another tool takes for the same transfer.

    ``port``: the busiest one; None: nothing moves.
    """

    rule: str
    seconds: Fraction
    port: Port | None


def find_transfer(question: TransferQuestion) -> TransferAnswer:
    """The fastest plan found, with the best bound that is proved."""
    found = plan_moves(question.moves, question.ports, question.item_bytes, question.limits)
    return TransferAnswer(question, found)
