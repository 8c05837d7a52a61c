"""All-to-all: pairwise, Bruck's, and two- and three-step algorithms for nodes of several gpus.

All of them run out of place: chunk d of a rank's input is for rank d, chunk s of its output from
rank s.  Rank ``node * gpus + g`` is gpu g of its node.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product, zip_longest
from typing import TYPE_CHECKING

from p2smt.schedules.classics.start import check_nodes, start
from p2smt.schedules.construction.builder import Message, runs
from p2smt.schedules.model import Buffer, Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from p2smt.schedules.construction.builder import Builder
    from p2smt.schedules.model import Schedule


def pairwise_all_to_all(ranks: int, *, chunks: int = 1) -> Schedule:
    """Every rank sends each other one its chunks directly: one step, any number of ranks."""
    b = start("alltoall", ranks, chunks, in_place=False)
    b.together(
        Message(_input(r, p * chunks, chunks), _output(p, r * chunks, chunks))
        for d in range(1, ranks)
        for r, p in ((r, (r + d) % ranks) for r in range(ranks))
    )
    for r in range(ranks):
        b.copy(_input(r, r * chunks, chunks), _output(r, r * chunks, chunks))
    return b.schedule("pairwise-all-to-all")


def bruck_all_to_all(ranks: int) -> Schedule:
    """What has d ranks to go travels 2^s of them for each bit s of d: ceil(log2 n) steps.

    Any number of ranks.  Scratch chunk d holds what has d ranks to go in all; each run of chunks
    is a message.  Bruck et al., 1997 (see :mod:`p2smt.schedules.classics.rings`).
    """
    b = start("alltoall", ranks, in_place=False)
    for r, d in product(range(ranks), range(1, ranks)):
        b.copy(_input(r, (r + d) % ranks), _scratch(r, d))
    for step in range((ranks - 1).bit_length()):
        for run in runs(d for d in range(ranks) if d >> step & 1):
            b.together(
                Message(_scratch(r, *run), _scratch((r + (1 << step)) % ranks, *run))
                for r in range(ranks)
            )
    for r in range(ranks):
        b.copy(_input(r, r), _output(r, r))
        for d in range(1, ranks):
            b.copy(_scratch(r, d), _output(r, (r - d) % ranks))
    return b.schedule("bruck-all-to-all")


def two_step_all_to_all(ranks: int, *, gpus: int = 2) -> Schedule:
    """Inside nodes to the gpu of the target's number, then along rails: two steps.

    Multiples of ``gpus``.  A message between nodes holds what all gpus of one node have for one
    gpu of the other, for which it is collected in scratch.  Cowan, Maleki, Musuvathi, Saarikivi
    and Xiong, "MSCCLang: Microsoft collective communication language", 2023.
    """
    nodes, own = check_nodes(ranks, gpus), range(gpus)
    b = start("alltoall", ranks, in_place=False)
    inside, across = [], []
    for node, there in product(range(nodes), repeat=2):
        for h, g in product(own, own):
            source, rail = node * gpus + g, node * gpus + h
            via = _scratch(rail, there * gpus + g) if there != node else _output(rail, source)
            inside.append(Message(_input(source, there * gpus + h), via))
        if there != node:
            across += [
                Message(
                    _scratch(node * gpus + h, there * gpus, gpus),
                    _output(there * gpus + h, node * gpus, gpus),
                )
                for h in own
            ]
    _in_turns(b, inside)
    _in_turns(b, across)
    return b.schedule("two-step-all-to-all")


def three_step_all_to_all(ranks: int, *, gpus: int = 2) -> Schedule:
    """One message for each pair of nodes: collect on one gpu, send, spread.  Three steps.

    Multiples of ``gpus``.  What is for node m is collected by the gpu of number m, and arrives
    there at the gpu whose number is the sender's node (both modulo ``gpus``).
    """
    nodes, block = check_nodes(ranks, gpus), gpus * gpus
    b = start("alltoall", ranks, in_place=False)
    collect, send, spread = [], [], []
    for node, there in product(range(nodes), repeat=2):
        pairs = [
            (g, node * gpus + g, h, there * gpus + h) for g in range(gpus) for h in range(gpus)
        ]
        if node == there:
            spread += [Message(_input(r, p), _output(p, r)) for _, r, _, p in pairs]
            continue
        collector, spreader = node * gpus + there % gpus, there * gpus + node % gpus
        full = there // gpus * block
        arrived = (-(-nodes // gpus) + node // gpus) * block
        collect += [
            Message(_input(r, there * gpus, gpus), _scratch(collector, full + g * gpus, gpus))
            for g, r, h, _ in pairs
            if h == 0
        ]
        send.append(Message(_scratch(collector, full, block), _scratch(spreader, arrived, block)))
        spread += [
            Message(_scratch(spreader, arrived + g * gpus + h), _output(p, r))
            for g, r, h, p in pairs
        ]
    for messages in (collect, send, spread):
        _in_turns(b, messages)
    return b.schedule("three-step-all-to-all")


def _in_turns(b: Builder, messages: Iterable[Message]) -> None:
    """The first messages of all connections together, then the second ones, and so on.

    Moves inside a rank are copies.
    """
    by_ends: dict[tuple[int, int], list[Message]] = defaultdict(list)
    for message in messages:
        if message.source.rank == message.target.rank:
            b.copy(message.source, message.target)
        else:
            by_ends[message.source.rank, message.target.rank].append(message)
    for turn in zip_longest(*by_ends.values()):
        b.together(message for message in turn if message is not None)


def _input(rank: int, first: int, count: int = 1) -> Span:
    return Span(rank, Buffer.INPUT, first, count)


def _output(rank: int, first: int, count: int = 1) -> Span:
    return Span(rank, Buffer.OUTPUT, first, count)


def _scratch(rank: int, first: int, count: int = 1) -> Span:
    return Span(rank, Buffer.SCRATCH, first, count)
