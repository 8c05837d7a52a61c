"""One rank of a transfer: packs, sends and unpacks bucket by bucket, and checks all values.

Elements move as bytes, whatever type they are of.  A rank has both copies of its weights in one
piece of memory, and beside it the staging, which it makes anew for each transfer.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist

from p2smt.runtime.allocated import Allocated, watched
from p2smt.runtime.arrays.moves import ArrayGroups, exchange
from p2smt.runtime.payload import RankReport, RequestRun, RunOptions
from p2smt.runtime.process_groups import Site, Tell, machine
from p2smt.runtime.transfers.transfer_job import (
    OwnBoxes,
    TransferJob,
    box_values,
    elements_of,
    runs_of,
)
from p2smt.transfer.classes import ranges, volume
from p2smt.transfer.layouts import IndexBox, overlap
from p2smt.transfer.plan import Edge, TreePiece, index_of


def run_transfer_rank(job: TransferJob, options: RunOptions, site: Site, tell: Tell) -> RankReport:
    """Run a transfer's part of a rank; the default process group must exist."""
    tell("preparation")
    groups = ArrayGroups()
    groups.make(())
    runner = _TransferRunner(job, options, site, tell, groups.of_all if job.ranks > 1 else None)
    runner.check()
    for repetition in options.repetitions:
        runner.repeat(repetition)
    return RankReport(site.rank, [runner.run], machine(site))


class _TransferRunner:
    def __init__(
        self,
        job: TransferJob,
        options: RunOptions,
        site: Site,
        tell: Tell,
        group: dist.ProcessGroup | None,
    ) -> None:
        self.job, self.options, self.site, self.tell, self.group = job, options, site, tell, group
        self.device = job.devices[site.rank]
        self.share = rank_share(job, self.device)
        self.weights = RankWeights.of(job, self.device, site.device)
        self.run = RequestRun()

    def check(self) -> None:
        """Compare every value of both copies, and note what is staged meanwhile."""
        self.tell("check")
        for fault in self.share.faults:
            self._note(fault)
        self.weights.fill(self.options.seed)
        with watched(self.weights.memory) as allocated:
            self._move(allocated)
        self.run.memory_bytes = allocated.peak_bytes - self.weights.memory.nbytes
        self._compare(self.options.seed, "")
        self.run.checked = True

    def repeat(self, repetition: int) -> None:
        """Run once more, timed and compared; values are new each time."""
        turn = repetition + self.options.warmup + 1
        self.weights.fill(self.options.seed + turn)
        self.tell("repetition")
        self.site.synchronize()
        self.site.barrier()
        begin = time.perf_counter()
        self._move()
        self.site.synchronize()
        taken = time.perf_counter() - begin
        right = self._compare(self.options.seed + turn, f" (in {self.options.named(repetition)})")
        if repetition >= 0:
            self.run.total_s.append(taken)
            self.run.repetitions_checked += right

    def _move(self, allocated: Allocated | None = None) -> None:
        self.weights.keep(self.share)
        size = self.share.staged, self.job.item_bytes
        staging = torch.empty(size, dtype=torch.uint8, device=self.site.device)
        for number, bucket in enumerate(self.share.buckets, 1):
            self.tell(f"bucket {number} of {self.job.buckets}")
            self._move_bucket(bucket, staging)
        if allocated is not None:
            allocated.settle(self.weights.memory, staging)

    def _move_bucket(self, bucket: BucketShare, staging: torch.Tensor) -> None:
        """A round ends when all that is taken in it is there: the next one passes it on."""
        for copy in bucket.packs:
            staged(staging, copy).copy_(self.weights.part(copy, after=False))
        for sent, taken in bucket.rounds:
            if self.group is not None:
                exchange(_of_ranks(staging, sent), _of_ranks(staging, taken), self.group)
        for copy in bucket.unpacks:
            self.weights.part(copy, after=True).copy_(staged(staging, copy))

    def _compare(self, seed: int, where: str) -> bool:
        """Note what is wrong first; whether all is right."""
        wrong = self.weights.wrong(seed)
        if wrong:
            self._note(f"{wrong}{where}")
        return not wrong

    def _note(self, wrong: str) -> None:
        if len(self.run.errors) < 2:
            self.run.errors.append(f"rank {self.site.rank}, device {self.device}: {wrong}")


def staged(staging: torch.Tensor, copy: LocalCopy) -> torch.Tensor:
    """Where the elements of a copy lie in the staging: a view."""
    size = int(np.prod(copy.shape, dtype=np.int64))
    whole = staging[copy.at : copy.at + size].view(*copy.shape, staging.shape[1])
    return whole[copy.inside]


def _of_ranks(
    staging: torch.Tensor, messages: Sequence[StagedMessage]
) -> list[tuple[int, torch.Tensor]]:
    return [(one.rank, staging[one.start : one.stop].view(-1)) for one in messages]


# Both copies of a rank's weights, with values that tensor and index name.


