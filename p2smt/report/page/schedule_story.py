"""The story of a schedule: which links carry messages in which round, chunk by chunk.

Rounds are by need: a message is in the round after the last one that must arrive before it is
sent, by the orders that the file itself has (threads, waits, counters, packets).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.api.files import read_schedule
from p2smt.api.verify import verify
from p2smt.report.page.reading import Names
from p2smt.report.page.story import Bar, Bars, Drawn, Figure, Section, Story, Table, clean, sentence
from p2smt.schedules.index import Index, index_of
from p2smt.schedules.model import Schedule, Span, Step
from p2smt.schedules.order.happens_before import packet_pairs
from p2smt.schedules.verify.report import Report

MOST_LINKS, MOST_ROUNDS, MOST_SQUARES, SQUARE_RANKS = 400, 200, 8, 32
MOST_CHUNK_ENTRIES = 60_000
VERIFIED = 3000
"""Schedules of at most so many steps are verified for the page."""


@dataclass(frozen=True, slots=True)
class SentChunks:
    """Chunks that go from one rank to another in a round, which counts from 1."""

    source: int
    target: int
    round: int
    chunks: tuple[int, ...]


def schedule_story(path: str, names: Names) -> Story:
    """The story of a schedule in a file."""
    commands = names.commands(f"p2smt verify {clean(path)}")
    return told_schedule(read_schedule(path), commands)


def told_schedule(schedule: Schedule, commands: tuple[str, ...]) -> Story:
    """The story of a schedule."""
    sent, stuck = messages_of(schedule)
    rounds = max((one.round for one in sent), default=0)
    report = verify(schedule) if len(schedule.steps) <= VERIFIED else None
    carried = Counter((one.source, one.target) for one in sent)
    most = max(carried.values(), default=0)
    name = clean(schedule.name)
    warnings = [("Stuck", f"{stuck} steps wait for each other, or for nothing")] if stuck else []
    collective = clean(schedule.contract.collective)
    return Story(
        title=f"{name}: {collective} of {schedule.ranks} ranks",
        verdict=_verdict(report),
        figures=(
            Figure(f"{rounds:,}", "rounds", "messages that wait for each other, one after another"),
            Figure(f"{len(sent):,}", "messages", f"over {len(carried):,} links"),
            Figure(f"{most:,}", "messages of the busiest link"),
        ),
        sections=(_heat(schedule, sent, rounds), _links(carried)) if sent else (),
        warnings=tuple(warnings),
        rests=(
            ("Rounds", "by what must arrive before a message is sent, not by a clock"),
            ("Chunks", "numbered as in the buffer that they are first read from"),
            *((("Format", clean(schedule.form)),)),
        ),
        commands=commands,
        lacks=("times: `p2smt verify FILE --cost SIZE -t TOPOLOGY` predicts them",),
        kind="report of a schedule",
    )


def _verdict(report: Report | None) -> str:
    if report is None:
        return "Not verified for this page, as it has many steps: p2smt verify does."
    if report.verdict.value == "valid":
        return "Valid: every interleaving ends with what the collective asks for."
    found = next((sentence(one.message) for one in report.violations), "")
    return f"{report.verdict.value.capitalize()}. {found}".strip()


# Messages and their rounds.


def messages_of(schedule: Schedule) -> tuple[list[SentChunks], int]:
    """What ranks send each other, and how many steps never come."""
    index = index_of(schedule)
    sender = {
        receive: send
        for connection, receives in index.receives.items()
        for send, receive in zip(index.sends.get(connection, ()), receives, strict=False)
    }
    depth = _depths(index, sender)
    found: list[SentChunks] = []
    memo: dict[int, tuple[int, ...]] = {}
    for number, step in enumerate(schedule.steps):
        if number not in depth:
            continue
        chunks = _chunks(schedule.steps, number, sender, memo)
        for source, target in _pairs(step):
            found.append(SentChunks(source, target, depth[number] + 1, chunks))
    return found, len(schedule.steps) - len(depth)


def _pairs(step: Step) -> Iterator[tuple[int, int]]:
    """From whom to whom a step moves data."""
    if step.send is not None:
        yield step.send.source, step.send.target
    for rank in dict.fromkeys(span.rank for span in step.writes if span.rank != step.rank):
        yield step.rank, rank
    for rank in dict.fromkeys(span.rank for span in step.reads if span.rank != step.rank):
        yield rank, step.rank


def _chunks(
    steps: Sequence[Step], number: int, sender: dict[int, int], memo: dict[int, tuple[int, ...]]
) -> tuple[int, ...]:
    """The chunks that a step handles: those it reads, else those of the message it passes on."""
    chain = [number]
    while (before := sender.get(chain[-1])) is not None and not steps[chain[-1]].reads:
        if chain[-1] in memo or before in chain:
            break
        chain.append(before)
    for at in reversed(chain):
        if at not in memo:
            own = steps[at].reads[:1] or steps[at].writes[:1]
            passed = memo.get(sender.get(at, -1), ())
            memo[at] = _listed(own[0]) if steps[at].reads or (not passed and own) else passed
    return memo[number]


def _listed(span: Span) -> tuple[int, ...]:
    return tuple(range(span.start, span.start + span.count))


def _depths(index: Index, sender: dict[int, int]) -> dict[int, int]:
    """Of each step that comes, how many messages one after another come before it."""
    steps = index.schedule.steps
    before: dict[int, set[int]] = {at: set(index.before(at)) for at in range(len(steps))}
    for receives in index.receives.values():
        for receive in receives:  # what never comes waits for itself
            before[receive].add(sender.get(receive, receive))
    for writer, reader in packet_pairs(index):
        before[reader].add(writer)
    for counter, waits in index.awaits.items():
        posts = index.posts.get(counter, ())
        missing = index.initial(counter)
        for place, wait in enumerate(waits[missing:]):
            before[wait].update(posts[place : place + 1] or [wait])
    for group in index.barriers:
        together = set().union(*(before[at] for at in group)) - set(group)
        for at in group:
            before[at] = together
    return _longest(steps, before)


def _longest(steps: Sequence[Step], before: dict[int, set[int]]) -> dict[int, int]:
    after: dict[int, list[int]] = defaultdict(list)
    left = {at: len(those) for at, those in before.items()}
    for at, those in before.items():
        for one in those:
            after[one].append(at)
    depth: dict[int, int] = {}
    told: dict[int, int] = {}  # messages before what other ranks hear of a step
    ready = [at for at, count in left.items() if not count]
    for at in ready:  # grows as steps become ready
        step = steps[at]
        own = [one for one in before[at] if steps[one].rank == step.rank]
        here = (depth[one] + _pulls(steps[one]) for one in own)
        heard = (told[one] for one in before[at] if steps[one].rank != step.rank)
        depth[at] = max((*here, *heard), default=0)
        told[at] = max((depth[at] + _pushes(step), *(told[one] for one in own)))
        for later in after[at]:
            left[later] -= 1
            if not left[later]:
                ready.append(later)
    return depth


def _pulls(step: Step) -> bool:
    """Whether it reads what another rank has, so that its own rank goes on with a message."""
    return any(span.rank != step.rank for span in step.reads)


def _pushes(step: Step) -> bool:
    """Whether it sends, or writes where another rank has its buffers."""
    return step.send is not None or any(span.rank != step.rank for span in step.writes)


# Pictures.


def _heat(schedule: Schedule, sent: Sequence[SentChunks], rounds: int) -> Section:
    """Links by rounds; few rounds of few ranks as squares, very many links by their senders."""
    links = sorted({(one.source, one.target) for one in sent})
    squares = rounds <= MOST_SQUARES and schedule.ranks <= SQUARE_RANKS
    senders = not squares and len(links) > MOST_LINKS
    rows = sorted({(source, -1) for source, _ in links}) if senders else links
    place = {row: at for at, row in enumerate(rows)}
    width = -(-rounds // MOST_ROUNDS) if rounds > MOST_ROUNDS else 1
    cells: dict[tuple[int, int], list[SentChunks]] = defaultdict(list)
    for one in sent:
        row = (one.source, -1) if senders else (one.source, one.target)
        cells[place[row], (one.round - 1) // width].append(one)
    chunks = sorted({chunk for one in sent for chunk in one.chunks})
    whole = sum(len(one.chunks) for one in sent) <= MOST_CHUNK_ENTRIES
    names = [str(source) if senders else f"{source}\u2192{target}" for source, target in rows]
    last = -(-rounds // width)
    columns = [f"round {at + 1}" if width == 1 else f"from {at * width + 1}" for at in range(last)]
    data = {
        "rows": names,
        "columns": columns,
        "what": "sender" if senders else "link",
        "cells": [
            [row, column, len(those), sorted({c for m in those for c in m.chunks}) if whole else []]
            for (row, column), those in sorted(cells.items())
        ],
        "chunks": chunks if whole else [],
        "ranks": schedule.ranks,
        "squares": last if squares else 0,
        "ends": [list(row) for row in rows] if squares else [],
    }
    busy = len(cells) / (len(rows) * last)
    lead = f"Of all {data['what']}s and rounds {busy:.0%} carry a message."
    grid = Drawn("heat", "Messages by link and round", data)
    key = "The fuller, the darker." + " Senders stand down, receivers across." * squares
    return Section("Who sends when", lead, (grid,), key=key)


def _links(carried: Counter[tuple[int, int]]) -> Section:
    shown = carried.most_common(12)
    bars = tuple(
        Bar(f"{source}\u2192{target}", count, f"{count:,}") for (source, target), count in shown
    )
    least, most = min(carried.values()), max(carried.values())
    rows = tuple((f"{a}\u2192{b}", f"{count:,}") for (a, b), count in carried.most_common(400))
    table = Table(("link", ">messages"), rows)
    if least == most:
        lead = f"Each of the {len(carried):,} links carries {most:,}."
        return Section("Which links carry most", lead, (), (table,))
    picture = Bars("messages of the fullest links", bars)
    lead = f"Links carry {least:,} to {most:,} messages."
    return Section("Which links carry most", lead, (picture,), (table,))
