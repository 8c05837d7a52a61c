"""The first screen of `plan` and `estimate`: what to run and what is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from p2smt.api.efficiencies import dispatcher_notes, known_of, launcher_notes
from p2smt.api.planning import Planned, Recommended, TrainerOptions, Why
from p2smt.cluster.hostlist import format_hostlist
from p2smt.cost.accuracy import PriceRange
from p2smt.report.screen import COLUMNS, LINES, MUST, ScreenBlock, plan_words, screen, wrapped
from p2smt.report.training.anchor_words import anchor_words, anchored_time
from p2smt.report.training.run_words import (
    apart_texts,
    attention_lines,
    batch_words,
    cluster_words,
    headline,
    known_words,
    model_words,
    overlap_lines,
    proof_words,
    short_strategy,
    stack_lines,
    teraflops,
    time_parts,
    unmeasured_words,
    untold_words,
)
from p2smt.result import SAME, Status
from p2smt.training.iteration import estimate_range
from p2smt.training.measured.anchor import Anchor
from p2smt.training.measured.prediction_errors import iteration_range
from p2smt.training.memory_verdict import USABLE_PERCENT, MemoryVerdict, usable_bytes
from p2smt.training.prediction import RunEstimate
from p2smt.training.search.hosts.hosted_answer import HostsNearBest
from p2smt.training.search.known import Known
from p2smt.training.search.plan_answer import NearStrategies, PlanAnswer, Shortfall
from p2smt.training.search.question import PlanQuestion, Prices
from p2smt.training.strategy import PEAK_OF, strategy_text
from p2smt.units import format_gigabytes, format_time, format_time_range, plain

if TYPE_CHECKING:
    from p2smt.api.host_plan import PlannedOnHosts

_SHOWN_ROWS = 3
_MOVED = 0.1
"""Of a range's width its ends are rounded by at most so much: what lies in it is told by it."""


# `estimate`.


def estimate_screen(
    found: RunEstimate,
    helps: Sequence[str] = (),
    below: Sequence[str] = (),
    own: Anchor | None = None,
) -> list[str]:
    """A run: its time with range and basis, rate, memory, and what is known of it.

    ``below``: lines of others, for which there must be room.  ``own``: what was measured here.
    """
    within = _range_of(found)
    measured = () if own is None else anchor_words(own, f"this one {anchored_time(own, found)}")
    known = known_of(found)
    return screen(
        (
            *_asked(found),
            ScreenBlock("time", (time_words(within),), MUST),
            ScreenBlock("", (_parts(found),), 3, 2),
            ScreenBlock("measured", measured, 9, 6),
            ScreenBlock("rate", (rate_words(found),), 8),
            ScreenBlock("memory", (memory_words(found), *helps), MUST, 4),
            *_unmeasured(found),
            *_known_blocks(known),
            ScreenBlock("assumed", tuple(_assumed(found)), 3, 3),
            ScreenBlock("more", ("--details: time, memory and communication by their parts",), 1),
        ),
        _room(below),
    )


def _asked(found: RunEstimate) -> Iterator[ScreenBlock]:
    """The strategy, and what is trained by it."""
    run = found.run
    where = f"{run.model.name} on {cluster_words(found.topology)}"
    yield ScreenBlock("run", (_short(found),), MUST)
    yield ScreenBlock("", (f"{where}, {batch_words(run.batch)}",), 9, 2)
    yield ScreenBlock("hosts", tuple(_hosts(found)), 9, 2)


def _hosts(found: RunEstimate) -> Iterator[str]:
    """How many of the hosts have ranks, and which have none; of named hosts alone."""
    if (lie := found.on_hosts) is not None:
        idle = f", idle: {format_hostlist(lie.idle)}" if lie.idle else ""
        yield f"{len(lie.hosts)} of {len(lie.listed)}{idle}"


def time_words(within: PriceRange) -> str:
    """Time of an iteration with its range and what that rests on: ``15.8 s, 12 to 20 s: ..``."""
    return f"{_span(within)}: {within.why}"


def _span(within: PriceRange) -> str:
    ends = format_time_range(*(within.low_s, within.high_s, within.seconds), moved=_MOVED)
    return f"{format_time(within.seconds)}, {ends}"


def rate_words(found: RunEstimate) -> str:
    """What comes out of it."""
    said = found.prediction
    flops = f"{teraflops(said.device_flops_per_s)} a device"
    strategy = found.run.strategy
    peak = f" of the {PEAK_OF[strategy.dtype]} peak" if strategy.low_precision else ""
    return f"{found.tokens_per_s:,.0f} tokens/s, {flops}, MFU {said.utilization:.1%}{peak}"


