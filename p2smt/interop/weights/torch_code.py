"""A transfer as a module for torch.distributed, which needs no other.

The module has the plan as tables and the code that carries them out: batches of sends, a call a
round; broadcasts only where a piece's tree is a star, whose edges one rank sends.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.resharding.types import ElementType
from p2smt.transfer.buckets import CHUNK_BYTES
from p2smt.transfer.layouts import Shards
from p2smt.transfer.plan import Edge, TreePiece, taking_part
from p2smt.transfer.question import TransferQuestion
from p2smt.units import counted

MOST_GROUPS = 64
"""Process groups for stars; pieces of further ones are sent by messages."""
_WIDTH = 88


@dataclass(frozen=True, slots=True)
class CodedTransfer:
    """What is written: question, pieces, buckets, the type of elements, the verdict in words."""

    question: TransferQuestion
    pieces: Sequence[TreePiece]
    buckets: int
    element: ElementType
    verdict: str

    @property
    def devices(self) -> tuple[int, ...]:
        """The plan's devices: rank r is the r-th."""
        return taking_part(self.question.sources, self.question.targets, self.pieces)


def transfer_module(plan: CodedTransfer) -> str:
    """The text of the module."""
    ranks = {device: rank for rank, device in enumerate(plan.devices)}
    before, after = (
        [ranks[device] for device in devices]
        for devices in (plan.question.sources, plan.question.targets)
    )
    edges = [
        tuple((ranks[source], ranks[target]) for source, target in piece.edges)
        for piece in plan.pieces
    ]
    rows = [
        (piece.number, piece.start, piece.stop, tuple(_chains(own)))
        for piece, own in zip(plan.pieces, edges, strict=True)
    ]
    tables = (
        ("DEVICES", _spans(plan.devices), "Of the plan: rank r is the r-th."),
        ("PATTERNS", _patterns(plan.question, before, after), _PATTERNS),
        ("CLASSES", tuple(one.cells for one in plan.question.moves.classes), _CLASSES),
        ("PIECES", tuple(rows), _PIECES),
        ("STARS", tuple(_stars(plan.pieces, edges)), _STARS),
    )
    parts = [_head(plan), _constants(plan)]
    for name, value, said in tables:
        parts.append(
            f"{name} = {value if isinstance(value, str) else literal(value, len(name) + 3)}"
        )
        parts.append(f'"""{said}"""')
    return "\n".join([*parts, "", CODE])


def _head(plan: CodedTransfer) -> str:
    question = plan.question
    tensors, ranks = len(question.before.tensors), len(question.sources)
    moved = f"Move {counted(tensors, 'tensor')} from {counted(ranks, 'rank')} to "
    told = f"{moved}{len(question.targets)}, with torch.distributed; written by p2smt."
    used = (
        "Every rank calls make_groups() once, after init_process_group (in a larger job with a "
        "group or ranks), and then move(before, after), where both are state dicts: of each tensor "
        "that the rank has, or is to have, the tensor of its box (boxes() says which), or a list "
        "of them where it has several."
    )
    verdict = plan.verdict.replace("\\", "/").replace('"', "'")  # it has names of levels
    lines = [*textwrap.wrap(told, _WIDTH - 3), "", *textwrap.wrap(verdict, _WIDTH), ""]
    return "\n".join([f'"""{lines[0]}', *lines[1:], *textwrap.wrap(used, _WIDTH), '"""'])


