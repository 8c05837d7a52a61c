"""Why no strategy can run: what lacks, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from p2smt.errors import InputError
from p2smt.parallelism.placement import BoolArray
from p2smt.units import format_gigabytes
from p2smt.workload.search.answer import Shortfall
from p2smt.workload.search.choices import Choices
from p2smt.workload.search.ledger import Closed, Ledger
from p2smt.workload.search.limits import SpaceLimits, value_text
from p2smt.workload.search.pricing.candidates import Candidates
from p2smt.workload.search.question import SEARCHED, PlanQuestion
from p2smt.workload.search.space import space_of
from p2smt.workload.strategy import Strategy
from p2smt.workload.strategy_text import key_of

_MOST = 64
"""Times as many devices, at most, that are tried."""


def shortfall(ledger: Ledger) -> Shortfall | None:
    """The strategy that comes nearest to fitting, where some can be placed but do not fit."""
    rows = np.flatnonzero((ledger.closed == Closed.TOO_LARGE) & _placeable(ledger))
    if not len(rows):
        return None
    question, needed = ledger.candidates.question, ledger.candidates.work.memory_bytes
    least = int(rows[needed[rows].argmin()])
    strategy = ledger.candidates.columns.strategy(least)
    helps = tuple(_helps(question))
    return Shortfall(strategy, int(np.ceil(needed[least])), question.capacity_bytes, helps)


def reason(ledger: Ledger) -> str:
    """Why nothing can run, in words."""
    question, closed = ledger.candidates.question, ledger.closed
    counts = {kind: int((closed == kind).sum()) for kind in Closed}
    texts = []
    placeable = _placeable(ledger)
    if not placeable.any():
        return f"none of {len(placeable):,} strategies has a placement under the rules"
    if large := int(((closed == Closed.TOO_LARGE) & placeable).sum()):
        capacity = format_gigabytes(question.capacity_bytes)
        texts.append(f"{large:,} strategies need more than {capacity} a device")
    if unplaced := int((~placeable).sum()):
        texts.append(f"{unplaced:,} have no placement under the rules")
    if counts[Closed.LACKING]:
        lacking = f"{question.launcher} runs none of {counts[Closed.LACKING]:,}"
        texts.append(f"{lacking}: {_lack(ledger)}")
    return "; ".join(texts)


def _placeable(ledger: Ledger) -> BoolArray:
    """Which strategies have a placement under the rules, be they too large or not."""
    candidates = ledger.candidates
    return np.asarray(candidates.placements[candidates.block] > 0, dtype=np.bool_)


def _lack(ledger: Ledger) -> str:
    """What the launcher lacks most often."""
    question, columns = ledger.candidates.question, ledger.candidates.columns
    found: Counter[str] = Counter()
    if question.lacks is not None:
        for row in np.flatnonzero(ledger.closed == Closed.LACKING).tolist():
            found.update(question.lacks(columns.strategy(row), question.model))
    return found.most_common(1)[0][0] if found else ""


def _helps(question: PlanQuestion) -> Iterator[str]:
    """What would make some strategy fit, in words; each is tried."""
    for name, value in question.fixed:
        rest = tuple(pair for pair in question.fixed if pair[0] != name)
        if (found := _fitting(replace(question, fixed=rest))) is not None:
            yield f"another {key_of(name)} than {value_text(value)}: {_words(found)} fits"
    if question.space != SpaceLimits() and _fitting(question) is None:
        wide = replace(question, space=SpaceLimits())
        if (found := _fitting(wide)) is not None:
            yield f"a larger space: {_words(found)} fits"
    times = 2
    while times <= _MOST:
        if (found := _fitting_on(question, times)) is not None:
            yield f"{times} times as many devices: {_words(found)} fits"
            return
        times *= 2


def _fitting_on(question: PlanQuestion, times: int) -> Strategy | None:
    """A strategy that fits on so many times as many devices."""
    try:
        outermost = question.topology.levels[0].size * times
        return _fitting(replace(question, topology=question.topology.with_outermost(outermost)))
    except InputError:
        return None


def _fitting(question: PlanQuestion) -> Strategy | None:
    """The strategy of a question that takes least memory of those with a placement, if it fits."""
    try:
        columns = space_of(question, Choices.of(question))
    except InputError:
        return None
    candidates = Candidates.of(question, columns)
    placeable = candidates.placements[candidates.block] > 0
    needed = np.where(placeable, candidates.work.memory_bytes, np.inf)
    least = int(needed.argmin())
    return columns.strategy(least) if needed[least] <= question.capacity_bytes else None


def _words(strategy: Strategy) -> str:
    """A strategy by the fields that differ from the plainest one."""
    plain, shown = Strategy(), []
    for name in SEARCHED:
        value = getattr(strategy, name)
        if value != getattr(plain, name):
            shown.append(f"{key_of(name)}={value_text(value)}")
    return ",".join(shown) or "one device"