@dataclass(frozen=True, slots=True)
class RankWeights:
    """``memory`` holds the boxes of both sides, one behind the other; ``sides`` are views of it.

    ``boxes``: which boxes these are.  A view has a dimension more, the bytes of an element.
    """

    job: TransferJob
    memory: torch.Tensor
    boxes: tuple[OwnBoxes, OwnBoxes]
    sides: tuple[dict[str, list[torch.Tensor]], dict[str, list[torch.Tensor]]]

    @staticmethod
    def of(job: TransferJob, device: int, where: torch.device) -> RankWeights:
        """Room for the boxes of a device."""
        boxes = job.had(device), job.wanted(device)
        elements = sum(map(elements_of, boxes))
        memory = torch.empty((elements, job.item_bytes), dtype=torch.uint8, device=where)
        at = 0
        sides: tuple[dict[str, list[torch.Tensor]], ...] = ({}, {})
        for own, views in zip(boxes, sides, strict=True):
            for name, every in own.items():
                views[name] = []
                for box in every:
                    shape = [stop - start for start, stop in box]
                    part = memory[at : at + volume(box)]
                    views[name].append(part.view(*shape, job.item_bytes))
                    at += volume(box)
        return RankWeights(job, memory, boxes, (sides[0], sides[1]))

    def part(self, copy: LocalCopy, *, after: bool) -> torch.Tensor:
        """Where the elements of a copy lie on a side."""
        return self.sides[after][copy.tensor][copy.box][copy.where]

    def keep(self, share: RankShare) -> None:
        """Copy what the rank has before and after."""
        before, after = self.sides
        for one in share.kept:
            source = before[one.tensor][one.source][one.source_where]
            after[one.tensor][one.target][one.target_where].copy_(source)

    def fill(self, seed: int) -> None:
        """Give the source its values, and the destination none of its own: their complements."""
        for side, (own, views) in enumerate(zip(self.boxes, self.sides, strict=True)):
            for name in own:
                for number, view in enumerate(views[name]):
                    right = self._right(side, name, number, seed)
                    view.copy_(torch.bitwise_not(right) if side else right)

    def wrong(self, seed: int) -> str:
        """The first element of either side that is not what it must be, in words; "": none."""
        for side, views in enumerate(self.sides):
            for name, every in views.items():
                for number, view in enumerate(every):
                    right = self._right(side, name, number, seed)
                    if not torch.equal(view, right):
                        return self._said(side, name, number, view, right)
        return ""

    def _right(self, side: int, name: str, number: int, seed: int) -> torch.Tensor:
        shape, tensor = self.job.before.tensors[name].shape, self.job.tensor_number[name]
        box = self.boxes[side][name][number]
        values = box_values(shape, box, tensor, self.job.item_bytes, seed)
        return torch.from_numpy(values).to(self.memory.device)

    def _said(
        self, side: int, name: str, number: int, found: torch.Tensor, right: torch.Tensor
    ) -> str:
        box = self.boxes[side][name][number]
        unequal = (found != right).any(dim=-1).reshape(-1).cpu().numpy()
        first = int(np.flatnonzero(unequal)[0])
        is_, must = (
            bytes(one.reshape(-1, self.job.item_bytes)[first].cpu().numpy()).hex()
            for one in (found, right)
        )
        where = "" if side else " of the source"
        return (
            f"{np.count_nonzero(unequal)} elements of tensor {name[:80]!r}{where} are wrong, the "
            f"first at {index_of(box, first)}: expected {must}, found {is_}"
        )


# A transfer as one rank sees it: what it packs, sends, takes and unpacks in each bucket.
#
# In a bucket a rank stages its part of each piece that it sends or takes, once, one behind the
# other. Parts are sent in chunks: chunk c passes the d-th edge of its way in round c + d, so that a
# device passes on a chunk while it takes the next.  A round's messages are in the order of pieces
# and of their edges on all ranks, so that both sides of a pair name them in one order.


@dataclass(frozen=True, slots=True)
class LocalCopy:
    """Elements that lie both in the staging and in a box of the rank's own.

    In the staging they are those at ``inside`` of a box of this ``shape``, which begins at element
    ``at``; in box number ``box`` of the rank's boxes of ``tensor`` they are at ``where``.
    """

    at: int
    shape: tuple[int, ...]
    inside: tuple[slice, ...]
    tensor: str
    box: int
    where: tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class StagedMessage:
    """Elements ``start`` to ``stop`` of the staging, sent to a rank or taken from it."""

    rank: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class BucketShare:
    """What a rank does in a bucket; ``rounds``: what it sends and what it takes in each."""

    elements: int
    packs: tuple[LocalCopy, ...]
    rounds: tuple[tuple[tuple[StagedMessage, ...], tuple[StagedMessage, ...]], ...]
    unpacks: tuple[LocalCopy, ...]


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """Elements that a rank has before and after: from a box of its own into another one."""

    tensor: str
    source: int
    source_where: tuple[slice, ...]
    target: int
    target_where: tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class RankShare:
    """All that a rank does.

    ``faults``: what the plan asks of it that it cannot do, in words; a right plan has none.
    """

    kept: tuple[KeptCopy, ...]
    buckets: tuple[BucketShare, ...]
    faults: tuple[str, ...]

    @property
    def staged(self) -> int:
        """The most elements that it stages in a bucket."""
        return max((bucket.elements for bucket in self.buckets), default=0)


