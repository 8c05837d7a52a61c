"""What modules for torch.distributed hold besides the programs; each part where it is needed."""

from __future__ import annotations

HEAD = """\
from __future__ import annotations

import torch
import torch.distributed as dist
"""

GROUPS = '''\
_made: list[tuple[dist.ProcessGroup, list[int]] | None] = []


def make_groups() -> None:
    """Make the process groups.  Every rank calls this once, after init_process_group."""
    if dist.get_world_size() != RANKS:
        raise RuntimeError(f"these programs are for {RANKS} ranks, not {dist.get_world_size()}")
    for groups in GROUPS:
        _made.append(None)
        for ranks in map(list, groups):
            group = dist.new_group(ranks)
            if dist.get_rank() in ranks:
                _connect(group)
                _made[-1] = group, ranks


def _connect(group: dist.ProcessGroup) -> None:
    """Let the members meet now: NCCL's would at their first call, which a send must not be."""
    if dist.get_backend(group) == "nccl":
        dist.barrier(group, device_ids=[torch.cuda.current_device()])
'''

RUN = '''\
def _run(pieces, steps) -> None:
    """Run the steps of every piece: step s of piece i starts once step s - 1 is complete, and
    after step s + 1 of the piece before."""
    waiting, running = [steps(piece) for piece in pieces], []
    while waiting or running:
        if waiting:
            running.append((waiting.pop(0), None))
        left = []
        for piece, work in running:
            if work is not None:
                work.wait()
            started = next(piece, False)
            if started is not False:
                left.append((piece, started))
        running = left


def _put(piece, rows, data) -> None:
    """Write rows back, unless the data are a view of them."""
    if data.untyped_storage().data_ptr() != piece.untyped_storage().data_ptr():
        piece[rows] = data
'''

STEPS = {
    "all_reduce": """\
def _all_reduce(piece, rows, number):
    if _made[number] is None:
        yield None
        return
    group, _ = _made[number]
    data = piece[rows].contiguous()
    yield dist.all_reduce(data, group=group, async_op=True)
    _put(piece, rows, data)
""",
    "reduce": '''\
def _reduce(piece, rows, number):
    """The sum ends on the first rank of a group."""
    if _made[number] is None:
        yield None
        return
    group, ranks = _made[number]
    data = piece[rows].contiguous()
    yield dist.reduce(data, dst=ranks[0], group=group, async_op=True)
    _put(piece, rows, data)
''',
    "broadcast": '''\
def _broadcast(piece, rows, number):
    """From the first rank of a group."""
    if _made[number] is None:
        yield None
        return
    group, ranks = _made[number]
    data = piece[rows].contiguous()
    yield dist.broadcast(data, src=ranks[0], group=group, async_op=True)
    _put(piece, rows, data)
''',
    "reduce_scatter": """\
def _reduce_scatter(piece, rows, own, number):
    if _made[number] is None:
        yield None
        return
    group, _ = _made[number]
    data, kept = piece[rows].contiguous(), piece[own].contiguous()
    yield _reduce_scatter_call(kept, data, group=group, async_op=True)
    _put(piece, own, kept)
""",
    "all_gather": """\
def _all_gather(piece, rows, own, number):
    if _made[number] is None:
        yield None
        return
    group, _ = _made[number]
    data, brought = piece[rows].contiguous(), piece[own].contiguous()
    yield _all_gather_call(data, brought, group=group, async_op=True)
    _put(piece, rows, data)
""",
}

CALLS = {
    "reduce_scatter": (
        "_reduce_scatter_call = "
        'getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor\n'
    ),
    "all_gather": (
        "_all_gather_call = "
        'getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor\n'
    ),
}
"""Named anew in torch 2.13, where the older names warn."""

WHOLES = {
    "all_reduce": '''\
def _in_place(tensor, rows, pieces, steps):
    """Run the steps on a tensor cut into rows; it is padded where they do not divide it."""
    flat = tensor.reshape(-1)
    padded = torch.nn.functional.pad(flat, (0, -flat.numel() % (rows * pieces)))
    if padded.numel() == flat.numel():
        padded = flat
    _run([piece.view(rows, -1) for piece in padded.view(pieces, -1)], steps)
    if padded.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr():
        tensor.copy_(padded[: flat.numel()].view_as(tensor))
    return tensor
''',
    "reduce_scatter": '''\
def _scattered(tensor, rows, pieces, shard, steps):
    """Run the steps on a copy cut into rows, and return the row that this rank ends with."""
    if tensor.numel() % rows:
        raise ValueError(f"{tensor.numel()} elements do not split into {rows} parts")
    whole = tensor.reshape(rows, -1).clone(memory_format=torch.contiguous_format)
    _run([part for part in whole.tensor_split(pieces, dim=1) if part.numel()], steps)
    return whole[shard].clone()
''',
    "all_gather": '''\
def _gathered(tensor, rows, pieces, place, steps):
    """Run the steps on rows of which this rank brings one, and return them all."""
    whole = tensor.new_zeros((rows, tensor.numel()))
    whole[place] = tensor.reshape(-1)
    _run([part for part in whole.tensor_split(pieces, dim=1) if part.numel()], steps)
    return whole.reshape(-1)
''',
}
