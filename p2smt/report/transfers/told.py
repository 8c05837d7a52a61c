"""What is told of a transfer, an answer or a file: pairs, hops, and when ports are busy."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from p2smt.errors import InputError
from p2smt.report.transfers.data import binding_words
from p2smt.report.transfers.screens import WITHOUT_RELAYS, relay_words, verdict_words
from p2smt.result import Status
from p2smt.transfer.answer import TransferAnswer
from p2smt.transfer.buckets import BucketTimes, arrivals
from p2smt.transfer.certificate import PortPrices, gap_of
from p2smt.transfer.check import check_transfer
from p2smt.transfer.file_model import TransferModel
from p2smt.transfer.plan import Edge, Replay, TreePiece
from p2smt.transfer.plan_file import pieces_of, prices_of
from p2smt.transfer.ports import Port
from p2smt.transfer.question import TransferQuestion


@dataclass(frozen=True)
class ToldTransfer:
    """A plan with its times; the ports of its question tell nodes and rates."""

    question: TransferQuestion
    pieces: Sequence[TreePiece]
    replay: Replay
    times: BucketTimes
    fill_s: float
    bound_s: Fraction
    prices: PortPrices
    status: Status
    relayed_bound_s: float | None = None

    @staticmethod
    def of_answer(answer: TransferAnswer) -> ToldTransfer:
        """That of an answer."""
        found = answer.found
        return ToldTransfer(
            answer.question,
            found.pieces,
            found.replay,
            answer.buckets,
            answer.fill_s,
            found.certificate.bound_s,
            found.certificate.prices,
            answer.status,
            None if answer.relayed_bound_s is None else float(answer.relayed_bound_s),
        )

    @staticmethod
    def of_plan(model: TransferModel, source: str) -> ToldTransfer:
        """That of a plan file.

        Raises:
            InputError: the plan is not right.
        """
        made = check_transfer(model, source)
        if made.faults or made.question is None or made.replay is None or made.times is None:
            fault = next(iter(made.faults), "")
            raise InputError(source, f"is not right ({fault})", "p2smt verify says more")
        return ToldTransfer(
            made.question,
            pieces_of(model),
            made.replay,
            made.times,
            model.fill_s,
            Fraction(model.bound_s),
            prices_of(model),
            Status(model.status),
            model.relayed_bound_s,
        )

    @property
    def total_s(self) -> float:
        """Seconds of the bytes, with latencies and filling."""
        return float(self.times.bandwidth_s) + self.fill_s

    @property
    def sent_bytes(self) -> int:
        """Of all messages."""
        return sum(self.replay.sent.values())

    @property
    def verdict(self) -> str:
        """Such as ``optimal: 352.8 ms, bound 352.8 ms (gap 0 %) by entry of node 8``."""
        gap = gap_of(self.times.bandwidth_s, self.bound_s)
        words = verdict_words(
            self.status,
            float(self.times.bandwidth_s),
            float(self.bound_s),
            None if gap is None else float(gap),
            binding_words(self.question.ports, self.prices),
            bool(self.replay.sent),
        )
        return words + (WITHOUT_RELAYS if self.relays else "")

    @property
    def relays(self) -> str:
        """What plans with relays, which were not asked for, may take; empty: no less."""
        return relay_words(self.relayed_bound_s, float(self.bound_s))

    @cached_property
    def seconds(self) -> Mapping[Port, float]:
        """Of every port that is used, the longest first."""
        ports = self.question.ports
        found = {port: float(load / ports.rate(port)) for port, load in self.replay.loads.items()}
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))

    @cached_property
    def hops(self) -> Mapping[Edge, int]:
        """Of every pair of devices the least number of messages on the way up to this one."""
        found: dict[Edge, int] = {}
        for piece in self.pieces:
            came: dict[int, int] = {}
            for source, target in piece.edges:
                came[target] = came.get(source, 0) + 1
                known = found.get((source, target), came[target])
                found[source, target] = min(known, came[target])
        return found

    @cached_property
    def between(self) -> Mapping[Edge, tuple[int, int]]:
        """Pairs of nodes that send over the network: bytes, and the first hop."""
        node, found = self.question.ports.node, defaultdict[Edge, list[tuple[int, int]]](list)
        for (source, target), payload in self.replay.sent.items():
            if node(source) != node(target):
                one = payload, self.hops[source, target]
                found[node(source), node(target)].append(one)
        return {pair: _joined(every) for pair, every in sorted(found.items())}

    @cached_property
    def inside(self) -> tuple[int, Mapping[Edge, tuple[int, int]]]:
        """The node in which most is sent, and the pairs there; no pairs: none sends inside."""
        node, found = self.question.ports.node, Counter[int]()
        for (source, target), payload in self.replay.sent.items():
            if node(source) == node(target):
                found[node(source)] += payload
        busiest = max(found, key=lambda one: (found[one], -one), default=0)
        pairs = {
            edge: (payload, self.hops[edge])
            for edge, payload in sorted(self.replay.sent.items())
            if node(edge[0]) == node(edge[1]) == busiest
        }
        return busiest, pairs

    @cached_property
    def starts(self) -> Mapping[Port, float]:
        """Seconds in a bucket after which a port passes its first byte."""
        ports = self.question.ports
        known = arrivals(ports, self.pieces, self.question.item_bytes, self.times.count)
        found: dict[Port, float] = {}
        for edge, start in known.items():
            for port in ports.message(*edge):
                found[port] = min(found.get(port, start), start)
        return found


def _joined(every: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(payload for payload, _ in every), min(hop for _, hop in every)
