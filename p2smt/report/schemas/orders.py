"""Rank orders side by side: ``compare --json``, and in ``solve --json`` of named hosts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.report.schemas.base import Bytes, Count, Gap, Output, OutputPart, RankMatrix, Seconds
from p2smt.result import Status


class DecisiveLink(OutputPart):
    """What decides the time of a request."""

    regime: Annotated[
        str | None,
        Field(
            description="The largest part of its time: latency, cards (the nodes' network cards), "
            "node links, or a level further out; null: it takes none."
        ),
    ]
    level: Annotated[str | None, Field(description="Of the link that bounds it; null: none does.")]
    owner: Annotated[
        str | None, Field(description="The switch or host whose uplink it is; null: not by name.")
    ]
    load_bytes: Annotated[Bytes, Field(description="Bytes on that link in one direction.")]


class OrderParts(OutputPart):
    """A rank order, one collective per request; lists are in the order of the requests."""

    name: str
    objective_s: Annotated[
        Seconds | None, Field(description="Seconds; null: bandwidths are not stated.")
    ]
    seconds: Annotated[
        list[Seconds] | None, Field(description="Of one execution of each request; null: as above.")
    ]
    bottlenecks: Annotated[list[DecisiveLink] | None, Field(description="null: as above.")]
    crossings: Annotated[
        dict[str, Count],
        Field(description="By level, connections that join ranks under different entities of it."),
    ]
    matters_from: Annotated[
        float | None,
        Field(
            ge=1,
            description="Least oversubscription of uplinks without a stated bandwidth that slows "
            "it down; null: none does, or all are stated.",
        ),
    ]
    matrix: Annotated[RankMatrix | None, Field(description="That expresses it; null: none does.")]
    hosts: Annotated[
        list[str] | None, Field(description="The host of each rank; null: nodes have no names.")
    ]


class OrderBeside(OrderParts):
    """An order with its distance to the best one."""

    gap: Annotated[
        float | None,
        Field(
            ge=-1,
            description="Its time over that of the best order found, less one (below 0: no matrix "
            "expresses it, and it is faster than all); null: not known.",
        ),
    ]
    bound_gap: Annotated[
        Gap | None,
        Field(description="The same over the proved bound; null: no bound holds for it."),
    ]


class CompareOutput(Output):
    """Rank orders side by side; the numbers at the top are those of the best order."""

    status: Annotated[Status, Field(description="optimal: the best order is proved to be it.")]
    interrupted: Annotated[bool, Field(description="Stopped by the user: the best so far.")]
    notes: Annotated[list[str], Field(description="What else is to be known, in words.")]
    objective: Literal["sum", "max"]
    objective_s: Annotated[Seconds | None, Field(description="Seconds; null: none, or not known.")]
    bound_s: Annotated[Seconds | None, Field(description="Seconds, proved; null: not known.")]
    requests: Annotated[list[str], Field(description="The requests in words.")]
    orders: list[OrderBeside]
    best: Annotated[OrderParts | None, Field(description="null: none was found.")]
    idle: Annotated[
        list[str] | None,
        Field(description="Hosts without ranks in the best order; null: nodes have no names."),
    ]
    uplinks_stated: Annotated[
        bool, Field(description="false: no times, as a bandwidth is unknown.")
    ]