def memory_words(found: RunEstimate) -> str:
    """Whether it fits: ``fits``, ``tight`` or ``does not fit``, of what, and by how much."""
    needed, given = found.prediction.memory.total, found.capacity_bytes
    whole = found.topology.known_device.memory_bytes
    part = f"{USABLE_PERCENT} % of {format_gigabytes(whole)}"
    part = part if given == usable_bytes(whole) else "as given"
    of = f"{format_gigabytes(needed)} of {format_gigabytes(given)} usable ({part})"
    after = {
        MemoryVerdict.NOT: f", {format_gigabytes(found.missing_bytes)} over",
        MemoryVerdict.TIGHT: ", may run out",
    }
    return f"{found.memory_verdict.value}: {of}{after.get(found.memory_verdict, '')}"


def _unmeasured(found: RunEstimate) -> Iterator[ScreenBlock]:
    """What it rests on that nobody measured, or that has to be built."""
    words = unmeasured_words(found)
    yield ScreenBlock("caution", (words,) * bool(words), 8)
    yield ScreenBlock("caution", dispatcher_notes(found), 8)


def _parts(found: RunEstimate) -> str:
    whole = found.iteration_s
    shares = ((part.name, part.seconds / whole) for part in time_parts(found.prediction))
    return ", ".join(f"{name} {share:.1%}" for name, share in shares if share >= 5e-4)


def _known_blocks(known: Known) -> Iterator[ScreenBlock]:
    """Where it lies among the runs that the constants were fitted to, and the nearest of these."""
    label = "known" if known.inside else "outside"
    yield ScreenBlock(label, (known_words(known),), 7)
    if known.nearest is not None:
        same = "the same" if not known.apart else f"at distance {plain(known.apart, 2)}"
        yield ScreenBlock("", (f"nearest: {known.nearest.name}, {same}",), 4, 2)


def _assumed(found: RunEstimate) -> Iterator[str]:
    stack = stack_lines(found.topology, found.efficiency)
    for line in (*overlap_lines(found), *stack, *attention_lines(found)):
        yield line.removeprefix("assumed: ")  # the label says it


# `plan --hosts`.


def hosts_screen(
    found: PlannedOnHosts,
    below: Sequence[str] = (),
    own: Anchor | None = None,
    file: str | None = None,
) -> list[str]:
    """What to run on which of the hosts, the proof, and what a round batch would take.

    ``below``: lines of others, for which there must be room.  ``own``: what was measured here.
    ``file``: the plan was written to it.
    """
    room = _room(below)
    answer = found.answer
    stopped = ScreenBlock("stopped", ("interrupted: the best so far",) * answer.interrupted, MUST)
    proof = ScreenBlock("proof", (proof_words(answer),), 9, 2)
    if found.estimate is None:
        return screen((stopped, proof, *_lacking(answer.shortfall)), room)
    run, near = found.recommended, answer.near
    one = found.estimate if run is None else run.estimate
    notes = launcher_notes(one.topology, one.efficiency, answer.question.launcher)
    why = ScreenBlock("why", (), 9)
    listing: tuple[ScreenBlock, ...] = ()
    fastest: tuple[ScreenBlock, ...] = ()
    if run is not None and near is not None:
        why = ScreenBlock("why", (_why(found.listed, run, answer.status),), 9, 2)
        listing = tuple(_near(found.listed, near, run))
        fastest = (_fastest_block(found.listed[0], one),) * (run.number > 1)
    blocks = (
        stopped,
        *_asked(one),
        why,
        ScreenBlock("time", (time_words(_range_of(one)),), MUST),
        *_measured_block(found.listed, run, own),
        ScreenBlock("rate", (rate_words(one),), 8),
        ScreenBlock("memory", (memory_words(one),), MUST, 2),
        *_known_blocks(known_of(one)),
        *fastest,
        replace(proof, label="") if fastest else proof,
        *_assumed_order(answer.question),
        ScreenBlock("batch", tuple(_round(found)), 8, 4),
        *_overlap(one),
        ScreenBlock("caution", notes, 5),
        *listing,
        ScreenBlock("next", (f"{plan_words(file)} --to slurm; all tables: --details",), 5, 2),
    )
    return screen(blocks, room)


def _round(found: PlannedOnHosts) -> Iterator[str]:
    if (other := found.round) is not None and found.estimate is not None:
        slower = other.tokens_per_s / found.estimate.tokens_per_s - 1
        rate = f"{other.tokens_per_s:,.0f} tokens/s ({slower:+.1%})"
        hosts = "; ".join(_hosts(other))
        yield f"{other.run.batch.sequences:,}: {rate}, {_short(other)}; hosts {hosts}"


