"""The shape of ``layout.json``: tensors, and who holds which box of each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p2smt.files.validation import StrictModel

HeldSize = Annotated[int, Field(ge=1, lt=2**53)]
HeldIndex = Annotated[int, Field(ge=0, lt=2**53)]


class HeldBoxModel(StrictModel):
    """A box, ``[start, stop]`` for each dimension, and the devices that hold it, ascending."""

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
