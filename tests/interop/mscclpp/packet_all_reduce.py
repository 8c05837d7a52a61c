"""An all-reduce by packets as MSCCL++'s language writes it, for any number of ranks.

Everyone sends every peer its part (one packet operation of ``ranks`` chunks), each chunk of the own
part is reduced by a block of its own and sent to all, and what comes back is unpacked.
"""

from __future__ import annotations

from tests.interop.mscclpp.plans import Data, block, far, gpu, move, near, plan


def packet_all_reduce(ranks: int) -> Data:
    """The plan as plain data: in place, ``ranks`` squared chunks."""
    gpus = [_gpu(rank, ranks) for rank in range(ranks)]
    return plan(gpus, collective="allreduce", protocol="LL")


def _gpu(rank: int, ranks: int) -> Data:
    peers = [peer for peer in range(ranks) if peer != rank]
    phase = ranks * (ranks - 1)

    def mine(peer: int) -> int:
        """Where this rank's data goes in the scratch of a peer."""
        return (rank if rank < peer else rank - 1) * ranks

    blocks = []
    for index in range(ranks):
        ops = []
        if index < len(peers):
            peer = peers[index]
            target = far(index, mine(peer), ranks)
            ops.append(move("ppkt", [near("i", peer * ranks, ranks)], [target]))
        own = near("i", rank * ranks + index)
        came = [near("s", slot * ranks + index) for slot in range(ranks - 1)]
        out = [far(k, phase + mine(peer) + index) for k, peer in enumerate(peers)]
        ops.append(move("respkt", [own, *came], [own, *out], reduce_op="sum"))
        if index in peers:
            slot = index if index < rank else index - 1
            source = near("s", phase + slot * ranks, ranks)
            ops.append(move("upkt", [source], [near("i", index * ranks, ranks)]))
        blocks.append(block(ops, memory=ranks - 1, buffers=ranks - 1))
    size = ranks * ranks
    remote = tuple((peer, "s") for peer in peers)
    return gpu(rank, blocks, sizes=(size, size, 2 * phase), memory=tuple(peers), remote=remote)
