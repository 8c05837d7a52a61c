"""How far the best programs are from the physical bound, and why where it is far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from experiments.placement_448x.model.solving import RING, TEXTBOOK
from experiments.placement_448x.model.summary import Outcome, Results

NEAR = 1.1
LARGE = 2**30
"""Requests of so many bytes and more are judged."""

LATENCY = "latency"
OF_THE_LIBRARY = "what the library makes of the links"
NOT_A_SWITCH = "split on links that are no switch"
IN_SWITCH = "switches that reduce"
OTHER = "other"
REASONS = {
    LATENCY: "with the paper's larger payload the same request is within 10 %",
    OF_THE_LIBRARY: "the bound is that of the links at their nominal rates; without a library, at "
    "nominal rates and by the fastest of ring and tree, the same request is within 10 %",
    NOT_A_SWITCH: "the bound lets every link of a ring, torus or full mesh carry an equal share, "
    "by way of other groups' devices, too; a ring algorithm goes one way round, and a single ring "
    "uses one of the links of a mesh",
    IN_SWITCH: "the bound lets switches reduce at every level that a group crosses; with rings "
    "alone the same request is within 10 % of the bound for rings, here or with the larger payload",
    OTHER: "none of these",
}


@dataclass(frozen=True, slots=True)
class Distance:
    """Requests of 1 GiB and more of one system: how many are within 10 % of the bound.

    ``worst`` is the largest pipelined time over the bound; ``reasons`` counts the requests whose
    pipelined program is not within 10 %, by what they have in common, the first that applies.
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
    rings = _near(results.outcomes(payload, RING)) | _near(results.outcomes(most, RING))
    largest = _near(results.outcomes(most))
    known = TEXTBOOK in results.algorithms
    textbook = _near(results.outcomes(payload, TEXTBOOK)) if known else set()
    kinds = list(results.data["system"]["kinds"].values())
    in_switch = "in-switch" in results.data["system"]["algorithms"]

    def reason(one: Outcome) -> str:
        if one.scene in largest:
            return LATENCY
        if one.scene in textbook:
            return OF_THE_LIBRARY
        if any(f > 1 and kind != "switch" for f, kind in zip(one.factors, kinds, strict=True)):
            return NOT_A_SWITCH
        return IN_SWITCH if in_switch and one.scene in rings else OTHER

    return Counter(map(reason, far))


def _near(outcomes: Iterable[Outcome]) -> set[int]:
    """Scenes whose best pipelined program is within 10 % of the bound."""
    return {one.scene for one in outcomes if one.pipelined_s <= NEAR * one.bound_s}
