"""What the options of `p2smt crossings` say, as values."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.plans.crossings.certificate import SymbolicSetting
    from p2smt.search.crossings.least import LevelRatios

_RATIO = re.compile(r"[0-9]{1,15}(/[0-9]{1,15}|\.[0-9]{1,15})?")
_MOST_ROWS = 64


def setting_of(
    factors: str | None, ports: str | None, kind: str | None, length: str, calls: bool
) -> SymbolicSetting:
    """The programs that are asked about; ``calls``: whether a call costs an unknown.

    Raises:
        InputError: factors of one, or ports that do not fit.
    """
    from p2smt.cli import given
    from p2smt.cli.scene_options import program_kind
    from p2smt.parallelism.request import MAX_PROGRAM_LENGTH
    from p2smt.plans.crossings.certificate import SymbolicSetting

    if factors is None:
        raise InputError("factors", "are missing", "give --factors 4,8")
    sizes = given.sizes_of(factors, "factors")
    counts = (1,) * len(sizes) if ports is None else given.sizes_of(ports, "ports")
    most = given.count_of(length, "length", MAX_PROGRAM_LENGTH)
    found = SymbolicSetting(sizes, counts, program_kind(kind), most, calls)
    _ = found.scene  # what does not fit is refused before anything is searched
    return found


def unknown_call(cost_per_call: str | None) -> bool:
    """Whether the cost of a call is an unknown of the least set: it is, unless it is 0.

    Raises:
        InputError: another number.
    """
    if cost_per_call not in (None, "0"):
        rule = "is an unknown of --sufficient, or 0"
        raise InputError(f"--cost-per-call {cost_per_call[:40]!r}", rule, "give 0, or drop it")
    return cost_per_call is None


def ratio_of(text: str, what: str) -> Fraction:
    """A positive number such as 4, 1.5 or 1/8, or 0.

    Raises:
        InputError: it is none.
    """
    shaped = _RATIO.fullmatch(text.strip())
    if not shaped or ((shaped[1] or "").strip("/0") == "" and "/" in text):
        raise InputError(f"{what} {text[:40]!r}", "must be positive", "write it like 4 or 1/8")
    return Fraction(text.strip())


def ratios_of(
    levels: int, latency: str | None, bandwidth: str | None, cost_per_call: str | None
) -> tuple[LevelRatios, ...]:
    """The ratios of each row: one, or one for each doubling from A to B of ``A..B``.

    Raises:
        InputError: a ratio that is not positive, too many or too few of them, or a range from
            more to less.
    """
    from p2smt.search.crossings.least import LevelRatios

    one = Fraction(1)
    delays = [ratio_of(text, "latency ratio") for text in _each(latency, levels, "latency")]
    first, *others = _each(bandwidth or "1..64" + ",1" * (levels - 2), levels, "bandwidth")
    rest = [ratio_of(text, "bandwidth ratio") for text in others]
    call = ratio_of(cost_per_call or "0", "cost per call")
    return tuple(
        LevelRatios((*delays, one), (outer, *rest, one), call) for outer in _doublings(first)
    )


def _each(text: str | None, levels: int, what: str) -> list[str]:
    """A text for each level but the innermost."""
    parts = ["1"] * (levels - 1) if text is None else text.split(",")
    if levels < 2:
        raise InputError("one level", "has no ratios to an inner one", "give --factors 4,8")
    if len(parts) != levels - 1:
        rule = f"has {len(parts)} numbers, and there are {levels - 1} levels but the innermost"
        raise InputError(f"{what} ratio {(text or '')[:40]!r}", rule, "give one for each")
    return parts


def _doublings(text: str) -> list[Fraction]:
    low, dots, high = text.partition("..")
    least = ratio_of(low, "bandwidth ratio")
    if not dots:
        return [least]
    most = ratio_of(high, "bandwidth ratio")
    if not 0 < least < most:
        rule = "must go from a positive number to a larger one"
        raise InputError(f"bandwidth ratio {text[:40]!r}", rule, "write it like 1..64")
    found = [least]
    while found[-1] * 2 < most and len(found) < _MOST_ROWS:
        found.append(found[-1] * 2)
    return [*found, most]
