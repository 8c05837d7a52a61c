"""The plan file of a transfer: layouts, trees of pieces, times and the prices of the bound."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from p2smt.cluster.file_model import dump_topology
from p2smt.errors import InputError
from p2smt.files.json_text import json_kind
from p2smt.files.plain import to_plain
from p2smt.plans.file import MAX_PLAN_BYTES, read_kind
from p2smt.plans.file import TRANSFER as KIND
from p2smt.transfer.file_model import SCHEMA_VERSION, TransferModel
from p2smt.transfer.layout_file import shards_of
from p2smt.transfer.layouts import Shards, Tensor, WeightLayout
from p2smt.transfer.plan import TreePiece
from p2smt.transfer.ports import Port

if TYPE_CHECKING:
    from p2smt.transfer.answer import TransferAnswer

REMEDY = "give a file that transfer -o wrote"


def transfer_text(answer: TransferAnswer, command: str = "") -> str:
    """The plan as the text of its file; ``command``: what was asked."""
    return json.dumps(transfer_plan_data(answer, command)) + "\n"


def transfer_plan_data(answer: TransferAnswer, command: str = "") -> dict[str, Any]:
    """The plan as plain data, valid under :class:`TransferModel`."""
    question, found, by_relays = answer.question, answer.found, answer.relayed_bound_s
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "topology": dump_topology(question.topology),
        "rates": question.ports.rates,
        "relayed": question.relay,
        "relayed_bound_s": None if by_relays is None else float(by_relays),
        "command": command,
        "item_bytes": question.item_bytes,
        "source_devices": list(question.sources),
        "target_devices": list(question.targets),
        "patterns": [
            {
                "tensors": list(one.tensors),
                "shape": list(one.shape),
                "before": _boxes(question.before.shards[one.tensors[0]]),
                "after": _boxes(question.after.shards[one.tensors[0]]),
            }
            for one in question.moves.patterns
        ],
        "pieces": [_piece_data(piece) for piece in found.pieces],
        "status": answer.status.value,
        "buckets": answer.buckets.count,
        "staging_bytes": answer.buckets.staging_bytes,
        "bandwidth_s": float(answer.buckets.bandwidth_s),
        "fill_s": answer.fill_s,
        "bound_s": str(found.certificate.bound_s),
        "prices": [
            {**asdict(port), "price": str(price)}
            for port, price in sorted(found.certificate.prices.items())
        ],
    }


def _boxes(shards: Shards) -> list[dict[str, Any]]:
    return [{"box": [*map(list, box)], "devices": list(ranks)} for box, ranks in shards.boxes]


def _piece_data(piece: TreePiece) -> dict[str, Any]:
    data: dict[str, Any] = to_plain(replace(piece, edges=()))
    return data | {"edges": [*itertools.chain.from_iterable(piece.edges)]}


def is_transfer(path: str) -> bool:
    """Whether a file is the plan of a transfer, by its ``kind``; any other file is not."""
    return json_kind(path, MAX_PLAN_BYTES) == KIND


def read_transfer(path: str) -> TransferModel:
    """The plan in a JSON file.

    Raises:
        InputError: the file cannot be read or is no such plan; or a key breaks a rule, which it
            names.
    """
    return read_kind(TransferModel, path, KIND, REMEDY)


# What a file holds, as values again.


def layouts_of(model: TransferModel) -> tuple[WeightLayout, WeightLayout]:
    """Both layouts.

    Raises:
        InputError: a tensor is there twice, or a layout misses or doubles an element.
    """
    tensors: dict[str, Tensor] = {}
    before: dict[str, Shards] = {}
    after: dict[str, Shards] = {}
    for pattern in model.patterns:
        first, second = shards_of(pattern.before), shards_of(pattern.after)
        for name in pattern.tensors:
            if name in tensors:
                raise InputError(f"tensor {name[:80]!r}", "is there twice", "name each once")
            tensors[name] = Tensor(name, tuple(pattern.shape))
            before[name], after[name] = first, second
    return (
        WeightLayout(len(model.source_devices), tensors, before),
        WeightLayout(len(model.target_devices), tensors, after),
    )


def pieces_of(model: TransferModel) -> tuple[TreePiece, ...]:
    """The pieces.

    Raises:
        InputError: an edge has no receiver.
    """
    found = []
    for one in model.pieces:
        if len(one.edges) % 2:
            given = f"a piece of class {one.number} with {len(one.edges)} ends of edges"
            raise InputError(given, "must have a sender and a receiver for each edge")
        edges = tuple(zip(one.edges[::2], one.edges[1::2], strict=True))
        found.append(TreePiece(one.number, one.start, one.stop, edges))
    return tuple(found)


def prices_of(model: TransferModel) -> dict[Port, Fraction]:
    """The prices by port."""
    return {
        Port(one.level, one.entity, one.number, one.way): Fraction(one.price)
        for one in model.prices
    }
