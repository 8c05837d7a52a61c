"""Correct schedules of two to four ranks, small enough for the exhaustive oracle.

Between them they use every kind of step, every way to order steps, and buffers in and out of
place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from p2smt.collectives import contract as contracts
from p2smt.collectives.contract import Contract
from p2smt.schedules.classics import CLASSICS, classic
from p2smt.schedules.model import Schedule, StepRef
from tests.schedules.building import Blocks, at, custom


def ring_all_reduce(ranks: int) -> Schedule:
    """In place, one block per rank: s, rrs.., rrcs, rcs.., r on one chunk per rank."""
    blocks = Blocks()
    for rank in range(ranks):
        came, to = (rank - 1) % ranks, (rank + 1) % ranks

        def chunk(steps_ago: int, rank: int = rank) -> str:
            return f"i{(rank - steps_ago) % ranks}"

        blocks.send(rank, 0, to, chunk(0))
        for step in range(1, ranks - 1):
            blocks.receive("rrs", rank, 0, came, chunk(step), to=to)
        blocks.receive("rrcs", rank, 0, came, chunk(ranks - 1), to=to)
        for step in range(ranks, 2 * ranks - 2):
            blocks.receive("rcs", rank, 0, came, chunk(step), to=to)
        blocks.receive("r", rank, 0, came, chunk(2 * ranks - 2))
    return blocks.schedule(
        f"ring {ranks}", contracts.contract("allreduce", ranks, ranks, in_place=True)
    )


def two_block_ring() -> Schedule:
    """Out of place on two ranks: one block reduces and sends, the other receives."""
    blocks = Blocks()
    for rank in (0, 1):
        peer, mine, other = 1 - rank, str(rank), str(1 - rank)
        blocks.send(rank, 0, peer, f"i{other}")
        sum_ = blocks.receive("rrc", rank, 1, peer, f"i{mine}", store=f"o{mine}")
        blocks.send(rank, 0, peer, f"o{mine}", waits=(sum_,))
        blocks.receive("r", rank, 1, peer, f"o{other}")
    return blocks.schedule("two blocks", contracts.contract("allreduce", 2, 2, in_place=False))


def all_pairs(ranks: int) -> Schedule:
    """All-reduce through scratch: everyone gets everything, then reduces locally (re)."""
    blocks = Blocks()
    for rank in range(ranks):
        peers = [peer for peer in range(ranks) if peer != rank]
        for block, peer in enumerate(peers):
            blocks.send(rank, block, peer, "i0")
        blocks.copy(rank, ranks, "i0", "o0")
        for block, peer in enumerate(peers):
            came = blocks.receive("r", rank, ranks + 1 + block, peer, f"s{block}")
            blocks.reduce(rank, ranks, f"s{block}", "o0", waits=(came,))
    return blocks.schedule(
        f"all pairs {ranks}", contracts.contract("allreduce", ranks, 1, in_place=False), ranks - 1
    )


def tree_all_reduce() -> Schedule:
    """Three ranks: 1 and 2 send to 0, which reduces and sends back, chunk by chunk."""
    blocks = Blocks()
    for child in (1, 2):
        blocks.send(child, 0, 0, "i0", count=2)
        blocks.receive("r", child, 0, 0, "i0", count=2)
    first = blocks.receive("rrc", 0, 1, 1, "i0", count=2)
    second = blocks.receive("rrc", 0, 2, 2, "i0", count=2, waits=(first,))
    blocks.send(0, 1, 1, "i0", count=2, waits=(second,))
    blocks.send(0, 2, 2, "i0", count=2)
    return blocks.schedule("tree", contracts.contract("allreduce", 3, 2, in_place=True))


def chain_broadcast() -> Schedule:
    """Three ranks, two chunks; the middle passes on (rcs)."""
    blocks = Blocks()
    for chunk in (0, 1):
        blocks.send(0, 0, 1, f"i{chunk}")
        blocks.copy(0, 1, f"i{chunk}", f"o{chunk}")
        blocks.receive("rcs", 1, 0, 0, f"o{chunk}", to=2)
        blocks.receive("r", 2, 0, 1, f"o{chunk}")
    return blocks.schedule("chain", contracts.contract("broadcast", 3, 2, in_place=False))


def chain_reduce() -> Schedule:
    """Three ranks: s, rrs, rrc; in place at the root."""
    blocks = Blocks()
    for chunk in (0, 1):
        blocks.send(2, 0, 1, f"i{chunk}")
        blocks.receive("rrs", 1, 0, 2, f"i{chunk}", to=0)
        blocks.receive("rrc", 0, 0, 1, f"i{chunk}")
    return blocks.schedule("reduce", contracts.contract("reduce", 3, 2, in_place=True))


def direct_reduce_scatter() -> Schedule:
    """Two ranks, in place with shifted output; a nop carries a dependency to another block."""
    blocks = Blocks()
    for rank in (0, 1):
        peer = 1 - rank
        blocks.send(rank, 0, peer, f"i{peer}")
        came = blocks.receive("r", rank, 1, peer, "s0")
        blocks.add(rank, 2, "nop", count=0, waits=(came,))
        blocks.reduce(rank, 2, "s0", "o0")
    return blocks.schedule(
        "reduce scatter", contracts.contract("reduce_scatter", 2, 1, in_place=True), 1
    )


def all_to_all_in_place() -> Schedule:
    """Two ranks swap chunks through scratch: the receive waits until the copy is made."""
    blocks = Blocks()
    for rank in (0, 1):
        peer = 1 - rank
        saved = blocks.copy(rank, 1, f"i{peer}", "s0")
        blocks.send(rank, 1, peer, "s0")
        blocks.receive("r", rank, 0, peer, f"o{peer}", waits=(saved,))
    return blocks.schedule("all to all", contracts.contract("alltoall", 2, 1, in_place=True), 1)


def put_all_gather(ranks: int, *, background: bool = False) -> Schedule:
    """One-sided: put to every peer and signal; every peer waits for all."""
    blocks = Blocks()
    for rank in range(ranks):
        blocks.copy(rank, 0, "i0", f"o{rank}")
        peers = [peer for peer in range(ranks) if peer != rank]
        for peer in peers:
            put = {"reads": (at("i0", rank),), "writes": (at(f"o{rank}", peer),)}
            if background:
                before = (StepRef(0, 0),)
                name = f"{rank}>{peer}"
                blocks.add(rank, 0, "pws", **put, posts=(name,), after=before, background=True)
            else:
                blocks.add(rank, 0, "put", **put)
                blocks.add(rank, 0, "signal", count=0, posts=(f"{rank}>{peer}",))
        for peer in peers:
            blocks.add(rank, 1, "wait", count=0, awaits=(f"{peer}>{rank}",))
    name = f"puts {ranks}" + (" by a proxy" if background else "")
    return blocks.schedule(name, contracts.contract("allgather", ranks, 1, in_place=False))


def packet_all_reduce() -> Schedule:
    """Two ranks put packets into the peer's scratch and reduce what they read, without waits."""
    blocks = Blocks()
    for rank in (0, 1):
        put = at("s0", 1 - rank, 2, packet=True)
        blocks.add(rank, 0, "ppkt", count=2, reads=(at("i0", rank, 2),), writes=(put,))
        reads = (at("i0", rank, 2), at("s0", rank, 2, packet=True))
        blocks.add(rank, 1, "repkt", count=2, reads=reads, writes=(at("o0", rank, 2),))
    return blocks.schedule("packets", contracts.contract("allreduce", 2, 2, in_place=False), 2)


