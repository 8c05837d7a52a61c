"""Requests of an iteration, and what each of them hides under."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from p2smt.collectives.names import RequestKind


class Cover(Enum):
    """The work under which communication hides, as far as that takes at least as long."""

    NOTHING = "nothing"
    PRODUCT = "the matrix product beside it"
    ATTENTION = "attention of the blocks before"
    FORWARD = "forward of the first micro-batch"
    BACKWARD = "backward of the last micro-batch"
    LAYERS_BACKWARD = "backward of the layers before"
    COMPUTE = "forward and backward of the layers before"


@dataclass(frozen=True, slots=True)
class AxisRequest:
    """What a device asks of some axes in an iteration: ``calls`` times ``payload_bytes``.

    ``name`` tells it in tables ("tp forward"); ``payload_bytes`` is the whole vector, as in
    :class:`~p2smt.parallelism.request.Request`.
    """

    name: str
    kind: RequestKind
    axes: tuple[str, ...]
    payload_bytes: int
    calls: int
    cover: Cover
