"""The shapes of ``layout.json``, tensors with who holds which box of each, and of plan files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.cluster.file_model import TopologyModel
from p2smt.files.validation import StrictModel
from p2smt.transfer.buckets import MAX_BUCKETS

HeldSize = Annotated[int, Field(ge=1, lt=2**53)]
HeldIndex = Annotated[int, Field(ge=0, lt=2**53)]


class HeldBoxModel(StrictModel):
    """``box``: start and stop of each dimension; ``devices``: the ranks that hold it, ascending."""

    box: list[Annotated[list[HeldIndex], Field(min_length=2, max_length=2)]]
    devices: Annotated[list[HeldIndex], Field(min_length=1)]


class HeldTensorModel(StrictModel):
    """A tensor: its name on both sides of a transfer, its shape, and all boxes of it.

    ``like`` names a tensor before it of the same shape whose boxes it has, instead of ``boxes``.
    """

    name: Annotated[str, Field(min_length=1, max_length=500)]
    shape: list[HeldSize]
    boxes: list[HeldBoxModel] = Field(default_factory=list)
    like: str = ""


class WeightLayoutModel(StrictModel):
    """Devices 0 .. ``devices`` - 1 of a mesh, and the tensors that lie on it."""

    devices: Annotated[int, Field(ge=1, le=2**16)]
    tensors: Annotated[list[HeldTensorModel], Field(min_length=1)]


# Plan files.


SCHEMA_VERSION = 1
WholeNumbers = Annotated[list[HeldIndex], Field(min_length=1)]
FractionText = Annotated[str, Field(pattern=r"^[0-9]{1,1000}(/[1-9][0-9]{0,999})?$")]
PlanSeconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class TransferPatternModel(StrictModel):
    """``tensors``: the names of those that lie alike; their ``shape`` and boxes on both meshes.

    ``before`` and ``after``: by ranks of the mesh that they are moved from, and of the other one.
    """

    tensors: Annotated[list[str], Field(min_length=1)]
    shape: list[HeldSize]
    before: Annotated[list[HeldBoxModel], Field(min_length=1)]
    after: Annotated[list[HeldBoxModel], Field(min_length=1)]


class TransferPieceModel(StrictModel):
    """Elements ``start`` to ``stop`` of the class ``number``; they are numbered by pattern.

    ``edges``: sender and receiver of each edge in turn, as devices, in the order of sending.
    """

    number: HeldIndex
    start: HeldIndex
    stop: HeldSize
    edges: WholeNumbers


class PortPriceModel(StrictModel):
    """The ``price`` of a byte at a port of an ``entity`` of a ``level``; ``way``: 0 out, 1 in.

    ``number`` is that of the port, or -1: what the device may draw in all; -2: all ports of a node.
    """

    level: HeldIndex
    entity: HeldIndex
    number: Annotated[int, Field(ge=-2, lt=2**31)]
    way: Annotated[int, Field(ge=0, le=1)]
    price: FractionText


class TransferModel(StrictModel):
    """The plan of a transfer from one mesh to another.

    ``item_bytes``: of an element.
    ``source_devices`` and ``target_devices`` are the devices of both layouts' ranks, ``rates`` how
    fast ports are: at nominal rates, or at what sends reach.  ``relayed``: devices
    pass on what they neither hold nor need.  ``buckets``: every piece is sent in so many equal
    parts, and ``staging_bytes`` is what a device has of them at once at most.
    ``bandwidth_s`` is the time of the busiest port, bucket by bucket, and ``fill_s`` what latencies
    and the filling of the longest chain add; ``bound_s`` is what the prices prove, exactly.
    ``relayed_bound_s``: what plans that relay are not below, where none was asked for; null: not
    known.  The file does not prove it.
    ``command``: what was asked, with the model and both layouts; empty: not by a command.
    """

    schema_version: Literal[1]
    kind: Literal["transfer"]
    topology: TopologyModel
    rates: Literal["nominal", "send"]
    relayed: bool = False
    relayed_bound_s: PlanSeconds | None = None
    command: Annotated[str, Field(max_length=4096)] = ""
    item_bytes: Annotated[int, Field(ge=1, le=16)]
    source_devices: WholeNumbers
    target_devices: WholeNumbers
    patterns: Annotated[list[TransferPatternModel], Field(min_length=1)]
    pieces: list[TransferPieceModel]
    status: Literal["optimal", "feasible"]
    buckets: Annotated[int, Field(ge=1, le=MAX_BUCKETS)]
    staging_bytes: HeldIndex
    bandwidth_s: PlanSeconds
    fill_s: PlanSeconds
    bound_s: FractionText
    prices: list[PortPriceModel]
