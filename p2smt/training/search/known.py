"""How strategies lie to measured ones: how far, which is nearest, and what no run had.

Strategies that the model cannot tell apart are better chosen by what was measured: the distance
counts doublings of degrees, and switches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from p2smt.parallelism.placement import FloatArray, IntArray
from p2smt.training.search.plan_answer import StrategyRun
from p2smt.training.strategy import PEAK_OF, SIXTEEN, Strategy, key_of, recompute_text
from p2smt.units import plain

FAR = 2.0
"""A run at a greater distance, such as two doublings and a switch, is not near."""
DEGREES = ("tp", "pp", "dp", "cp", "vpp", "micro_batch", "ep", "etp")
SWITCHES = ("sequence_parallel", "zero", "recompute")
UNCOUNTED = (
    *("flash", "dtype", "dispatcher", "overlap", "graphs", "fp8_attention", "fp8_params"),
    *("dropout", "dp_replicate", "shared_overlap", "imbalance", "optimizer_bytes", "offload"),
)
"""What adds nothing to a distance: how tokens move, and what is the same in all strategies of a
search."""
_TOLD = (*SWITCHES, *UNCOUNTED)
_SAME = 9
"""Digits of a distance: sums of the same squares in another order are the same."""


def distance(one: Strategy, other: Strategy) -> float:
    """How far strategies are apart.

    The square root of the sum of squares: of each degree the doublings between both, of each switch
    1 if it differs.
    """
    ratios = (math.log2(getattr(one, name) / getattr(other, name)) for name in DEGREES)
    differ = (_word(one, name) != _word(other, name) for name in SWITCHES)
    return math.sqrt(sum(x * x for x in ratios) + sum(differ))


def distances(
    strategies: Sequence[Strategy], measured: Sequence[StrategyRun]
) -> tuple[FloatArray, IntArray]:
    """Of each strategy the distance to the nearest measured one, and that one's index; of several
    the first."""
    degrees, switches = _columns(strategies)
    apart = []
    for run in measured:
        own_degrees, own_switches = _columns([run.strategy])
        squares = ((degrees - own_degrees) ** 2).sum(axis=1)
        apart.append(np.sqrt(squares + (switches != own_switches).sum(axis=1)).round(_SAME))
    found = np.array(apart)
    nearest_run = found.argmin(axis=0)
    return found[nearest_run, np.arange(len(strategies))], nearest_run


def _columns(strategies: Sequence[Strategy]) -> tuple[FloatArray, NDArray[np.str_]]:
    degrees = [[getattr(one, name) for name in DEGREES] for one in strategies]
    switches = [[_word(one, name) for name in SWITCHES] for one in strategies]
    return np.log2(np.array(degrees, dtype=np.float64)), np.array(switches, dtype=np.str_)


def nearest(
    strategies: Sequence[Strategy], measured: Sequence[StrategyRun]
) -> tuple[int, int, float]:
    """The pair of a strategy and a measured one that are least apart: indices, and the distance.

    Of several the first.
    """
    apart, runs = distances(strategies, measured)
    one = int(apart.argmin())
    return one, int(runs[one]), float(apart[one])


def most_known(
    strategies: Sequence[Strategy], measured: Sequence[StrategyRun]
) -> tuple[int, int, float]:
    """The same among those that are like a run and of which runs had every value, if there are any:
    the error of the others is not known, however near a run is."""
    apart, runs = distances(strategies, measured)
    one = int(_unknown(strategies, measured, apart).argmin())
    return one, int(runs[one]), float(apart[one])


def _unknown(
    strategies: Sequence[Strategy], measured: Sequence[StrategyRun], apart: FloatArray
) -> FloatArray:
    """Distances, greater than all others of those with a value that no run had, or far off all."""
    seen = _Seen.of(measured)
    odd = (apart > FAR) | np.array([any(True for _ in seen.lacks(one)) for one in strategies])
    return np.asarray(apart + odd * (1.0 + apart.max()))


def ever_nearer(strategies: Sequence[Strategy], measured: Sequence[StrategyRun]) -> list[int]:
    """Those that are nearer to a measured one than all before them, and those that are better
    known: whichever of the first many is nearest, or most known, is among these."""
    apart, _ = distances(strategies, measured)
    found = {0}
    for each in (apart, _unknown(strategies, measured, apart)):
        least = np.minimum.accumulate(each)
        found |= set((np.flatnonzero(least[1:] < least[:-1]) + 1).tolist())
    return sorted(found)


# What of a strategy no run had.


@dataclass(frozen=True, slots=True)
class NotSeen:
    """A value of a strategy that no run had, such as ``zero=3``, and which ones runs had."""

    value: str
    seen: str
    one: bool
    """Whether that is one value of a switch."""

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.value}: measured {'is' if self.one else 'are'} {self.seen}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What runs had: the least and the greatest of each degree, and each switch in words."""

    spans: Mapping[str, tuple[int, int]]
    words: Mapping[str, frozenset[str]]

    @staticmethod
    def of(measured: Sequence[StrategyRun]) -> _Seen:
        """Those of some runs, of one at least."""
        ran = [run.strategy for run in measured]
        degrees = {name: [getattr(one, name) for one in ran] for name in DEGREES}
        return _Seen(
            {name: (min(seen), max(seen)) for name, seen in degrees.items()},
            {name: frozenset(_word(one, name) for one in ran) for name in _TOLD},
        )

    def lacks(self, strategy: Strategy) -> Iterator[NotSeen]:
        """The values of a strategy that lie outside of them."""
        for name, (least, most) in self.spans.items():
            value = getattr(strategy, name)
            if not least <= value <= most:
                among = f"{least} to {most}" if least < most else f"{least} only"
                yield NotSeen(f"{key_of(name)}={value}", among, one=False)
        for name, taken in self.words.items():
            word = _word(strategy, name)
            if word not in taken:
                known = ", ".join(sorted(taken))
                yield NotSeen(f"{key_of(name)}={word}", known, one=len(taken) == 1)


