"""``layout.json``: a layout of any framework, tensor by tensor, read and written."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.files.validation import validated
from p2smt.transfer.file_model import HeldBoxModel, HeldTensorModel, WeightLayoutModel
from p2smt.transfer.layouts import Shards, Tensor, WeightLayout

MAX_BYTES = 256 * 1024 * 1024


def read_layout_file(path: str) -> WeightLayout:
    """The layout that a file describes.

    Raises:
        InputError: no such file, not JSON of this form, a name twice, or what a layout may not
            be: an element that nobody holds, or that a device holds twice.
    """
    source = f"layout file {path!r}"
    data = read_json(path, source, "give a layout.json", MAX_BYTES)
    return layout_of_data(data, source)


def layout_of_data(data: object, source: str) -> WeightLayout:
    """As :func:`read_layout_file`, of the data of such a file; ``source`` names it."""
    model = validated(WeightLayoutModel, data, source)
    tensors: dict[str, Tensor] = {}
    shards: dict[str, Shards] = {}
    known: dict[Shards, Shards] = {}
    for one in model.tensors:
        if one.name in tensors:
            raise InputError(f"{source}: tensor {one.name[:80]!r}", "is there twice")
        found = _shards(one, shards, tensors, source)
        tensors[one.name] = Tensor(one.name, tuple(one.shape))
        shards[one.name] = known.setdefault(found, found)
    return WeightLayout(model.devices, tensors, shards)


def _shards(
    one: HeldTensorModel, shards: dict[str, Shards], tensors: dict[str, Tensor], source: str
) -> Shards:
    given = f"{source}: tensor {one.name[:80]!r}"
    if bool(one.boxes) == bool(one.like):
        raise InputError(given, "must have either boxes or like", "give one of the two")
    if not one.like:
        return Shards(tuple(sorted(shards_of(one.boxes).boxes)))
    if one.like not in shards or tensors[one.like].shape != tuple(one.shape):
        rule = f"is like {one.like[:80]!r}, which is no tensor before it of its shape"
        raise InputError(given, rule, "name one, or give boxes")
    return shards[one.like]


def shards_of(boxes: Sequence[HeldBoxModel]) -> Shards:
    """The boxes of a file, in its order."""
    return Shards(
        tuple(
            (tuple((start, stop) for start, stop in one.box), tuple(one.devices)) for one in boxes
        )
    )