# `plan`.


def plan_screen(
    found: Planned,
    below: Sequence[str] = (),
    own: Anchor | None = None,
    file: str | None = None,
) -> list[str]:
    """What to run, the model's fastest beside it, the proof, and what else is as good.

    ``below``: lines of others, for which there must be room.  ``own``: what was measured here.
    """
    stopped = "no strategy had been found" if found.plan is None else "the best found so far"
    head = ScreenBlock("stopped", (f"interrupted: {stopped}",) * found.interrupted, MUST, 1)
    run = found.recommended
    return screen(
        (head, *(_nothing(found.answer) if run is None else _found(found, run, own, file))),
        _room(below),
    )


def _room(below: Sequence[str]) -> int:
    return LINES - sum(len(wrapped(line, COLUMNS)) for line in below)


def _found(
    found: Planned, run: Recommended, own: Anchor | None, file: str | None
) -> Iterator[ScreenBlock]:
    estimate, answer = run.estimate, found.answer
    within = _range_of(estimate)
    yield from _asked(estimate)
    yield ScreenBlock("why", (_why(found.listed, run, answer.status),), 9, 2)
    yield ScreenBlock("time", (time_words(within),), MUST)
    yield from _measured_block(found.listed, run, own)
    yield ScreenBlock("rate", (rate_words(estimate),), 8)
    yield ScreenBlock("memory", (memory_words(estimate),), MUST, 2)
    yield from _unmeasured(estimate)
    yield from _known_blocks(run.known)
    if run.number > 1:
        yield from _fastest(found)
    else:
        yield from _proof("proof", answer)
    yield from _assumed_order(answer.question)
    yield from _overlap(estimate)
    question = answer.question
    notes = launcher_notes(question.topology, question.efficiency, question.launcher)
    yield ScreenBlock("caution", notes, 5)
    if answer.near is not None and answer.near.count:
        yield from _near(found.listed, answer.near, run)
    yield ScreenBlock("next", (_next(found.options, answer.question.launcher, file),), 5, 2)


def _overlap(found: RunEstimate) -> Iterator[ScreenBlock]:
    """What the time of a plan assumes of how its collectives run."""
    lines = (line.removeprefix("assumed: ") for line in overlap_lines(found))
    yield ScreenBlock("assumed", tuple(lines), 4, 2)


def _assumed_order(question: PlanQuestion) -> Iterator[ScreenBlock]:
    """That measured runs do not say which strategies are faster, where they do not."""
    if untold := untold_words(question.efficiency):
        yield ScreenBlock("caution", (f"{untold}; this order is assumed",), 8, 3)


def _measured_block(
    listed: Sequence[RunEstimate], run: Recommended | None, own: Anchor | None
) -> Iterator[ScreenBlock]:
    """The best, and the one to run where that is another, as they will be here."""
    if own is None or run is None:
        return
    best = f"best {anchored_time(own, listed[0])}"
    both = best if run.number == 1 else f"{best}; this one {anchored_time(own, run.estimate)}"
    yield ScreenBlock("measured", anchor_words(own, both), 9, 6)


def _why(listed: Sequence[RunEstimate], run: Recommended, status: Status) -> str:
    """Why it is the one to run, and how much slower it is than the fastest, a sequence each."""
    fastest, own = listed[0], listed[run.number - 1]
    if run.number == 1:
        first, near = _fastest_word(status), "of those in its range nearest to a measured run"
        alone = f"{first}: no measured run is like it, or like others in its range"
        said = {Why.NEAREST: f"{first}, and {near}", Why.FASTEST: alone}
        return said.get(run.why, f"picked: {first}")
    share = fastest.run.batch.sequences / own.run.batch.sequences
    own_s = own.iteration_s * share
    slower = f"{own_s / fastest.iteration_s - 1:.1%} slower than the fastest"
    inside = (
        "in its range" if own_s <= _range_of(fastest).high_s * (1 + SAME) else "beyond its range"
    )
    how = "picked" if run.why is Why.PICKED else "nearest to a measured run"
    return f"{how}: {slower}, {inside}"


def _range_of(found: RunEstimate) -> PriceRange:
    return iteration_range(found, estimate_range(found))


def _fastest(found: Planned) -> Iterator[ScreenBlock]:
    """The model's fastest, which is another one."""
    first = found.listed[0]
    yield _fastest_block(first, first)
    yield from _proof("", found.answer)
    if found.known is not None and not found.known.inside:
        yield ScreenBlock("", (known_words(found.known),), 6, 2)


