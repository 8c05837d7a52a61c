"""How far the best programs are from the physical bound, and why where it is far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from experiments.placement_448x.summary import Outcome, Results

NEAR = 1.1
LARGE = 2**30
"""Requests of so many bytes and more are judged."""

NOT_A_SWITCH = "links that are no switch"
IN_SWITCH = "switches that reduce"
LATENCY = "latency"
OTHER = "other"
REASONS = {
    NOT_A_SWITCH: "groups are split on a ring, torus or full mesh: the bound lets every link of "
    "the level carry an equal share in both directions, or messages leave through an outer "
    "level; a ring algorithm uses some of the links, one way",
    IN_SWITCH: "the bound lets switches reduce at every level that a group crosses; with rings "
    "alone the same request is within 10 % of the bound for rings, here or with the paper's larger "
    "payload",
    LATENCY: "with the paper's larger payload the same request is within 10 %",
    OTHER: "none of these",
}


@dataclass(frozen=True, slots=True)
class Distance:
    """Requests of 1 GiB and more of one system: how many are within 10 % of the bound.

    ``worst`` is the largest pipelined time over the bound; ``reasons`` counts the requests whose
    pipelined program is not within 10 %.
    """

    requests: int
    plain: int
    pipelined: int
    worst: float
    reasons: Counter[str]


def distance(results: Results) -> Distance:
    """The distances of one system, its library choosing the algorithm."""
    found = Distance(0, 0, 0, 1.0, Counter())
    for payload in (p for p in results.payloads if p >= LARGE):
        outcomes = results.outcomes(payload)
        far = [one for one in outcomes if one.pipelined_s > NEAR * one.bound_s]
        here = Distance(
            len(outcomes),
            sum(one.best_s <= NEAR * one.bound_s for one in outcomes),
            len(outcomes) - len(far),
            max(one.pipelined_s / one.bound_s for one in outcomes),
            _reasons(results, payload, far),
        )
        found = total((found, here))
    return found


def total(parts: Iterable[Distance]) -> Distance:
    """Several distances together."""
    every = list(parts)
    return Distance(
        sum(one.requests for one in every),
        sum(one.plain for one in every),
        sum(one.pipelined for one in every),
        max(one.worst for one in every),
        sum((one.reasons for one in every), Counter()),
    )


def _reasons(results: Results, payload: int, far: list[Outcome]) -> Counter[str]:
    most = max(results.payloads)
    rings = _near(results.outcomes(payload, "ring")) | _near(results.outcomes(most, "ring"))
    largest = _near(results.outcomes(most))
    kinds = list(results.data["system"]["kinds"].values())
    in_switch = "in-switch" in results.data["system"]["algorithms"]

    def reason(one: Outcome) -> str:
        if any(f > 1 and kind != "switch" for f, kind in zip(one.factors, kinds, strict=True)):
            return NOT_A_SWITCH
        if in_switch and one.scene in rings:
            return IN_SWITCH
        return LATENCY if one.scene in largest else OTHER

    return Counter(map(reason, far))


def _near(outcomes: Iterable[Outcome]) -> set[int]:
    """Scenes whose best pipelined program is within 10 % of the bound."""
    return {one.scene for one in outcomes if one.pipelined_s <= NEAR * one.bound_s}
