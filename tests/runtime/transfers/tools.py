"""Jobs of transfers, and ranks that carry them out."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from p2smt.result import SearchLimits
from p2smt.runtime.payload import RankReport, RunOptions
from p2smt.runtime.process_groups import GroupCache, Site
from p2smt.runtime.transfers.transfer_job import TransferJob
from p2smt.runtime.transfers.transfer_rank import run_transfer_rank
from p2smt.transfer.buckets import bucket_times
from p2smt.transfer.layouts import Shards, Tensor, WeightLayout
from p2smt.transfer.plan import TreePiece
from p2smt.transfer.ports import PortMap
from p2smt.transfer.search import plan_moves
from tests.runtime.forked import fork_ranks, join
from tests.transfer.cases import Case, cluster, random_case

PORTS = PortMap(cluster(16, 4), "nominal")


def interleaved() -> Case:
    """Rows dealt out in turn on four devices; two replicas of columns on four others, one kept."""
    dealt = Shards(tuple((((row, row + 1), (0, 7)), (row % 4,)) for row in range(10)))
    columns = Shards(
        tuple((((0, 10), ends), (k, k + 2)) for k, ends in enumerate([(0, 3), (3, 7)]))
    )
    whole = Shards(((((0, 5),), (0, 1, 2, 3)),))
    one = Shards(((((0, 2),), (0,)), (((2, 5),), (1, 2, 3))))
    number = Shards((((), (1,)),))
    everywhere = Shards((((), (0, 1, 2, 3)),))
    tensors = {"w": Tensor("w", (10, 7)), "b": Tensor("b", (5,)), "s": Tensor("s", ())}
    first = {"w": dealt, "b": one, "s": number}
    second = {"w": columns, "b": whole, "s": everywhere}
    before, after = (WeightLayout(4, tensors, shards) for shards in (first, second))
    return Case(before, after, [0, 1, 4, 5], [4, 6, 7, 9])


def job_of(case: Case, *, item_bytes: int = 2, buckets: int = 1, chunk: int = 16) -> TransferJob:
    """The plan of a case as a job whose chunks are small."""
    moves = case.moves()
    pieces = plan_moves(moves, PORTS, item_bytes, SearchLimits()).pieces
    times = bucket_times(pieces, PORTS, item_bytes, buckets)
    return TransferJob(
        moves,
        case.before,
        case.after,
        tuple(case.sources),
        tuple(case.targets),
        pieces,
        item_bytes,
        buckets,
        times.staging_bytes,
        1.0,
        chunk,
    )


def random_job(seed: int, *, buckets: int = 1) -> TransferJob:
    """One of four to twelve devices, every second on the same ones; uneven parts and copies."""
    sizes = [4, 8, 6][seed % 3], [8, 4, 6][seed // 2 % 3]
    case = random_case(seed, *sizes, same=seed % 2 == 0, small=True)
    return job_of(case, item_bytes=[2, 4, 1][seed % 3], buckets=buckets)


def relayed(pieces: Sequence[TreePiece], by: int) -> tuple[TreePiece, ...]:
    """The same, each first sent to a device that has no other part in it."""
    found = []
    for piece in pieces:
        (source, target), *rest = piece.edges
        edges = ((source, by), (by, target), *rest)
        found.append(replace(piece, edges=edges if by not in _devices(piece) else piece.edges))
    return tuple(found)


def _devices(piece: TreePiece) -> set[int]:
    return {device for edge in piece.edges for device in edge}


MUTANTS = ("lost", "shifted", "early", "edge lost", "stranger")


def mutant(job: TransferJob, kind: str, seed: int = 1) -> TransferJob:
    """A plan that is not right: a piece lost, wrong rows, or sent where it is not or should not."""
    chance = random.Random(seed)
    pieces = list(job.pieces)
    at = chance.randrange(len(pieces))
    if kind == "early":
        at = next(i for i, one in enumerate(pieces) if _passed_on(one))
    if kind == "shifted":
        at = next(i for i, one in enumerate(pieces) if one.stop - one.start > 1)
    piece = pieces[at]
    pieces[at : at + 1] = _broken(piece, kind, _strangers(job, piece))
    return replace(job, pieces=tuple(pieces))


def _broken(piece: TreePiece, kind: str, strangers: Sequence[int]) -> list[TreePiece]:
    match kind:
        case "lost":
            return []
        case "shifted":
            return [replace(piece, start=piece.start + 1)]
        case "early":
            return [replace(piece, edges=piece.edges[::-1])]
        case "edge lost":
            return [replace(piece, edges=piece.edges[:-1])]
        case _:
            (_, target), *rest = piece.edges
            return [replace(piece, edges=((strangers[0], target), *rest))]


def _passed_on(piece: TreePiece) -> set[int]:
    return {source for source, _ in piece.edges} & {target for _, target in piece.edges}


def _strangers(job: TransferJob, piece: TreePiece) -> list[int]:
    one = job.moves.classes[piece.number]
    return [d for d in job.devices if d not in {*one.holders, *one.needers}] or [999]


def on_gloo(job: TransferJob, folder: Path, **more: object) -> list[RankReport]:
    """What the ranks of a job report."""
    options = RunOptions(**{"repeat": 2, "warmup": 0, **more})  # type: ignore[arg-type]

    def work(rank: int) -> None:
        join(rank, job.ranks, folder / "store")
        site = Site(rank, job.ranks, torch.device("cpu"), GroupCache(job.ranks))
        report = run_transfer_rank(job, options, site, lambda _: None)
        (folder / f"{rank}").write_bytes(pickle.dumps(report))

    assert fork_ranks(job.ranks, work) == 0
    return [pickle.loads((folder / f"{rank}").read_bytes()) for rank in range(job.ranks)]
