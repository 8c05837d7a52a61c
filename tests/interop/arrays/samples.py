"""Cases in the JSON form p2smt-reshard-cases/1, read for tests.

A case has a mesh, maybe device ids, a shape, types before and after (axes per dimension, major
first; a sub-axis as Shardy writes it), and what a peer does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2smt.resharding.endpoints import Ends
from p2smt.resharding.states import state_of
from p2smt.resharding.steps import KINDS, ArrayStep, StepKind
from p2smt.resharding.types import ArrayType, ElementType, Layout, Mesh, Uneven, parse_part

_KINDS = {
    "all_slice": StepKind.SLICE,
    "all_gather": StepKind.ALL_GATHER,
    "all_to_all": StepKind.ALL_TO_ALL,
    "collective_permute": StepKind.PERMUTE,
}


@dataclass(frozen=True, slots=True)
class SampleCase:
    """A case: ``peer`` as the file has it."""

    name: str
    source: ArrayType
    target: ArrayType
    peer: dict[str, Any]

    def shardy_steps(self, ends: Ends) -> list[ArrayStep]:
        """What Shardy does, in a frame; each step is checked."""
        found: list[ArrayStep] = []
        state = ends.source
        for op in self.peer["shardy"]:
            layout = _layout({"dims": op["out"], "partial": []}, ends.frame.mesh)
            after = state_of(layout, ends.frame.digits, ends.frame.mesh, ends.target.order)
            step = KINDS[_KINDS[op["op"]]](state, after)
            step.check(ends.frame)
            found.append(step)
            state = after
        return found


def read_sample(path: Path) -> SampleCase:
    """The case of a file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    axes = [(name, size) for name, size in data["mesh"]]
    source = Mesh.of(axes, data["device_ids"])
    target = Mesh.of(axes, data.get("dst_device_ids") or data["device_ids"])
    uneven = Uneven.REFUSE if data["even"] else Uneven.PADDED
    first, last = (
        ArrayType(
            mesh,
            tuple(data["shape"]),
            ElementType.parse(data["dtype"]),
            _layout(data[end], mesh),
            uneven,
        )
        for mesh, end in ((source, "src"), (target, "dst"))
    )
    return SampleCase(data["name"], first, last, data["peer"])


def _layout(end: dict[str, Any], mesh: Mesh) -> Layout:
    text = str(end)
    dims = tuple(tuple(parse_part(part, text, mesh) for part in dim) for dim in end["dims"])
    return Layout(dims, tuple(parse_part(part, text, mesh) for part in end["partial"]))
