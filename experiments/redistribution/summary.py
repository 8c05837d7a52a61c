"""Counts and tables of the results."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.redistribution.clusters import LIBRARY, NOMINAL
from p2smt.units import format_time

Entry = dict[str, Any]
SAME = 1e-5
"""Times that differ by less than this part are one: they are written with six digits."""
SHORT = (
    *("shardy", "dtensor greedy", "dtensor graph, flattened meshes"),
    "dtensor graph, one device a host, flattened meshes",
)
"""Peers of which the page speaks first."""
MOST = 12
"""Rows of a table of the largest gains."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A case and what one peer does with it, at one kind of prices."""

    case: Entry
    plan: Entry
    peer: Entry

    @property
    def ratio(self) -> float | None:
        """The peer's time over ours; None where one of them has none, or nothing is sent."""
        theirs, ours = self.peer.get("seconds"), self.plan["objective_s"]
        return theirs / ours if theirs and ours else None

    @property
    def verdict(self) -> str:
        """Whether ours is ``better``, ``equal`` or ``worse``; ``outside``: no plan to compare."""
        if "seconds" not in self.peer:
            return "outside"
        theirs, ours = self.peer["seconds"], self.plan["objective_s"]
        if math.isclose(theirs, ours, rel_tol=SAME):
            return "equal"
        return "better" if theirs > ours else "worse"

    @property
    def over(self) -> float:
        """How many times the cap the peer's largest state is, if it is over it; else 0."""
        if not self.peer.get("over_cap"):
            return 0.0
        return float(self.peer["peak_bytes"] / self.plan["cap_bytes"])


def groups_of(cases: Iterable[Entry]) -> list[str]:
    """The groups, in the order of the results."""
    return list(dict.fromkeys(case["group"] for case in cases))


def beside(cases: Iterable[Entry], group: str, prices: str = NOMINAL) -> dict[str, list[Beside]]:
    """The cases of a group beside each peer."""
    found: dict[str, list[Beside]] = {}
    for case in cases:
        if case["group"] == group:
            plan = case["plans"][prices]
            for name, peer in plan["peers"].items():
                found.setdefault(name, []).append(Beside(case, plan, peer))
    return found


def geometric(rows: Iterable[Beside]) -> float:
    """Geometric mean of the ratios; nan without any."""
    ratios = [row.ratio for row in rows if row.ratio is not None]
    return statistics.geometric_mean(ratios) if ratios else math.nan


PEER_HEAD = (
    *("cases", "peer", "compared", "geometric mean", "largest", "better", "equal", "worse"),
    *("over the cap", "steps fewer / equal / more", "library's prices"),
)


def peer_rows(cases: Sequence[Entry]) -> Iterator[list[str]]:
    """A row for each group and peer."""
    for group in groups_of(cases):
        priced = beside(cases, group, LIBRARY)
        for name, rows in beside(cases, group).items():
            yield _peer_row(group, name, rows, priced[name])


def _peer_row(group: str, name: str, rows: Sequence[Beside], priced: Sequence[Beside]) -> list[str]:
    ratios = [row.ratio for row in rows if row.ratio is not None]
    verdicts = [row.verdict for row in rows]
    over = [row.over for row in rows if row.over]
    steps = [len(row.plan["steps"]) - row.peer["steps"] for row in rows if row.verdict != "outside"]
    return [
        group,
        name,
        f"{len(ratios)} of {len(rows)}",
        f"**{geometric(rows):.2f}**",
        f"{max(ratios):.1f}",
        *(str(verdicts.count(word)) for word in ("better", "equal", "worse")),
        f"{len(over)} ({max(over):.3g}x)" if over else "0",
        f"{sum(n < 0 for n in steps)} / {steps.count(0)} / {sum(n > 0 for n in steps)}",
        f"{geometric(priced):.2f}",
    ]