def _constants(plan: CodedTransfer) -> str:
    chunk = max(1, CHUNK_BYTES // plan.element.item_bytes)
    return IMPORTS.format(dtype=plan.element.long_name, buckets=plan.buckets, chunk=chunk)


_PATTERNS = """Tensors that lie alike: names, shape, and which ranks have which box before and
after: start and stop of each dimension."""
_CLASSES = """What has the same holders and needers: boxes of the tensors of a pattern, by its
number.  Elements are numbered pattern by pattern, tensor by tensor, box by box, row-major."""
_PIECES = """Class, first element and the one after the last, and the way: ranks that pass it on,
each text from one rank on to the next, in the order of sending."""
_STARS = "Sender and receivers of pieces that one rank sends to all others: these are broadcast."


def _spans(numbers: Sequence[int]) -> str:
    """Ascending numbers as ranges of a tuple."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([number, number + 1])
    spans = (f"{low}, {high}" if low else f"{high}" for low, high in runs)
    shown = [f"*range({span})" for span in spans]
    if len(shown) == 1:
        return f"({shown[0]},)"
    whole = f"({', '.join(shown)})"
    if len(whole) + len("DEVICES = ") <= _WIDTH:
        return whole
    return "\n".join(["(", *(f"    {one}," for one in shown), ")"])


def _patterns(
    question: TransferQuestion, before: Sequence[int], after: Sequence[int]
) -> tuple[object, ...]:
    layouts = ((question.before, before), (question.after, after))
    return tuple(
        (
            one.tensors,
            one.shape,
            *(_placed(layout.shards[one.tensors[0]], ranks) for layout, ranks in layouts),
        )
        for one in question.moves.patterns
    )


def _placed(shards: Shards, ranks: Sequence[int]) -> tuple[object, ...]:
    return tuple((box, tuple(ranks[own] for own in holders)) for box, holders in shards.boxes)


_MOST_LETTERS = 72


def _chains(edges: Sequence[Edge]) -> Iterator[str]:
    """Edges in their order as texts such as ``0>8>9``: each from a rank on to the next."""
    text, end = "", -1
    for source, target in edges:
        if source != end or len(text) > _MOST_LETTERS:
            if text:
                yield text
            text = f"{source}"
        text, end = f"{text}>{target}", target
    if text:
        yield text


def _stars(
    pieces: Sequence[TreePiece], edges: Sequence[Sequence[Edge]]
) -> list[tuple[int, tuple[int, ...]]]:
    """The stars of two receivers and more, those of most bytes first if they are too many."""
    found = Counter[tuple[int, tuple[int, ...]]]()
    for piece, own in zip(pieces, edges, strict=True):
        if len(own) > 1 and len({source for source, _ in own}) == 1:
            found[own[0][0], tuple(sorted(t for _, t in own))] += piece.stop - piece.start
    return sorted(star for star, _ in found.most_common(MOST_GROUPS))


# Tables as text, one line where they fit, an entry a line where not.


def literal(value: object, column: int = 0, indent: int = 0) -> str:
    """A tuple of tuples, numbers and texts as Python, broken as formatters do."""
    short = _flat(value)
    if not isinstance(value, tuple) or (column + indent + len(short) <= _WIDTH):
        return short
    pad = " " * (indent + 4)
    # an entry is followed by a comma
    entries = [f"{pad}{literal(one, 1, indent + 4)}," for one in value]
    return "\n".join(["(", *entries, f"{' ' * indent})"])


def _flat(value: object) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if not isinstance(value, tuple):
        return repr(value)
    inside = ", ".join(map(_flat, value))
    return f"({inside},)" if len(value) == 1 else f"({inside})"


def _quoted(text: str) -> str:
    """A text in ASCII, in double quotes unless it has more of these than of single ones."""
    made = ascii(text)
    if made.startswith("'") and text.count('"') <= text.count("'"):
        inside = made[1:-1].replace("\\'", "'").replace('"', '\\"')
        return f'"{inside}"'
    return made


IMPORTS = '''\

from __future__ import annotations

import math
from bisect import bisect_right
from functools import cache
from itertools import accumulate, pairwise, product

import torch
import torch.distributed as dist

DTYPE = torch.{dtype}
"""Elements are sent in it: who has or wants another type casts at its end."""
BUCKETS = {buckets}
"""Every piece is sent in so many equal parts, so that little is staged at once."""
CHUNK = {chunk}
"""Elements that are passed on at once."""'''

CODE = '''\

_groups: dict[tuple[int, tuple[int, ...]], dist.ProcessGroup] = {}
_job: dict = {"group": None, "ranks": ()}


def make_groups(group=None, ranks=None) -> None:
    """Make the process groups.  Every rank of the plan calls this once, after init_process_group.

    In a job of more ranks, or of another order, `group` is a process group whose rank r is that of
    the plan, or `ranks` has of each rank of the plan its rank in the job (under NCCL give a group).
    Nothing is broadcast then: all goes by messages.
    """
    own = ranks is None and group is None
    if ranks is None:
        ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    elif group is not None:
        raise RuntimeError("give group or ranks, not both")
    if len(ranks) != len(DEVICES) or len({*ranks}) != len(DEVICES):
        raise RuntimeError(f"this is for {len(DEVICES)} ranks, not {len({*ranks})}")
    _groups.clear()
    _job.update(group=group, ranks=tuple(ranks))
    if own or group is not None:
        dist.barrier(group=group)  # under NCCL all ranks must meet before some send
    for sender, receivers in STARS if own else ():
        made = dist.new_group(sorted((sender, *receivers)))
        if dist.get_rank() in (sender, *receivers):
            _groups[sender, receivers] = made


def _rank() -> int:
    """This rank of the plan."""
    return _job["ranks"].index(dist.get_rank()) if _job["ranks"] else dist.get_rank()


def _peer(rank: int) -> int:
    """A rank of the plan as the job numbers it."""
    return _job["ranks"][rank] if _job["ranks"] else rank


def boxes(rank: int, after: bool = False) -> dict[str, list[tuple]]:
    """The boxes of each tensor that a rank has: start and stop of each dimension."""
    found = {}
    for names, _, *sides in PATTERNS:
        own = [box for box, ranks in sides[after] if rank in ranks]
        if own:
            found.update((name, own) for name in names)
    return found


def cut(whole, rank: int, after: bool = False):
    """Of a state dict of whole tensors the boxes of a rank: views, ready for move()."""
    return {
        name: [whole[name][tuple(slice(*ends) for ends in box)] for box in own]
        for name, own in boxes(rank, after).items()
    }


def move(before, after) -> None:
    """Send what this rank has, and fill the tensors of `after`, in place.

    Other names in these state dicts are passed over: `after` may be that of a module.
    """
    rank = _rank()
    had, wanted = _own(before, rank, False), _own(after, rank, True)
    for name in had.keys() & wanted.keys():
        for (box, source), (other, target) in product(had[name], wanted[name]):
            both = _overlap(box, other)
            if both is not None:
                target[_within(both, other)] = source[_within(both, box)]
    pieces = [(*row[:3], _edges(row[3])) for row in PIECES if _passes(row[3], rank)]
    for bucket in range(BUCKETS):
        _move_bucket(bucket, rank, pieces, had, wanted)


def _own(state, rank, after):
    """The boxes of this rank with their tensors, by name."""
    found = {}
    for name, own in boxes(rank, after).items():
        if name not in state:
            side = "after" if after else "before"
            raise ValueError(f"{name}: rank {rank} has a part of it {side} this")
        given = state[name]
        tensors = given if isinstance(given, (list, tuple)) else [given]
        shapes = [tuple(stop - start for start, stop in box) for box in own]
        if [tuple(tensor.shape) for tensor in tensors] != shapes:
            raise ValueError(f"{name} on rank {rank}: {_misfit(tensors, shapes)}")
        found[name] = list(zip(own, (tensor.detach() for tensor in tensors)))
    return found


def _misfit(tensors, shapes):
    """What is wrong with the shapes of tensors, and what to give if they are padded."""
    has = [tuple(tensor.shape) for tensor in tensors]
    if len(has) == len(shapes) == 1 and len(has[0]) == len(shapes[0]):
        pairs = list(zip(has[0], shapes[0]))
        if all(size >= wanted for size, wanted in pairs):
            cuts = [f":{wanted}" if size > wanted else ":" for size, wanted in pairs]
            while cuts[-1] == ":":
                cuts.pop()
            told = f"tensor {has[0]} is larger than the layout's part {shapes[0]}"
            return f"{told}: if the rest is padding, give tensor[{', '.join(cuts)}]"
    return f"{has}, its boxes are of {shapes}"


def _passes(chains, rank):
    return any(str(rank) in chain.split(">") for chain in chains)


def _edges(chains):
    """Sender and receiver, in the order of sending."""
    return [edge for chain in chains for edge in pairwise(map(int, chain.split(">")))]


def _move_bucket(bucket, rank, pieces, had, wanted) -> None:
    """Pack, send round by round, unpack: what is taken in a round is passed on in the next."""
    parts, size = [], 0
    for number, start, stop, edges in pieces:
        low, high = (start + (stop - start) * (bucket + k) // BUCKETS for k in (0, 1))
        if low < high:
            parts.append((number, low, high, edges, size))
            size += high - low
    staging = torch.empty(size, dtype=DTYPE, device=_device(had, wanted))
    rounds = {}
    for number, low, high, edges, at in parts:
        own = staging[at : at + high - low]
        if next(source == rank for source, target in edges if rank in (source, target)):
            for staged, tensor in _pairs(own, number, low, high, had):
                staged.copy_(tensor)
        star = {source for source, _ in edges} == {edges[0][0]}
        key = (edges[0][0], tuple(sorted(target for _, target in edges)))
        group = _groups.get(key) if star else None
        if group is not None:
            dist.broadcast(own, src=_peer(edges[0][0]), group=group)
        else:
            _note_rounds(rounds, rank, edges, own)
    for number in sorted(rounds):
        for work in dist.batch_isend_irecv(rounds[number]):
            work.wait()
    for number, low, high, edges, at in parts:
        own = staging[at : at + high - low]
        if any(target == rank for _, target in edges):
            for staged, tensor in _pairs(own, number, low, high, wanted):
                tensor.copy_(staged)


def _device(*sides):
    """Where the tensors are; of a rank that only passes on, where its backend sends from."""
    for side in sides:
        for own in side.values():
            return own[0][1].device
    if dist.get_backend(_job["group"]) == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _note_rounds(rounds, rank, edges, own) -> None:
    """Chunk c passes the edge behind d others in round c + d, in one order on all ranks."""
    came, group = {}, _job["group"]
    for source, target in edges:
        came[target] = came.get(source, 0) + 1
        if rank not in (source, target):
            continue
        way, peer = (dist.isend, target) if rank == source else (dist.irecv, source)
        at = _peer(peer)
        for chunk, part in enumerate(own.split(CHUNK), came[target]):
            rounds.setdefault(chunk, []).append(dist.P2POp(way, part, at, group))


def _pairs(staging, number, low, high, own):
    """Of elements low to high of a class: where they are staged, and in the boxes of a rank."""
    at = 0
    for name, cell, first, last in _ranges(number, low, high):
        for run in _runs(cell, first, last):
            size = _volume(run)
            shape = [stop - start for start, stop in run]
            staged = staging[at : at + size].view(shape)
            at += size
            for box, tensor in own.get(name, ()):
                both = _overlap(run, box)
                if both is not None:
                    yield staged[_within(both, run)], tensor[_within(both, box)]


def _ranges(number, low, high):
    """Elements low to high of a class as tensors, boxes, and the elements of these."""
    starts, cells = _cells(number)
    for at in range(bisect_right(starts, low) - 1, len(cells)):
        (name, cell), start = cells[at], starts[at]
        if start >= high:
            break
        yield name, cell, max(low - start, 0), min(high - start, _volume(cell))


@cache
def _cells(number):
    """Where each box of a class begins, and tensor and box."""
    rows = CLASSES[number]
    cells = [one for row in rows for one in product(PATTERNS[row[0]][0], row[1])]
    sizes = [_volume(cell) for _, cell in cells]
    return list(accumulate(sizes[:-1], initial=0)), cells


def _runs(box, low, high):
    """Boxes that hold elements low to high of a box, row-major, in this order."""
    if low >= high:
        return
    if not box:
        yield ()
        return
    (begin, _), *inner = box
    size = _volume(inner)
    first, last = -(-low // size), high // size
    if first > last:
        rows = [(last, low - last * size, high - last * size)]
    else:
        rows = [(first - 1, low - (first - 1) * size, size * (low < first * size))]
    for row, start, stop in rows:
        for run in _runs(inner, start, stop):
            yield ((begin + row, begin + row + 1), *run)
    if first < last:
        yield ((begin + first, begin + last), *inner)
    if first <= last:
        for run in _runs(inner, 0, high - last * size):
            yield ((begin + last, begin + last + 1), *run)


def _volume(box):
    return math.prod(stop - start for start, stop in box)


def _overlap(one, other):
    """What two boxes of a tensor have in common; None: nothing."""
    both = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other))
    return both if all(start < stop for start, stop in both) else None


def _within(part, box):
    return tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(part, box))
'''
