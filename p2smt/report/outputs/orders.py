"""Rank orders side by side: ``compare --json``, and in ``solve --json`` of named hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from p2smt.cost.regime import Decisive
from p2smt.report.outputs.shape import (
    Count,
    Gap,
    Noted,
    Output,
    OutputPart,
    PriceBasisWord,
    RangeSeconds,
    RankMatrix,
    Said,
    Seconds,
)
from p2smt.result import Status

DecisiveLink = Annotated[
    Decisive,
    Noted(
        regime=Said(
            "The largest part of its time: latency, cards (the nodes' network cards), node links, "
            "or a level further out; null: it takes none."
        ),
        level=Said("Of the link that bounds it; null: none does."),
        owner=Said("The switch or host whose uplink it is; null: not by name."),
        load_bytes=Said("Bytes on that link in one direction.", ge=0),
    ),
    Said("What decides the time of a request."),
]


class OrderParts(OutputPart):
    """A rank order, one collective per request; lists are in the order of the requests."""

    name: str
    objective_s: Annotated[Seconds | None, Said("Seconds; null: bandwidths are not stated.")]
    seconds: Annotated[
        Sequence[Seconds] | None,
        Said("Of one execution of each request; null: as above."),
    ]
    bottlenecks: Annotated[Sequence[DecisiveLink] | None, Said("null: as above.")]
    crossings: Annotated[
        Mapping[str, Count],
        Said("By level, connections that join ranks under different entities of it."),
    ]
    matters_from: Annotated[
        float | None,
        Said(
            ge=1,
            description="Least oversubscription of uplinks without a stated bandwidth that slows "
            "it down; null: none does, or all are stated.",
        ),
    ]
    matrix: Annotated[RankMatrix | None, Said("That expresses it; null: none does.")]
    hosts: Annotated[
        Sequence[str] | None, Said("The host of each rank; null: nodes have no names.")
    ]
    range_s: RangeSeconds
    basis: PriceBasisWord


class OrderBeside(OrderParts):
    """An order with its distance to the best one."""

    gap: Annotated[
        float | None,
        Said(
            ge=-1,
            description="Its time over that of the best order found, less one (below 0: no matrix "
            "expresses it, and it is faster than all); null: not known.",
        ),
    ]
    bound_gap: Annotated[
        Gap | None,
        Said("The same over the proved bound; null: no bound holds for it."),
    ]


class OrderOutput(Output):
    """The hosts of a job in the best order that was found for a plan."""

    hosts: Annotated[Sequence[str], Said("The host of each rank, in rank order.")]
    idle: Annotated[Sequence[str], Said("Hosts without ranks, as they were listed.")]
    seconds: Annotated[
        Seconds | None, Said("Null: nothing says where hosts are, and they stay as given.")
    ]
    listed_s: Annotated[Seconds | None, Said("On the first hosts as listed; null: as above.")]
    trained: Annotated[bool, Said("Whether seconds are of an iteration, not of the requests.")]
    compared: Annotated[Count, Said("Orders that were priced.", ge=1)]
    notes: Annotated[Sequence[str], Said("How the text is used, and what else is to be known.")]
    text: Annotated[str, Said("What --to writes.")]


class CompareOutput(Output):
    """Rank orders side by side; the numbers at the top are those of the best order."""

    status: Annotated[Status, Said("optimal: the best order is proved to be it.")]
    interrupted: Annotated[bool, Said("Stopped by the user: the best so far.")]
    notes: Annotated[Sequence[str], Said("What else is to be known, in words.")]
    objective: Literal["sum", "max"]
    objective_s: Annotated[Seconds | None, Said("Seconds; null: none, or not known.")]
    bound_s: Annotated[Seconds | None, Said("Seconds, proved; null: not known.")]
    requests: Annotated[Sequence[str], Said("The requests in words.")]
    orders: Sequence[OrderBeside]
    best: Annotated[OrderParts | None, Said("null: none was found.")]
    idle: Annotated[
        Sequence[str] | None,
        Said("Hosts without ranks in the best order; null: nodes have no names."),
    ]
    uplinks_stated: Annotated[bool, Said("false: no times, as a bandwidth is unknown.")]
    range_s: RangeSeconds
    basis: PriceBasisWord
