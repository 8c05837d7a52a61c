"""Writes the page of the study from ``results.json`` and ``README.in.md``.

python -m experiments.unequal_racks.page
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from experiments.testbed.script import ended
from experiments.testbed.written import results
from experiments.unequal_racks.study import HERE, RESULTS
from experiments.unequal_racks.summary import Data, errors, of, shared
from p2smt.errors import InputError
from p2smt.search.allocation.cell_grids import SORTED

PAGE, TEMPLATE = HERE / "README.md", HERE / "README.in.md"


def page(data: Data) -> str:
    """The page."""
    cluster, solved, requests = data["cluster"], data["solved"], data["requests"]
    plain, both = shared(data)
    return TEMPLATE.read_text(encoding="utf-8").format(
        racks=" + ".join(map(str, cluster["nodes_per_rack"])),
        placed="; ".join(_placed(cluster)),
        rate=cluster["uplink_mbit_per_s"],
        axes=",".join(f"{name}={size}" for name, size in data["axes"]),
        payload=requests[0][2] / 2**20,
        **solved,
        orders=sum(count for _, count in data["every_order"]),
        every=table(["predicted", "orders"], _every(data)),
        repeat=data["repeat"],
        table=table(_HEAD, _rows(data)),
        verdict="beats" if data["summary"]["chosen_beats_alphabetical"] else "does not beat",
        same=_same(data),
        requests=table(_REQUESTS, _of_requests(data)),
        error_plain=max(map(abs, plain)),
        shared_most=max(both),
        error_alone=max(map(abs, errors(data["orders"], "alone_"))),
        alone=sum(len(order["alone_times_s"]) for order in data["orders"]),
        **_sorted(data),
        about=_about(data["header"]),
    )


def _every(data: Data) -> Iterator[list[Any]]:
    for seconds, count in data["every_order"]:
        yield [f"{seconds:.2f} s", count]


def _sorted(data: Data) -> dict[str, float]:
    """What the chosen order gains over the one sorted by rack."""
    found = next(one for one in data["summary"]["orders"] if one["name"] == SORTED)
    return {f"sorted_{key}": found[f"over_chosen_{key}"] - 1 for key in ("predicted", "measured")}


def _placed(cluster: Data) -> Iterator[str]:
    """Such as ``n1, n3, n5; n2, n6; n4``: the hosts of each rack."""
    ends = [0, *accumulate(cluster["nodes_per_rack"])]
    for first, last in pairwise(ends):
        yield ", ".join(cluster["hosts"][first:last])


_HEAD = [
    *("order", "hosts of ranks 0 to 5", "predicted", "measured", "spread"),
    *("over chosen, predicted", "measured"),
]
_REQUESTS = ["order", "all-reduce, predicted", "measured", "sends, predicted", "measured"]


def _rows(data: Data) -> Iterator[list[Any]]:
    for order, found in zip(data["orders"], data["summary"]["orders"], strict=True):
        seconds = [f"{found[key]:.2f}" for key in ("predicted_s", "median_s", "spread_s")]
        ratios = [f"{found[f'over_chosen_{key}']:.2f}" for key in ("predicted", "measured")]
        yield [order["name"], " ".join(order["hosts"]), *seconds, *ratios]


def _of_requests(data: Data) -> Iterator[list[Any]]:
    for order in data["orders"]:
        both = zip(order["predicted_s"], order["times_s"], strict=True)
        times = [f"{s:.2f}" for said, got in both for s in (said, statistics.median(got))]
        yield [order["name"], *times]


def _same(data: Data) -> str:
    """Whether another order is the chosen one by another name: then it shows what repeats."""
    chosen = of(data, "chosen")
    for order in data["orders"]:
        if order is not chosen and order["hosts"] == chosen["hosts"]:
            return f"The order *{order['name']}* is the chosen one: a control, measured apart."
    return ""


def _about(header: Data) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in header["versions"].items())
    return f"Measured {header['date']} on {header['machine']}; {versions}; seed {header['seed']}."


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as Markdown has it."""
    lines = [list(head), ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(arguments: Sequence[str]) -> None:
    """Write the page.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    PAGE.write_text(page(results.read(RESULTS)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
