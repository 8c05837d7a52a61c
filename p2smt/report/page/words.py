"""Times and counts in three digits, and what prices of links rest on, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from p2smt.cluster.topology import Topology
from p2smt.report.page.story import clean
from p2smt.units import format_time, plain


def format_time3(seconds: float) -> str:
    """A time in three digits: ``5.19 s``."""
    value, _, unit = format_time(seconds).partition(" ")
    try:
        number = float(value)
    except ValueError:
        return value
    digits = max(0, 2 - len(str(int(number))) + 1) if number >= 1 else 2
    return f"{number:,.{digits}f} {unit}" if number else "0 s"


def count(value: float) -> str:
    """A large number in three digits: ``3.23 million``."""
    for size, word in ((1e9, " billion"), (1e6, " million")):
        if value >= size:
            return f"{plain(value / size)}{word}"
    return f"{value:,.0f}"


def part_words(parts: Mapping[str, float]) -> str:
    """Parts of a time in words, the largest first."""
    large = sorted(parts.items(), key=lambda one: -one[1])
    return ", ".join(f"{clean(name)} {format_time3(seconds)}" for name, seconds in large if seconds)


def links_rest(topology: Topology, basis: str | None) -> Iterator[tuple[str, str]]:
    """What times of communication rest on."""
    library = topology.library_name or "the textbook's algorithms"
    known = basis or "the file does not say"
    what = "fitted to times of this cluster" if topology.calibrated else "as the topology has them"
    yield "Communication", f"links {what}, {clean(library)}; prices: {clean(known)}"