def remote_read_all_reduce(*, relaxed: bool = False) -> Schedule:
    """Two ranks; each reads and reduces one chunk of the peer, signals before and after.

    relaxed: the first signals, which say only that the input may be accessed.
    """
    blocks = Blocks()
    for rank in (0, 1):
        peer = 1 - rank
        blocks.add(rank, 0, "signal", count=0, posts=(f"ready {rank}",), relaxed=relaxed)
        blocks.add(rank, 0, "wait", count=0, awaits=(f"ready {peer}",), relaxed=relaxed)
        reads = (at(f"i{rank}", rank), at(f"i{rank}", peer))
        writes = (at(f"i{rank}", rank), at(f"i{rank}", peer))
        blocks.add(rank, 0, "rres", reads=reads, writes=writes, posts=(f"done {rank}",))
        blocks.add(rank, 0, "wait", count=0, awaits=(f"done {peer}",))
    return blocks.schedule(
        "remote reads" + relaxed * ", relaxed", contracts.contract("allreduce", 2, 2, in_place=True)
    )


def barrier_all_reduce() -> Schedule:
    """Two blocks per rank gather into scratch, meet at a barrier, and reduce the other's part."""
    blocks = Blocks()
    for rank in (0, 1):
        peer = 1 - rank
        for block in (0, 1):
            put = at(f"s{block}", peer)
            blocks.add(rank, block, "put", reads=(at(f"i{block}", rank),), writes=(put,))
            name = f"{rank}>{peer} of {block}"
            blocks.add(rank, block, "signal", count=0, posts=(name,))
            blocks.add(rank, block, "wait", count=0, awaits=(f"{peer}>{rank} of {block}",))
            blocks.add(rank, block, "barrier", count=0, barrier="all")
            reads = (at(f"i{1 - block}", rank), at(f"s{1 - block}", rank))
            blocks.add(rank, block, "re", reads=reads, writes=(at(f"o{1 - block}", rank),))
    return blocks.schedule("barrier", contracts.contract("allreduce", 2, 2, in_place=False), 2)


