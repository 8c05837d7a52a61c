"""A transfer by definition, all devices in one process: pieces go edge by edge, in their order.

Followed is every element of every tensor: who has it by then.  Neither buckets nor rounds nor the
packing of ranks have a part in it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from p2smt.runtime.transfers.transfer_job import TransferJob, runs_of
from p2smt.transfer.classes import ranges
from p2smt.transfer.layouts import IndexBox
from p2smt.transfer.plan import TreePiece, index_of


def run_transfer_reference(job: TransferJob) -> list[str]:
    """Carry out all pieces; what is wrong, of each rank the first, in words."""
    held = _Held(job)
    for piece in job.pieces:
        held.send(piece)
    found = ((rank, device, held.lacking(device)) for rank, device in enumerate(job.devices))
    return [f"rank {rank}, device {device}: {lacks}" for rank, device, lacks in found if lacks]


class _Held:
    """Which elements of every tensor every device has."""

    def __init__(self, job: TransferJob) -> None:
        self.job = job
        self.arrays: dict[tuple[int, str], NDArray[np.bool_]] = {}
        for device in job.devices:
            for name, boxes in job.had(device).items():
                for box in boxes:
                    self.of(device, name)[_slices(box)] = True

    def of(self, device: int, name: str) -> NDArray[np.bool_]:
        """What a device has of a tensor."""
        if (device, name) not in self.arrays:
            self.arrays[device, name] = np.zeros(self.job.before.tensors[name].shape, dtype=bool)
        return self.arrays[device, name]

    def send(self, piece: TreePiece) -> None:
        """Send a piece along its edges."""
        runs = list(_runs(self.job, piece))
        for source, target in piece.edges:
            for name, where in runs:
                self.of(target, name)[where] |= self.of(source, name)[where]

    def lacking(self, device: int) -> str:
        """The first element that a device lacks; "": none."""
        for name, boxes in self.job.wanted(device).items():
            for box in boxes:
                found = self.of(device, name)[_slices(box)]
                if not found.all():
                    index = index_of(box, int(np.argmin(found)))
                    return f"element {index} of tensor {name[:80]!r} did not arrive"
        return ""


def _runs(job: TransferJob, piece: TreePiece) -> Iterator[tuple[str, tuple[slice, ...]]]:
    for name, cell, low, high in ranges(job.moves, piece.number, piece.start, piece.stop):
        for run in runs_of(cell, low, high):
            yield name, _slices(run)


def _slices(box: IndexBox) -> tuple[slice, ...]:
    return tuple(slice(*ends) for ends in box)