def rank_share(job: TransferJob, device: int) -> RankShare:
    """What the rank of a device does."""
    had, wanted = job.had(device), job.wanted(device)
    own = [piece for piece in job.pieces if any(device in edge for edge in piece.edges)]
    made = [_bucket(job, device, own, (had, wanted), bucket) for bucket in range(job.buckets)]
    faults = dict.fromkeys(fault for _, found in made for fault in found)
    shares = tuple(share for share, _ in made)
    return RankShare(tuple(_kept(had, wanted)), shares, tuple(faults))


def _kept(had: OwnBoxes, wanted: OwnBoxes) -> Iterator[KeptCopy]:
    for name in had.keys() & wanted.keys():
        for i, source in enumerate(had[name]):
            for j, target in enumerate(wanted[name]):
                both = overlap(source, target)
                if both is not None:
                    yield KeptCopy(name, i, _within(both, source), j, _within(both, target))


def _within(part: IndexBox, box: IndexBox) -> tuple[slice, ...]:
    """Where a part of a box lies in it."""
    return tuple(
        slice(low - start, high - start) for (low, high), (start, _) in zip(part, box, strict=True)
    )


def _bucket(
    job: TransferJob,
    device: int,
    pieces: Sequence[TreePiece],
    boxes: tuple[OwnBoxes, OwnBoxes],
    bucket: int,
) -> tuple[BucketShare, list[str]]:
    """The share of a bucket, and what the device lacks of what it is to send."""
    at, packs, unpacks, faults = 0, list[LocalCopy](), list[LocalCopy](), list[str]()
    sent: dict[int, list[StagedMessage]] = defaultdict(list)
    taken: dict[int, list[StagedMessage]] = defaultdict(list)
    for piece in pieces:
        part = _part(piece, bucket, job.buckets)
        size = part.stop - part.start
        if not size:
            continue
        if _sends_first(device, part.edges):
            found, lacks = _copies(job, part, boxes[0], at)
            packs += found
            faults += [f"is to send {what}, which it does not have" for what in lacks[:1]]
        if any(target == device for _, target in part.edges):
            unpacks += _copies(job, part, boxes[1], at)[0]
        for (source, target), depth in zip(part.edges, _depths(part.edges), strict=True):
            if device in (source, target):
                way, peer = (sent, target) if device == source else (taken, source)
                _chunks(way, job, job.rank_of[peer], (at, at + size), depth)
        at += size
    rounds = max((*sent, *taken), default=-1) + 1
    listed = tuple((tuple(sent[r]), tuple(taken[r])) for r in range(rounds))
    return BucketShare(at, tuple(packs), listed, tuple(unpacks)), faults


def _part(piece: TreePiece, bucket: int, buckets: int) -> TreePiece:
    size = piece.stop - piece.start
    low, high = (piece.start + size * (bucket + more) // buckets for more in (0, 1))
    return TreePiece(piece.number, low, high, piece.edges)


def _sends_first(device: int, edges: Sequence[Edge]) -> bool:
    """Whether a device sends before it takes."""
    return next(source == device for source, target in edges if device in (source, target))


def _depths(edges: Sequence[Edge]) -> Iterator[int]:
    """How many edges of its way come before each."""
    came: dict[int, int] = {}
    for source, target in edges:
        came[target] = came.get(source, 0) + 1
        yield came[target] - 1


def _chunks(
    rounds: dict[int, list[StagedMessage]],
    job: TransferJob,
    rank: int,
    ends: tuple[int, int],
    depth: int,
) -> None:
    """A message of each chunk, each in its round."""
    step = max(1, job.chunk_bytes // job.item_bytes)
    for chunk, start in enumerate(range(*ends, step)):
        message = StagedMessage(rank, start, min(start + step, ends[1]))
        rounds[chunk + depth].append(message)


def _copies(
    job: TransferJob, part: TreePiece, boxes: OwnBoxes, at: int
) -> tuple[list[LocalCopy], list[str]]:
    """Between the staging, from element ``at`` on, and own boxes; and what is in none of these."""
    found: list[LocalCopy] = []
    lacks: list[str] = []
    for tensor, cell, low, high in ranges(job.moves, part.number, part.start, part.stop):
        for run in runs_of(cell, low, high):
            shape, missing = tuple(stop - start for start, stop in run), volume(run)
            for number, box in enumerate(boxes.get(tensor, ())):
                both = overlap(run, box)
                if both is not None:
                    where = _within(both, run), tensor, number, _within(both, box)
                    found.append(LocalCopy(at, shape, *where))
                    missing -= volume(both)
            if missing:
                lacks.append(f"element {index_of(run, 0)} of tensor {tensor[:80]!r}")
            at += volume(run)
    return found, lacks