def short(cases: Sequence[Entry]) -> Iterator[str]:
    """A line for each group and each of the peers of most interest."""
    for group in groups_of(cases):
        for name, rows in beside(cases, group).items():
            if name in SHORT:
                over = sum(row.over > 0 for row in rows)
                worse = sum(row.verdict == "worse" for row in rows)
                yield (
                    f"- {group}, over {name}: {geometric(rows):.2f}x; slower in {worse} of "
                    f"{len(rows)} cases; the peer is over the cap in {over}"
                )


PROOF_HEAD = ("cases", "number", "digits", "proved, any length", "proved, at most T steps")
PLANNING_HEAD = ("not proved", "median", "largest", "within 1 % of the links' bound")


def proof_rows(
    cases: Sequence[Entry], planning_s: Callable[[Entry], Sequence[float]]
) -> Iterator[list[str]]:
    """What is proved and what planning took, a row for each group; both prices."""
    for group in groups_of(cases):
        members = [case for case in cases if case["group"] == group]
        plans = [plan for case in members for plan in case["plans"].values()]
        proved = [plan for plan in plans if plan["status"] == "optimal"]
        free = [plan for plan in proved if plan["max_steps"] is None]
        spent = [seconds for case in members for seconds in planning_s(case)]
        near = [p for p in plans if p["objective_s"] <= 1.01 * p["physical_bound_s"]]
        yield [
            group,
            str(len(plans)),
            "-".join(str(n) for n in sorted({min(p["digits"] for p in plans), *_most(plans)})),
            str(len(free)),
            str(len(proved) - len(free)),
            str(len(plans) - len(proved)),
            f"{statistics.median(spent):.2f} s",
            f"{max(spent):.1f} s",
            str(len(near)),
        ]


def _most(plans: Sequence[Entry]) -> list[int]:
    return [max(plan["digits"] for plan in plans)]


GAIN_HEAD = ("case", "on", "ours", "steps", "peer", "its time")


def gain_rows(cases: Sequence[Entry], peer: str) -> Iterator[list[str]]:
    """The largest gains over one peer, at nominal prices."""
    rows = [row for group in groups_of(cases) for row in beside(cases, group).get(peer, [])]
    with_ratio = sorted((row.ratio, k) for k, row in enumerate(rows) if row.ratio is not None)
    for _, k in with_ratio[: -MOST - 1 : -1]:
        row = rows[k]
        yield [
            f"`{row.case['from']}` to `{row.case['to']}`",
            f"{row.case['mesh']}, {row.case['cluster']}",
            format_time(row.plan["objective_s"]),
            "; ".join(row.plan["steps"]),
            peer,
            format_time(row.peer["seconds"]),
        ]


LOSS_HEAD = ("case", "on", "prices", "ours", "peer", "its time", "its peak")


def losses(cases: Sequence[Entry]) -> list[tuple[str, Beside, str]]:
    """Every case in which a peer's plan is faster: prices, row, peer."""
    return [
        (prices, row, name)
        for prices in (NOMINAL, LIBRARY)
        for group in groups_of(cases)
        for name, rows in beside(cases, group, prices).items()
        for row in rows
        if row.verdict == "worse"
    ]


def loss_rows(cases: Sequence[Entry]) -> Iterator[list[str]]:
    """Rows of :func:`losses`."""
    for prices, row, name in losses(cases):
        yield [
            f"`{row.case['from']}` to `{row.case['to']}`",
            f"{row.case['mesh']}, {row.case['cluster']}",
            prices,
            format_time(row.plan["objective_s"]),
            name,
            format_time(row.peer["seconds"]),
            f"{row.over:.3g}x the cap" if row.over else "within the cap",
        ]


def outside(cases: Sequence[Entry]) -> dict[str, int]:
    """Peers' plans that are not of the six steps, by reason."""
    found: dict[str, int] = {}
    for group in groups_of(cases):
        for name, rows in beside(cases, group).items():
            for row in rows:
                if row.verdict == "outside":
                    key = f"{name}: {row.peer.get('note', '')}"
                    found[key] = found.get(key, 0) + 1
    return found
