"""A transfer as one rank sees it: what it packs, sends, takes and unpacks in each bucket.

In a bucket a rank stages its part of each piece that it sends or takes, once, one behind the other.
Parts are sent in chunks: chunk c passes the d-th edge of its way in round c + d, so that a device
passes on a chunk while it takes the next.  A round's messages are in the order of pieces and of
their edges on all ranks, so that both sides of a pair name them in one order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.runtime.transfers.transfer_job import OwnBoxes, TransferJob, runs_of
from p2smt.transfer.classes import ranges, volume
from p2smt.transfer.layouts import IndexBox, overlap
from p2smt.transfer.plan import Edge, TreePiece, index_of


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
