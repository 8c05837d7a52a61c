"""The part of the report on what goes beyond the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.placement_448x.report.text import Lines, percent, table

Data = Mapping[str, Any]


def longer_table(beyond: Data) -> Lines:
    """Programs of more than five steps."""
    rows = [
        (
            one["system"],
            one["length"],
            "yes" if one["pipelined"] else "no",
            one["optima"],
            one["faster"],
            ", ".join(f"{gain:.3f}x" for gain in one["largest_by_payload"]),
        )
        for one in beyond["longer"]
    ]
    head = ("system", "length <=", "pipelined", "optima", "faster than length <= 5", "at most")
    yield from table(head, rows)


def iteration_table(beyond: Data) -> Lines:
    """Iterations of several reductions."""
    rows = []
    for one in beyond["iterations"]:
        best = one["together_s"]
        times = (one[f"{name}_s"] for name in ("default_layout", "worst_single", "best_single"))
        rows.append(
            (
                one["system"],
                one["axes"],
                " ".join(one["requests"]),
                f"{best:.4g} s",
                *(f"{seconds / best:.2f}x" for seconds in times),
                f"{one['after_another_s'] / best:.2f}x",
                f"{one['bound_s'] / best:.2f}x",
            )
        )
    head = ("system", "axes", "requests", "answer", "default layout", "worst placement")
    last = ("best placement", "placement first", "bound")
    yield from table((*head, *last), rows)


def together_table(beyond: Data) -> Lines:
    """Choosing placement and programs together, over all iterations of one and two requests."""
    names = [f"{count}_{way}" for count in _COUNTS for way in ("plain", "pipelined")]
    rows = [(one["system"], *(_choice(one[name]) for name in names)) for one in beyond["together"]]
    head = ("system", "one request", "pipelined", "two requests", "pipelined")
    yield from table(head, rows)


_COUNTS = ("single_request", "two_requests")


def _choice(found: Data) -> str:
    """How often, and how much at most: of tied placements the luckiest; the worst."""
    every = [found[name] for name in ("after_another", "unlucky")]
    lost = [
        f"{one['by_1_percent']} (to {one['largest']:.2f}x)" if one["by_1_percent"] else "0"
        for one in every
    ]
    return f"{'; '.join(lost)} of {found['iterations']}"


def axes_table(beyond: Data) -> Lines:
    """Gains by the number of reduced axes, and reducing axes one after the other."""
    rows = []
    for one in beyond["multi_axis"]:
        cells = [
            f"{percent(found['gaining'] / found['requests'])}, {found['mean_of_gaining']:.2f}x"
            for found in one["by_reduced_axes"].values()
        ]
        after = (one["mean_of_one_after_another"], one["largest_of_one_after_another"])
        rows.append((one["system"], *cells, *(f"{value:.2f}x" for value in after)))
    head = ("system", "1 axis", "2 axes", "3 axes", "one after another, mean", "at most")
    yield from table(head, rows)