def semaphore_all_gather() -> Schedule:
    """Two ranks, two chunks through one scratch slot that a semaphore guards."""
    blocks = Blocks()
    initial = []
    for rank in (0, 1):
        peer = 1 - rank
        empty, full = f"semaphore {rank} empty", f"semaphore {rank} full"
        initial.append((empty, 1))
        for chunk in (0, 1):
            blocks.copy(rank, 0, f"i{chunk}", f"o{2 * rank + chunk}")
            blocks.send(rank, 0, peer, f"i{chunk}")
            blocks.receive("r", rank, 1, peer, "s0", awaits=(empty,), posts=(full,))
            target = f"o{2 * peer + chunk}"
            blocks.copy(rank, 2, "s0", target, awaits=(full,), posts=(empty,))
    contract = contracts.contract("allgather", 2, 2, in_place=False)
    return blocks.schedule("semaphores", contract, 1, initial=tuple(initial))


def custom_shift() -> Schedule:
    """Three ranks: every output chunk is the previous rank's input; two channels."""
    blocks = Blocks()
    for rank in range(3):
        for channel in (0, 1):
            there = (rank + 1) % 3
            blocks.send(rank, channel, there, f"i{channel}", channel=channel)
            came = (rank - 1) % 3
            blocks.receive("r", rank, 2 + channel, came, f"o{channel}", channel=channel)
    goals = [(rank, c, (rank - 1) % 3, c) for rank in range(3) for c in (0, 1)]
    return blocks.schedule("shift", custom((2, 2, 2), *goals))


def exchange(messages: int) -> Schedule:
    """Two ranks that first send all they have, then receive: needs as much depth."""
    blocks = Blocks()
    for rank in (0, 1):
        for chunk in range(messages):
            blocks.send(rank, 0, 1 - rank, f"i{chunk}")
        for chunk in range(messages):
            own, other = rank * messages + chunk, (1 - rank) * messages + chunk
            blocks.copy(rank, 0, f"i{chunk}", f"o{own}")
            blocks.receive("r", rank, 0, 1 - rank, f"o{other}", line=7)
    return blocks.schedule("exchange", contracts.contract("allgather", 2, messages, in_place=False))


def one_to_one() -> Contract:
    """Rank 1 is to hold rank 0's input."""
    return custom((1, 0), (1, 0, 0, 0))


def put(*, signal: bool = True, packet: bool = False, **more: bool) -> Schedule:
    """Rank 0 writes into rank 1's scratch, which copies it to its output."""
    blocks, posts = Blocks(), ("c",) if signal else ()
    there = at("s0", 1, packet=packet)
    blocks.add(0, 0, "put", reads=(at("i0", 0),), writes=(there,), posts=posts, line=4, **more)
    blocks.add(1, 0, "copy", reads=(there,), writes=(at("o0", 1),), awaits=posts)
    return blocks.schedule("put", one_to_one(), scratch=1)


def meeting(*, barrier: bool = True) -> Schedule:
    """Two blocks of a rank exchange chunks through scratch, with a barrier between."""
    blocks = Blocks()
    for block in (0, 1):
        blocks.copy(0, block, f"i{block}", f"s{block}")
        if barrier:
            blocks.add(0, block, "barrier", count=0, barrier="b")
        blocks.copy(0, block, f"s{1 - block}", f"o{block}")
    return blocks.schedule("meeting", custom((2,), (0, 0, 0, 1), (0, 1, 0, 0)), scratch=2)


SMALL: Mapping[str, Callable[[], Schedule]] = {
    "ring 2": lambda: ring_all_reduce(2),
    "ring 3": lambda: ring_all_reduce(3),
    "ring 4": lambda: ring_all_reduce(4),
    "two blocks": two_block_ring,
    "all pairs 2": lambda: all_pairs(2),
    "all pairs 3": lambda: all_pairs(3),
    "tree": tree_all_reduce,
    "chain": chain_broadcast,
    "reduce": chain_reduce,
    "reduce scatter": direct_reduce_scatter,
    "all to all": all_to_all_in_place,
    "puts 2": lambda: put_all_gather(2),
    "puts 3": lambda: put_all_gather(3),
    "puts by a proxy": lambda: put_all_gather(2, background=True),
    "packets": packet_all_reduce,
    "remote reads": remote_read_all_reduce,
    "remote reads, relaxed": lambda: remote_read_all_reduce(relaxed=True),
    "barrier": barrier_all_reduce,
    "semaphores": semaphore_all_gather,
    "shift": custom_shift,
}


def small_classics(most: int = 4) -> Mapping[str, Schedule]:
    """The examples of the classic algorithms with at most so many ranks."""
    return {
        " ".join([name, str(ranks), *(f"{key}={value}" for key, value in parameters.items())]): (
            classic(name, ranks, **parameters)
        )
        for name, known in CLASSICS.items()
        for ranks, parameters in known.examples
        if ranks <= most
    }