def _fastest_block(one: RunEstimate, chosen: RunEstimate) -> ScreenBlock:
    """The fastest beside the one that is chosen; its rate, too, where it has another batch."""
    words = f"{_span(_range_of(one))}: {_short(one)}"
    if one.run.batch != chosen.run.batch:
        batch = f"batch of {one.run.batch.sequences:,}"
        words = f"{words}; {batch}, {one.tokens_per_s:,.0f} tokens/s"
    return ScreenBlock("fastest", (words,), 9, 2)


def _short(found: RunEstimate) -> str:
    return short_strategy(found.run.strategy)


def _proof(label: str, answer: PlanAnswer) -> Iterator[ScreenBlock]:
    """What is proved, of the fastest, and why no more; of single collectives unless it is said."""
    text = headline(answer)
    if answer.status is Status.OPTIMAL and answer.question.prices is Prices.COLLECTIVES:
        text = text.replace(", with a single collective for each request", "")
    yield ScreenBlock(label, (text,), 9)
    yield ScreenBlock("", (answer.reason,) * bool(answer.reason), 9, 2)


def _fastest_word(status: Status) -> str:
    """What the fastest one is: nothing is said of what a limit has left open."""
    return "the model's fastest" if status is Status.OPTIMAL else "the fastest found"


def _near(
    listed: Sequence[RunEstimate], near: NearStrategies | HostsNearBest, run: Recommended
) -> Iterator[ScreenBlock]:
    """How many the model cannot tell from the best, and the first of them by their numbers: all
    of these rows, or none."""
    least = "" if near.status.settled else "at least "
    plural = "strategies" if near.count != 1 else "strategy"
    within = f"within {plain(100 * near.within, 6)} % of the fastest"
    head = f"{least}{near.count:,} {plural} {within}"
    shown = [*range(min(_SHOWN_ROWS, len(listed)))]
    rows = shown if run.number - 1 in shown else [*shown, run.number - 1]
    texts = apart_texts([listed[at].run.strategy for at in rows])
    lines = [f"{head}; for --pick N:"]
    for at, differs in zip(rows, texts, strict=True):
        mark = "*" if at == run.number - 1 else " "
        slower = _sequence_s(listed[at]) / _sequence_s(listed[0]) - 1
        lines.append(f"{mark}{at + 1:>2} {f'+{max(0.0, slower):.1%}':>6} {differs}")
    yield ScreenBlock("near", tuple(lines), 4, len(lines), f"{head}; --pick N: --details")


def _sequence_s(found: RunEstimate) -> float:
    return found.iteration_s / found.run.batch.sequences


def _next(options: Sequence[TrainerOptions], launcher: str, file: str | None) -> str:
    """The export that a trainer takes which has the strategy and the groups of its placement; or
    for which trainer to plan."""
    able = sorted((one for one in options if not one.lacks), key=lambda one: one.name != launcher)
    placed = next((one for one in able if one.placed), None)
    if placed is not None:
        first = f"{plan_words(file)} --to {placed.format}"
    elif able:
        first = f"no trainer numbers ranks so: to launch it, plan with --launcher {able[0].name}"
    else:
        first = "no trainer here runs it: --details says why"
    return f"{first}; all tables: --details"


def _nothing(answer: PlanAnswer) -> Iterator[ScreenBlock]:
    """Why there is no answer: what is missing, and what would help."""
    question = answer.question
    trained = f"{model_words(question.model)} on {cluster_words(question.topology)}"
    yield ScreenBlock("asked", (f"{trained}, {batch_words(question.batch)}",), 8)
    yield ScreenBlock("answer", (headline(answer),), MUST)
    yield from _lacking(answer.shortfall)
    yield ScreenBlock("reason", (answer.reason,) * bool(answer.reason), 6)
    yield ScreenBlock("more", ("--details: what was searched",), 1)


def _lacking(short: Shortfall | None) -> Iterator[ScreenBlock]:
    """The strategy that comes nearest to fitting into memory, and what would help."""
    if short is None:
        return
    needed, given = map(format_gigabytes, (short.bytes_needed, short.bytes_given))
    lacks = f"lacks {format_gigabytes(short.missing_bytes)}"
    nearest = f"nothing fits: {strategy_text(short.strategy)} comes nearest, and {lacks}"
    yield ScreenBlock("memory", (f"{nearest}: it needs {needed} of {given}",), 9, 4)
    yield ScreenBlock("", tuple(f"what would help: {text}" for text in short.help), 7, 6)
