"""Bandwidths of uplinks outside the nodes, which no source of switches states.

``--uplink leaf=400GB/s`` is that of each leaf's uplink, ``--oversubscription leaf=4`` makes it a
quarter of what the nodes under that leaf can send together.  Without either a level is taken as
non-blocking, and marked as assumed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean
from p2smt.units import parse_bandwidth

_TIMES = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(?::1)?")


@dataclass(frozen=True, slots=True)
class UplinkRates:
    """What is said of uplinks by level: B/s of each, or how often their nodes can fill them."""

    bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    oversubscription: Mapping[str, float] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether anything is said."""
        return bool(self.bytes_per_s or self.oversubscription)

    def check(self, levels: Sequence[str], node: str) -> None:
        """Refuses levels that are none of these; the last is that of nodes.

        Raises:
            InputError: a level is unknown, or the node's is to be oversubscribed.
        """
        known = (*levels, node)
        for option, names in (
            ("uplink", self.bytes_per_s),
            ("oversubscription", self.oversubscription),
        ):
            if others := [name for name in names if name not in known]:
                rule = (
                    f"the levels are {', '.join(known)}" if levels else f"the only level is {node}"
                )
                remedy = did_you_mean(others[0], known) or "name one of them"
                raise InputError(f"--{option} {others[0][:40]}", rule, remedy)
        if node in self.oversubscription:
            rule = "is of switches: nodes are what it is counted in"
            raise InputError(f"oversubscription of {node}", rule, f"give --uplink {node}=RATE")

    def of(self, level: str, nodes: int, node_rate: float) -> float:
        """The rate in B/s of the uplink of an entity of a level that has so many nodes under it."""
        if level in self.bytes_per_s:
            return self.bytes_per_s[level]
        return max(1.0, float(round(nodes * node_rate / self.oversubscription.get(level, 1.0))))

    def states(self, level: str) -> bool:
        """Whether anything is said of a level."""
        return level in self.bytes_per_s or level in self.oversubscription


def parse_uplinks(uplink: Sequence[str], oversubscription: Sequence[str]) -> UplinkRates:
    """The rates in texts such as ``leaf=400GB/s`` and ``leaf=4``; several stand with commas.

    Raises:
        InputError: a text is malformed, or a level is named twice.
    """
    rates = _by_level(uplink, "uplink", "leaf=400GB/s")
    times = _by_level(oversubscription, "oversubscription", "leaf=4")
    if both := set(rates).intersection(times):
        rule = "has an uplink and an oversubscription"
        raise InputError(f"level {min(both)[:40]!r}", rule, "keep one of the two")
    return UplinkRates(
        {level: parse_bandwidth(text, f"uplink of {level[:40]}") for level, text in rates.items()},
        {level: _times(text, level) for level, text in times.items()},
    )


def _by_level(texts: Sequence[str], what: str, example: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in [part for text in texts for part in text.split(",")]:
        level, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not level or not value:
            raise InputError(
                f"--{what} {part[:60]!r}", "is LEVEL=VALUE", f"write --{what} {example}"
            )
        if level in found:
            raise InputError(f"--{what} {level[:40]!r}", "is given twice", "keep one of them")
        found[level] = value
    return found


def _times(text: str, level: str) -> float:
    """A number such as 4, 1.5 or 4:1."""
    found = _TIMES.fullmatch(text)
    if found is None or not float(found[1]):
        given = f"oversubscription of {level[:40]} {text[:40]!r}"
        raise InputError(given, "must be a number above 0", "write leaf=4")
    return float(found[1])
