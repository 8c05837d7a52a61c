"""The story of a transfer: where the time goes, who sends to whom, which ports are busiest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from p2smt.files.validation import validated
from p2smt.report.page.cluster_map import View, cluster_section
from p2smt.report.page.reading import Names
from p2smt.report.page.story import (
    Bar,
    BarPart,
    Bars,
    Drawn,
    Figure,
    Section,
    Stack,
    Story,
    Table,
    clean,
    sentence,
)
from p2smt.report.page.words import format_time3
from p2smt.report.transfers.data import level_entries
from p2smt.report.transfers.told import ToldTransfer
from p2smt.transfer.file_model import TransferModel
from p2smt.transfer.plan import Edge
from p2smt.transfer.plan_file import read_transfer
from p2smt.units import counted, format_bytes

MOST_PORTS, MOST_LINES, MOST_ROWS = 12, 400, 400


def transfer_story(data: Mapping[str, Any], path: str, names: Names) -> Story:
    """The story of a plan file.

    Raises:
        InputError: it is no such file, or its plan is not right.
    """
    source = f"plan {path[:200]!r}"
    model = validated(TransferModel, data, source)
    told = ToldTransfer.of_plan(model, source)
    question = told.question
    topology = names.of(question.topology)
    views = tuple(
        View(((name, len(devices)),), tuple(devices))
        for name, devices in (
            ("rank before", question.sources),
            ("rank after", question.targets),
        )
    )
    made = (f"{model.command} -o {clean(path)}",) if model.command else ()
    rates = "nominal rates" if question.nominal else "the rates that sends reach"
    return Story(
        title=_title(told),
        verdict=sentence(f"{told.verdict}."),
        figures=_figures(told),
        sections=(
            _time(told),
            _pairs(told),
            _ports(told),
            _levels(told),
            cluster_section(topology, views),
        ),
        rests=(
            *((("Relays", told.relays),) if told.relays else ()),
            ("Communication", f"ports at {rates} of {clean(topology.name)}"),
        ),
        sources=names.sources(question.topology),
        commands=names.commands(*made, f"p2smt verify {clean(path)}", f"p2smt run {clean(path)}"),
        lacks=() if made else ("the command: keep it beside the file",),
        kind="report of a transfer",
    )


def transfer_pair_story(first: str, own: Story, second: str) -> Story:
    """The second file's own story, with its time, bytes and staging beside those of the first.

    Raises:
        InputError: a plan is not right.
    """
    before, after = (
        ToldTransfer.of_plan(read_transfer(path), f"plan {path[:200]!r}")
        for path in (first, second)
    )
    rows = (
        ("time", format_time3(before.total_s), format_time3(after.total_s)),
        ("bound", *(format_time3(float(one.bound_s)) for one in (before, after))),
        ("sent", *(format_bytes(one.sent_bytes) for one in (before, after))),
        ("staged", *(format_bytes(one.times.staging_bytes) for one in (before, after))),
        ("buckets", *(f"{one.times.count:,}" for one in (before, after))),
    )
    lead = f"The second takes {rows[0][2]}, the first {rows[0][1]}."
    table = Table(("", ">first", ">second"), rows)
    return replace(
        own,
        title=f"{own.title}, against another",
        verdict=sentence(f"{lead} {own.verdict}"),
        sections=(Section("What changes", sentence(lead), (), (table,)), *own.sections),
        kind="report of a comparison",
    )


def _title(told: ToldTransfer) -> str:
    question = told.question
    sides = f"{counted(len(question.sources), 'rank')} to {len(question.targets)}"
    return clean(f"{counted(len(question.before.tensors), 'tensor')}: {sides}", 120)


def _figures(told: ToldTransfer) -> tuple[Figure, ...]:
    bound = float(told.bound_s)
    whose = "no plan without relays" if told.relays else "no plan"
    note = f"{whose} moves the bytes in less than {format_time3(bound)}" if bound else ""
    buckets = counted(told.times.count, "bucket")
    return (
        Figure(format_time3(told.total_s), "to move the model", note),
        Figure(format_bytes(told.sent_bytes), "sent", counted(len(told.pieces), "piece")),
        Figure(format_bytes(told.times.staging_bytes), "staged by a device, at most", buckets),
    )


def _time(told: ToldTransfer) -> Section:
    seconds, bound = float(told.times.bandwidth_s), float(told.bound_s)
    parts = (
        BarPart("bytes at the busiest port", seconds, format_time3(seconds)),
        BarPart("latencies and filling", told.fill_s, format_time3(told.fill_s)),
    )
    marks = ((bound, f"bound {format_time3(bound)}"),) if bound else ()
    whole = told.total_s or 1.0
    bar = Stack("time of the transfer", parts, whole, format_time3(told.total_s), marks)
    count = told.times.count
    lead = "All is sent in one bucket."
    if count > 1:
        lead = f"{count:,} buckets, each with the same part of every piece, take it in turn."
    return Section("Where the time goes", lead, (bar,))


def _pairs(told: ToldTransfer) -> Section:
    """Pairs of nodes, or of devices where all are in one node, by the hop of their messages."""
    node = told.question.ports.node
    network = bool(told.between)
    what = told.question.topology.names[told.question.ports.network] if network else "device"
    cells, carried = Counter[tuple[Edge, int]](), Counter[Edge]()
    for piece in told.pieces:
        came: dict[int, int] = {}
        for source, target in piece.edges:
            came[target] = came.get(source, 0) + 1
            pair = (node(source), node(target)) if network else (source, target)
            if not network or pair[0] != pair[1]:
                cells[pair, came[target]] += 1
                carried[pair] += (piece.stop - piece.start) * told.question.item_bytes
    if not carried:
        return Section("Who sends to whom", "Nothing is sent.")
    (first, most), *_ = carried.most_common(1)
    lead = f"Most goes from {what} {first[0]} to {first[1]}: {format_bytes(most)}."
    rows = tuple(
        (_pair(pair), format_bytes(payload), str(min(hop for one, hop in cells if one == pair)))
        for pair, payload in carried.most_common(MOST_ROWS)
    )
    table = Table((f"{what}s", ">bytes", ">first hop"), rows)
    return Section("Who sends to whom", sentence(lead), _heat(what, cells), (table,))


def _heat(what: str, cells: Counter[tuple[Edge, int]]) -> tuple[Drawn, ...]:
    """Messages by pair and hop, unless there are very many pairs."""
    pairs = sorted({pair for pair, _ in cells})
    if len(pairs) > MOST_LINES:
        return ()
    place = {pair: at for at, pair in enumerate(pairs)}
    data = {
        "rows": [_pair(pair) for pair in pairs],
        "columns": [f"hop {hop + 1}" for hop in range(max(hop for _, hop in cells))],
        "what": f"pair of {what}s",
        "cells": [[place[pair], hop - 1, n, []] for (pair, hop), n in sorted(cells.items())],
        "chunks": [],
        "ranks": 0,
        "squares": 0,
        "ends": [],
    }
    return (Drawn("heat", f"Messages by pair of {what}s, and by hop of their way", data),)


def _pair(pair: Edge) -> str:
    return f"{pair[0]}\u2192{pair[1]}"


def _ports(told: ToldTransfer) -> Section:
    ports, prices = told.question.ports, told.prices
    bars, rows = list[Bar](), list[tuple[str, ...]]()
    for port, seconds in list(told.seconds.items())[:MOST_ROWS]:
        name, share = clean(ports.words(port)), format_bytes(told.replay.loads[port])
        rows.append((name, share, format_time3(seconds), "yes" if port in prices else "no"))
        if len(bars) < MOST_PORTS:
            bars.append(Bar(name, seconds, f"{format_time3(seconds)}, {share}", port in prices))
    lead = "No port is used."
    if rows:
        lead = f"The busiest is {rows[0][0]}: {rows[0][2]} for {rows[0][1]}."
    table = Table(("port", ">bytes", ">time", "has a price in the proof"), tuple(rows))
    picture = (Bars("time of the busiest ports; marked: on which the bound rests", tuple(bars)),)
    return Section("Busiest ports", sentence(lead), picture if bars else (), (table,))


def _levels(told: ToldTransfer) -> Section:
    entries = level_entries(told.question.ports, told.replay)
    bars = tuple(
        Bar(clean(one.level), one.bytes, f"{format_bytes(one.bytes)}, {format_time3(one.seconds)}")
        for one in entries
    )
    lead = "Nothing crosses a level."
    if entries:
        slow = max(entries, key=lambda one: one.seconds)
        lead = f"The {clean(slow.level)} level takes longest, {format_time3(slow.seconds)}."
    picture = (Bars("bytes of all messages that cross each level", bars),) if bars else ()
    return Section("By level", sentence(lead), picture)
