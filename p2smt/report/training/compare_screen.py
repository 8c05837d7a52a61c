"""What somebody runs beside the best: the first screen of `plan --compare`, and its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.console import Group, RenderableType

from p2smt.api.efficiencies import known_of
from p2smt.cost.accuracy import PriceRange
from p2smt.report.screen import COLUMNS, LINES, ScreenBlock, plan_words, screen, wrapped
from p2smt.report.tables import table
from p2smt.report.training.anchor_words import anchor_words, anchored_time
from p2smt.report.training.first_screen import memory_words
from p2smt.report.training.run_words import known_words, short_strategy, time_parts, untold_words
from p2smt.result import Status
from p2smt.training.gain import RateGain
from p2smt.training.iteration import estimate_range
from p2smt.training.measured.anchor import Anchor
from p2smt.training.measured.prediction_errors import iteration_range
from p2smt.training.prediction import RunEstimate
from p2smt.training.present.changes import SHOWN, SingleChange, best_of_fields
from p2smt.training.present.comparison import RunComparison
from p2smt.training.strategy import strategy_text, uncut_words, value_text
from p2smt.units import format_gigabytes, format_time, format_time_range, plain

_MUST = 10
_COLUMN = 17
YOURS, ORDERED, BEST, NEAREST = "yours", "reordered", "best", "nearest"
"""Names of columns; the nearest is as good as the best, and like a measured run."""
_SHOWN_SHARE = 2e-3
_TENTHS = 3
_SMALL = 5e-4
"""Of what is said in tenths of a per cent nothing is left below."""


def compare_screen(
    found: RunComparison,
    proof: str,
    below: Sequence[str] = (),
    own: Anchor | None = None,
    file: str | None = None,
) -> list[str]:
    """The gain first, how sure it is, then yours and the best part by part.

    ``proof``: of the best.  ``below``: lines of others, for which there must be room.  ``own``:
    what was measured here.  ``file``: the plan was written to it.
    """
    best = found.best
    return screen(
        (
            *_verdict(found),
            ScreenBlock("scaled", _scaled(found, own), 8, 2),
            ScreenBlock(YOURS, (_yours(found),), 9, 3),
            ScreenBlock(BEST, (proof if best is None else short_strategy(best.run.strategy),), 9),
            ScreenBlock("proof", (proof,) * (best is not None), 7, 1),
            ScreenBlock(NEAREST, tuple(_near(found)), 7, 1),
            *_rows(found),
            ScreenBlock("change", (change_words(found),), 8, 2),
            ScreenBlock("caution", tuple(_cautions(found)), 9, 3),
            ScreenBlock("next", (f"{plan_words(file)} --to sbatch; all tables: --details",), 1, 1),
        ),
        LINES - sum(len(wrapped(line, COLUMNS)) for line in below),
    )


def _scaled(found: RunComparison, own: Anchor | None) -> tuple[str, ...]:
    """What was measured, and both times as they will be here."""
    pairs = ((YOURS, found.yours), (BEST, found.best))
    texts = [f"{name} {anchored_time(own, one)}" for name, one in pairs if own and one]
    return anchor_words(own, "; ".join(texts)) if own and texts else ()


def range_of(found: RunEstimate) -> PriceRange:
    """The range of an iteration by constants and links."""
    return iteration_range(found, estimate_range(found))


def _verdict(found: RunComparison) -> Iterator[ScreenBlock]:
    """What would be gained, and how sure that is; or why yours cannot run."""
    if found.yours is None:
        yield ScreenBlock("gain", (f"none is told, yours cannot run: {found.broken}",), _MUST, 3)
        return
    if not found.yours.fits:
        yield ScreenBlock("gain", (f"yours {memory_words(found.yours)}",), _MUST, 2)
    if found.gain is None or found.best is None:
        return
    label = "gain" if found.yours.fits else ""
    if_fitted = "" if found.yours.fits else "if it fitted: "
    yield ScreenBlock(label, (if_fitted + gain_words(found),), _MUST)
    yield ScreenBlock("", tuple(_per_device(found)), _MUST, 2)
    if abs(found.gain.gain) >= _SMALL:
        yield ScreenBlock("sure", (sure_words(found, found.gain),), _MUST, 2)
    known = known_of(found.best)
    yield ScreenBlock("", (f"of the best: {known_words(known)}",), 6 if known.inside else 9, 2)


def _time(found: RunEstimate) -> str:
    return format_time(found.iteration_s)


def gain_words(found: RunComparison) -> str:
    """The gain with its parts: ``12.6% more tokens/s, 16.1 s -> 14.3 s: order 4.6%, degrees
    8.0%``."""
    whole, order = found.gain, found.order_gain
    if whole is None or found.yours is None or found.best is None:
        return ""
    if abs(whole.gain) < _SMALL:
        why = "faster than all that was searched" if found.beyond else "as fast as the best found"
        return f"0.0%: yours is {why}, {_time(found.yours)}"
    more = f"{percent(whole.gain)} more tokens/s, {_from_to(found.yours, found.best)}"
    if order is None:
        return f"{more}: order and degrees together ({found.ordered.reason})"
    least = "" if found.ordered.status is Status.OPTIMAL else " or more"
    other = "degrees" if found.device_gain is None else "degrees and devices"
    rest = round(whole.gain, _TENTHS) - round(order.gain, _TENTHS)  # so that what is read sums up
    return f"{more}: order {percent(order.gain)}{least}, {other} {percent(rest)}"


def _per_device(found: RunComparison) -> Iterator[str]:
    """What of the gain is of more devices, where the best has others than yours."""
    each, best = found.device_gain, found.best
    if each is None or best is None:
        return
    many = f"{best.run.strategy.devices:,} devices in place of {found.run.strategy.devices:,}"
    if abs(each) < _SMALL:
        yield f"by {many}: a device trains on as many tokens/s"
        return
    more = "more" if each > 0 else "fewer"
    yield f"by {many}: a device trains on {abs(each):.1%} {more} tokens/s"


def _from_to(yours: RunEstimate, best: RunEstimate) -> str:
    """Times of an iteration, or rates where iterations are of other batches."""
    if yours.run.batch == best.run.batch:
        return f"{_time(yours)} -> {_time(best)}"
    return f"{yours.tokens_per_s:,.0f} -> {best.tokens_per_s:,.0f}"


def percent(value: float) -> str:
    """A part in per cent; of a very small one no sign."""
    return f"{0.0 if abs(value) < _SMALL else value:.1%}"


def sure_words(found: RunComparison, whole: RateGain) -> str:
    """Whether the gain is more than the error of the model, and what it is with links as slow, or
    as fast, as they may be."""
    assert found.best is not None
    most = format_time(range_of(found.best).high_s)
    told = f"no: the best may take up to {most}" if found.inside_error else ""
    low, high = percent(whole.low), percent(whole.high)
    links = f"; {low} to {high}, links slow or fast" if low != high else ""
    return (told or f"yes: the best takes {most} at most") + links


def _yours(found: RunComparison) -> str:
    short, launched = short_strategy(found.run.strategy), found.launched
    if launched.told:
        return f"{short}; ranks as its file has them"
    hosts = "" if launched.hosts is None else ", hosts as listed"
    assumed = f"; assumed: {', '.join(found.assumed)}" if found.assumed else ""
    if default := uncut_words(found.run.strategy, found.assumed):
        assumed = f"{assumed} ({default})"
    return f"{short}; ranks {launched.order.text}{hosts}{assumed}"


def _near(found: RunComparison) -> Iterator[str]:
    near, best = found.near, found.best
    if near is None or best is None:
        return
    same = near.found.run.strategy == best.run.strategy
    what = "the best" if same else short_strategy(near.found.run.strategy)
    yield f"{what}, at distance {plain(near.distance, 2)} of the run {near.name}"


# Part by part.


def columns_of(found: RunComparison) -> list[tuple[str, RunEstimate]]:
    """What stands side by side, each once."""
    near = None if found.near is None else found.near.found
    given = (
        (YOURS, found.yours),
        (ORDERED, found.ordered.found),
        (BEST, found.best),
        (NEAREST, near),
    )
    shown: list[tuple[str, RunEstimate]] = []
    for name, one in given:
        if one is not None and not any(_same(one, other) for _, other in shown):
            shown.append((name, one))
    return shown


def _same(one: RunEstimate, other: RunEstimate) -> bool:
    return one.run == other.run and one.iteration_s == other.iteration_s


def part_rows(found: RunComparison) -> list[tuple[str, list[str]]]:
    """The figures by name, a text for each column."""
    runs = [one for _, one in columns_of(found)]
    rows = [
        ("tokens/s", [f"{one.tokens_per_s:,.0f}" for one in runs]),
        *_device_rows(runs),
        ("time", [_time(one) for one in runs]),
        ("range", [_span(one) for one in runs]),
    ]
    parts = [{part.name: part.seconds for part in time_parts(one.prediction)} for one in runs]
    for name in dict.fromkeys(name for each in parts for name in each):
        seconds = [each.get(name, 0.0) for each in parts]
        rows.append((name, [format_time(one) for one in seconds]))
    rows.append(("memory", [_memory(one) for one in runs]))
    if len({one.run.batch.sequences for one in runs}) > 1:
        rows.append(("batch", [f"{one.run.batch.sequences:,}" for one in runs]))
    if any(one.on_hosts for one in runs):
        rows.append(("hosts", [_hosts(one) for one in runs]))
    return rows


def _device_rows(runs: Sequence[RunEstimate]) -> Iterator[tuple[str, list[str]]]:
    """Devices, and tokens a second of each, where not all have as many."""
    many = [one.run.strategy.devices for one in runs]
    if len({*many}) > 1:
        yield "devices", [f"{one:,}" for one in many]
        rates = (one.tokens_per_s / each for one, each in zip(runs, many, strict=True))
        yield "each", [f"{rate:,.1f} tokens/s" for rate in rates]


def _span(found: RunEstimate) -> str:
    within = range_of(found)
    return format_time_range(within.low_s, within.high_s, within.seconds, moved=0.1)


def _memory(found: RunEstimate) -> str:
    text = format_gigabytes(found.prediction.memory.total)
    return text if found.fits else f"{text} (no)"


def _hosts(found: RunEstimate) -> str:
    lie = found.on_hosts
    return "" if lie is None else f"{len(lie.hosts)} of {len(lie.listed)}"


_WEIGHTS = {
    "tokens/s": 9,
    "devices": 8,
    "each": 9,
    "time": 9,
    "memory": 9,
    "batch": 9,
    "hosts": 6,
    "range": 8,
}


def _rows(found: RunComparison) -> Iterator[ScreenBlock]:
    names = [name for name, _ in columns_of(found)]
    if not names:
        return
    shares = _shares(found)
    yield ScreenBlock("", (_cells(names),), _MUST, 1)
    for name, texts in part_rows(found):
        # where there is no room, the smallest parts go first
        if (share := shares.get(name, 1.0)) >= _SHOWN_SHARE:
            yield ScreenBlock(name, (_cells(texts),), _WEIGHTS.get(name, 6 + share), 1)


def _shares(found: RunComparison) -> dict[str, float]:
    """The most that each part takes of an iteration in any column."""
    shares: dict[str, float] = {}
    for _, one in columns_of(found):
        for part in time_parts(one.prediction):
            share = part.seconds / one.iteration_s
            shares[part.name] = max(share, shares.get(part.name, 0.0))
    return shares


def _cells(texts: Sequence[str]) -> str:
    return "".join(f"{text:>{_COLUMN}}" for text in texts)


# Single changes.


def change_words(found: RunComparison) -> str:
    """The single changes that gain most, or that make it run: the best of each field."""
    shown = best_of_fields(found.changes)[:SHOWN]
    if not found.runs:
        words = "; ".join(f"{one.text}: {_time(one.found)}" for one in shown)
        return f"that makes it run: {words or 'none alone'}"
    if not shown:
        return "none alone is faster than yours"
    return "alone: " + "; ".join(f"{one.text}: {_slower(found, one)}" for one in shown)


def _slower(found: RunComparison, one: SingleChange) -> str:
    assert found.yours is not None
    return f"{found.yours.tokens_per_s / one.found.tokens_per_s - 1:+.1%} time"


def _apart_words(found: RunComparison) -> str:
    """Fields of yours with their values, and those of the best."""
    best = found.run if found.planned is None else found.planned.run
    sides = (found.run.strategy, best.strategy)
    pairs = ((name, *(value_text(one, name) for one in sides)) for name in found.apart)
    return ", ".join(f"{name}={mine} (best: {other})" for name, mine, other in pairs)


def _cautions(found: RunComparison) -> Iterator[str]:
    if found.apart:
        yield f"{_apart_words(found)} of yours: not searched for, part of the gain"
    if untold := untold_words(found.launched.efficiency):
        yield f"{untold}; this order is assumed"


# All of it.


def compare_tables(found: RunComparison) -> RenderableType:
    """Every part side by side, the hosts of each, and every single change that gains."""
    names = [name for name, _ in columns_of(found)]
    rows = [[name, *texts] for name, texts in part_rows(found)]
    parts: list[RenderableType] = [
        table("side by side", ["", *(f">{name}" for name in names)], rows),
        "",
        *(f"{name}: {strategy_text(one.run.strategy)}" for name, one in columns_of(found)),
    ]
    parts += _orders(found)
    if found.changes:
        parts += ["", table("single changes", _CHANGE_COLUMNS, _change_rows(found))]
    return Group(*parts)


_CHANGE_COLUMNS = ["change", ">iteration", ">time", ">memory", "strategy"]


def _change_rows(found: RunComparison) -> Iterator[list[str]]:
    for one in found.changes:
        slower = "" if found.yours is None else _slower(found, one).removesuffix(" time")
        text = short_strategy(one.found.run.strategy)
        yield [one.text, _time(one.found), slower, _memory(one.found), text]


def _orders(found: RunComparison) -> list[RenderableType]:
    """The hosts in their order, side by side."""
    named = [(name, one.on_hosts.hosts) for name, one in columns_of(found) if one.on_hosts]
    if not named:
        return []
    rows = zip_longest(*(hosts for _, hosts in named), fillvalue="")
    return ["", table("hosts in the order of their ranks", [name for name, _ in named], rows)]
