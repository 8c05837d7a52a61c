"""What `transfer`, and `verify` of its plan, tell a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from p2smt.report.screen import ScreenBlock, full_width, room, screen
from p2smt.report.tables import table, table_lines
from p2smt.report.transfers.data import checked_transfer_data, transfer_data
from p2smt.report.transfers.output import ComparedRuleEntry, TransferOutput
from p2smt.result import Status
from p2smt.transfer.answer import ComparedRule, TransferAnswer
from p2smt.transfer.check import CHECKED, TransferReport
from p2smt.units import counted, format_bytes, format_time, format_time_range, plain

_WIDE, _ALL = 120, 1000
_LOWER = 0.999
"""So much lower another bound is told."""


def transfer_screen(
    answer: TransferAnswer, below: Sequence[str], compared: Sequence[ComparedRule] = ()
) -> list[str]:
    """The first screen: the verdict, where time and bytes go, and what comes next."""
    data = transfer_data(answer, compared)
    first, last = full_width([verdict_text(data)]), full_width(below)
    return [*first, *screen(_blocks(data), room(last, first)), *last]


def verdict_text(data: TransferOutput) -> str:
    """Such as ``optimal: 352.8 ms, bound 352.8 ms (gap 0 %) by entry of node 8``."""
    words = verdict_words(
        data.status, data.bandwidth_s, data.bound_s, data.gap, data.binding, bool(data.messages)
    )
    return words + (WITHOUT_RELAYS if relay_words(data.relayed_bound_s, data.bound_s) else "")


WITHOUT_RELAYS = "; of plans without relays"


def relay_words(relayed_s: float | None, bound_s: float) -> str:
    """What plans that borrow cards of neighbours, not sought, may take; empty: no less."""
    if relayed_s is None or relayed_s >= bound_s * _LOWER:
        return ""
    what = "plans that borrow cards of neighbours, which --relay seeks,"
    return f"{what} take {format_time(relayed_s)} or more"


def verdict_words(
    status: Status, seconds: float, bound_s: float, gap: float | None, binding: str, moves: bool
) -> str:
    """The verdict of its numbers; ``moves``: whether anything does."""
    if not moves:
        return f"{status.value}: nothing moves, every device has what it needs"
    if gap is None:
        return f"{status.value}: {format_time(seconds)}, nothing is proved"
    by = f" by {binding}" if binding else ""
    least = "gap 0 %" if status is Status.OPTIMAL else "gap below 0.001 %"
    said = f"gap {plain(100 * gap, 2)} %" if gap >= 1e-5 else least
    return f"{status.value}: {format_time(seconds)}, bound {format_time(bound_s)} ({said}){by}"


def _blocks(data: TransferOutput) -> Iterator[ScreenBlock]:
    rates = "nominal rates" if data.nominal else "the rates that sends reach"
    yield ScreenBlock(
        "time",
        (
            f"{format_time(data.bandwidth_s)} for the bytes at {rates}; latencies and filling "
            f"add {format_time(data.fill_s)} in chunks of 4 MiB",
            *_within(data),
        ),
        8,
    )
    yield ScreenBlock(
        "levels",
        tuple(
            f"{one.level}: {format_bytes(one.bytes)}, {format_time(one.seconds)} at {one.port}"
            for one in data.levels
        ),
        7,
        4,
    )
    yield ScreenBlock(
        "moved",
        (
            f"{format_bytes(data.sent_bytes)} to {counted(data.receivers, 'device')}; "
            f"{format_bytes(data.kept_bytes)} stay where they are",
        ),
        6,
    )
    yield ScreenBlock(
        "memory",
        (
            f"a device receives up to {format_bytes(data.receives_bytes)} and stages up to "
            f"{format_bytes(data.staging_bytes)}, in {counted(data.buckets, 'bucket')}",
            *(("optimal in one bucket: the gap is of whole elements alone",) * data.rounded),
        ),
        5,
    )
    if relays := relay_words(data.relayed_bound_s, data.bound_s):
        yield ScreenBlock("relays", (relays,), 6)
    if data.compared:
        whose = " of plans that relay" if data.relayed else ""
        rules = [_rule_text(one, whose) for one in data.compared]
        rules.append("rules written anew from their sources; no tool was run")
        yield ScreenBlock("others", tuple(rules), 7, 8)
    yield ScreenBlock(
        "plan",
        (
            f"{counted(data.tensors, 'tensor')} in {counted(data.classes, 'class', 'classes')}, "
            f"{counted(data.pieces, 'piece')}, {counted(data.messages, 'message')}",
        ),
        5,
    )


def _within(data: TransferOutput) -> Iterator[str]:
    """All seconds with their range, and what it rests on."""
    if data.range_s is not None:
        ends = format_time_range(data.range_s[0], data.range_s[1], data.total_s)
        yield f"in all {format_time(data.total_s)}, {ends}: {data.basis}"


def _rule_text(one: ComparedRuleEntry, relays: str) -> str:
    """Such as ``awex: 1.03 x the bound, 363.4 ms, port 0 of node 9, in``."""
    times = "" if one.times_bound is None else f"{one.times_bound:,.2f} x the bound{relays}, "
    return f"{one.rule}: {times}{format_time(one.seconds)}{f', {one.port}' if one.port else ''}"


def transfer_details(
    answer: TransferAnswer, below: Sequence[str], compared: Sequence[ComparedRule] = ()
) -> list[str]:
    """The screen, then every class and the busiest pairs."""
    question, found = answer.question, answer.found
    pieces = Counter(piece.number for piece in found.pieces)
    rows = [
        [
            f"{number}",
            _devices(one.holders),
            _devices(one.needers),
            format_bytes(one.elements * question.item_bytes),
            f"{pieces[number]}",
        ]
        for number, one in enumerate(question.moves.classes)
    ]
    columns = ("class", "held by", "needed by", ">bytes", ">pieces")
    title = "elements with equal holders and equal needers"
    made = table(title, columns, rows)
    data = transfer_data(answer, compared)
    whole = (replace(block, most=_ALL) for block in _blocks(data))
    head = [*full_width([verdict_text(data)]), *screen(whole, _ALL)]
    return [*head, "", *table_lines(made, _WIDE), *below]


def _devices(devices: Sequence[int]) -> str:
    shown = ",".join(map(str, devices[:8]))
    return shown if len(devices) <= 8 else f"{shown},.. ({len(devices)})"


def checked_transfer_lines(report: TransferReport) -> Iterator[str]:
    """The verdict on a plan, then what is wrong or what was held against it."""
    data = checked_transfer_data(report)
    if not report.valid:
        yield f"invalid: {counted(len(report.faults), 'fault')}"
        for fault in report.faults:
            yield f"    {fault}"
        return
    seconds, bound = data.bandwidth_s or 0.0, data.bound_s or 0.0
    proved = "nothing is proved"
    if data.gap is not None:
        proved = f"the prices prove a bound of {format_time(bound)}"
    yield f"valid: every element arrives once, in {format_time(seconds)}; {proved}"
    yield f"checked: {', '.join(CHECKED)}"
