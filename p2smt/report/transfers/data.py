"""A transfer as ``transfer --json`` prints it, and the words for where its bound binds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, cast

from p2smt.cluster.hostlist import format_hostlist
from p2smt.report.outputs.shape import range_data
from p2smt.report.transfers.output import (
    ComparedRuleEntry,
    TransferLevelEntry,
    TransferOutput,
    VerifyTransferOutput,
)
from p2smt.result import Status
from p2smt.transfer.answer import ComparedRule, TransferAnswer
from p2smt.transfer.certificate import PortPrices, gap_of
from p2smt.transfer.check import CHECKED, TransferReport
from p2smt.transfer.plan import Replay
from p2smt.transfer.ports import IN, PortMap


def transfer_data(answer: TransferAnswer, compared: Sequence[ComparedRule] = ()) -> TransferOutput:
    """All numbers of the answer."""
    question, found = answer.question, answer.found
    seconds, gap = float(answer.buckets.bandwidth_s), answer.gap
    item_bytes, bound = question.item_bytes, found.certificate.bound_s
    return TransferOutput(
        status=cast(Literal[Status.OPTIMAL, Status.FEASIBLE], answer.status),
        total_s=answer.total_s,
        **range_data(answer.within),
        bandwidth_s=seconds,
        fill_s=answer.fill_s,
        bound_s=float(bound),
        relayed_bound_s=_seconds(answer.relayed_bound_s),
        gap=None if gap is None else float(gap),
        binding=binding_words(question.ports, found.certificate.prices),
        nominal=question.nominal,
        tensors=len(question.before.tensors),
        classes=len(question.moves.classes),
        pieces=len(found.pieces),
        messages=sum(len(piece.edges) for piece in found.pieces),
        sent_bytes=sum(found.replay.sent.values()),
        kept_bytes=sum(question.moves.kept.values()) * item_bytes,
        receives_bytes=max(answer.received.values(), default=0),
        receivers=len(answer.received),
        buckets=answer.buckets.count,
        rounded=answer.rounded,
        staging_bytes=answer.buckets.staging_bytes,
        levels=level_entries(question.ports, found.replay),
        relayed=question.relay,
        compared=[_rule_entry(question.ports, one, bound) for one in compared],
    )


def _rule_entry(ports: PortMap, one: ComparedRule, bound_s: Fraction) -> ComparedRuleEntry:
    return ComparedRuleEntry(
        rule=one.rule,
        seconds=float(one.seconds),
        times_bound=float(one.seconds / bound_s) if bound_s else None,
        port="" if one.port is None else ports.words(one.port),
    )


def _seconds(found: Fraction | None) -> float | None:
    return None if found is None else float(found)


def level_entries(ports: PortMap, replay: Replay) -> Sequence[TransferLevelEntry]:
    """What messages load the levels with, outermost first."""
    crossing = Counter[int]()
    for edge, payload in replay.sent.items():
        for level in {port.level for port in ports.message(*edge)}:
            crossing[level] += payload
    worst: dict[int, tuple[Fraction, str]] = {}
    for port, load in sorted(replay.loads.items(), key=lambda one: (one[0].way != IN, one[0])):
        seconds = Fraction(load) / ports.rate(port)
        if port.level not in worst or seconds > worst[port.level][0]:
            worst[port.level] = (seconds, ports.words(port))
    return [
        TransferLevelEntry(
            level=ports.topology.levels[level].name,
            bytes=crossing[level],
            seconds=float(worst[level][0]),
            port=worst[level][1],
        )
        for level in sorted(worst)
    ]


_MOST, _LONGEST = 3, 60


def binding_words(ports: PortMap, prices: PortPrices) -> str:
    """Where prices are: ``entry of node 8``, ``sending of racks 0-3``, ``ports inside node 2``."""
    entities: dict[tuple[str, str], set[int]] = defaultdict(set)
    names = ports.topology.names
    node = names[ports.network] if ports.network >= 0 else "node"
    for port in prices:
        between = "entry of" if port.way == IN else "sending of"
        if port.level < ports.network:
            entities[between, names[port.level]].add(port.entity)
        else:
            what = between if port.level == ports.network else "ports inside"
            entities[what, node].add(ports.node_of(port))
    return " and ".join(
        f"{what} {nodes_text(ports, sorted(found))}"
        if name == node
        else f"{what} {name}{'s' * (len(found) > 1)} {numbers_text(sorted(found))}"
        for (what, name), found in entities.items()
    )


def nodes_text(ports: PortMap, nodes: Sequence[int]) -> str:
    """``node 8``, ``nodes 0-3``, or hosts by name where the topology names them."""
    if ports.topology.hosts is not None and ports.network >= 0:
        shown = format_hostlist([ports.name(ports.network, node) for node in nodes])
        return shown if len(shown) <= _LONGEST else f"{len(nodes)} hosts"
    name = ports.topology.levels[ports.network].name if ports.network >= 0 else "node"
    return f"{name}{'s' * (len(nodes) > 1)} {numbers_text(nodes)}"


def numbers_text(numbers: Sequence[int]) -> str:
    """Ascending numbers as runs, ``0-3, 8``; of many runs the first ones."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [f"{a}" if a == b else f"{a}-{b}" for a, b in runs[:_MOST]]
    return ", ".join([*shown, *([".."] if len(runs) > _MOST else [])])


def checked_transfer_data(report: TransferReport) -> VerifyTransferOutput:
    """The verdict as data."""
    gap = None
    if report.times is not None and report.bound_s is not None:
        gap = gap_of(report.times.bandwidth_s, report.bound_s)
    moves = None if report.question is None else report.question.moves
    return VerifyTransferOutput(
        checked=CHECKED,
        not_checked=[],
        verdict="valid" if report.valid else "invalid",
        faults=report.faults,
        bandwidth_s=None if report.times is None else float(report.times.bandwidth_s),
        bound_s=None if report.bound_s is None else float(report.bound_s),
        gap=None if gap is None else float(gap),
        classes=(len(moves.classes) or None) if moves is not None else None,
    )