def not_seen(strategy: Strategy, measured: Sequence[StrategyRun]) -> tuple[NotSeen, ...]:
    """The values that lie outside of all runs: a degree beyond the least and the greatest, a switch
    that was never set so."""
    return tuple(_Seen.of(measured).lacks(strategy)) if measured else ()


def outside(strategy: Strategy, measured: Sequence[StrategyRun]) -> tuple[str, ...]:
    """How a strategy lies outside everything measured, in words, a text for each field, and one if
    no run is at a distance of at most ``FAR``."""
    if not measured:
        return ()
    texts = [one.text for one in not_seen(strategy, measured)]
    _, run, apart = nearest([strategy], measured)
    if apart > FAR:
        texts.append(
            f"nothing near it was measured: {measured[run].name} is {plain(apart, 2)} away"
        )
    return tuple(texts)


def _word(strategy: Strategy, name: str) -> str:
    """A switch in words; data types by the peak that they have, 16 bits alike."""
    if name == "recompute":
        return recompute_text(strategy)
    value = getattr(strategy, name)
    if name == "dtype":
        return SIXTEEN[0] if value in SIXTEEN else PEAK_OF[value]
    return value_word(value)


def value_word(value: object) -> str:
    """A value of a field in words."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return "+".join(value)
    if isinstance(value, float):
        return f"{plain(value, 6)}"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Known:
    """What measured runs say of a strategy.

    ``missing``: values that none had.  ``like`` of ``runs`` are at a distance of at most ``FAR``;
    ``off``: their mean error where their model was left out of the fit; None: not known, or they
    say nothing of the values that none had.
    ``nearest`` of all is at ``apart``.  All were on ``device``.
    """

    missing: tuple[NotSeen, ...]
    like: int
    runs: int
    off: float | None
    nearest: StrategyRun | None
    apart: float
    device: str

    @property
    def inside(self) -> bool:
        """Whether some run is like it, and every value was seen."""
        return self.like > 0 and not self.missing


def known(
    strategy: Strategy, measured: Sequence[StrategyRun], errors: Mapping[str, float], device: str
) -> Known:
    """What runs on a device say of a strategy; ``errors`` of runs left out, by their ids."""
    if not measured:
        return Known((), 0, 0, None, None, math.inf, device)
    apart = [round(distance(strategy, run.strategy), _SAME) for run in measured]
    like = [run for run, far in zip(measured, apart, strict=True) if far <= FAR]
    missing = not_seen(strategy, measured)
    offs = [abs(errors[run.id]) for run in like if run.id in errors]
    off = sum(offs) / len(offs) if offs and not missing else None
    first = min(range(len(measured)), key=apart.__getitem__)
    return Known(missing, len(like), len(measured), off, measured[first], apart[first], device)
