"""What modules for JAX hold besides the programs; each part where it is needed."""

from __future__ import annotations

HEAD = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

AXIS = "ranks"
"""

MESH = '''\
def mesh():
    """The devices in the order of the ranks."""
    devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
    if len(devices) != RANKS:
        raise RuntimeError(f"these programs are for {RANKS} devices, not {len(devices)}")
    return Mesh(np.array(devices){ordered}, (AXIS,))


def sharded(function, mesh):
    """A function of this module over arrays whose part i is the array of rank i."""

    def local(x):
        return function(x[0])[None]

    spec = PartitionSpec(AXIS)
    return jax.jit(
        jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    )
'''

GROUPS = '''\
def _groups(number):
    """The groups, and each rank outside them alone: JAX wants every rank in one."""
    groups = [list(ranks) for ranks in GROUPS[number]]
    inside = {rank for ranks in groups for rank in ranks}
    return groups + [[rank] for rank in range(RANKS) if rank not in inside]
'''

LEADS = '''\
def _leads(number):
    """Whether this rank is the first of its group."""
    firsts = np.zeros(RANKS, dtype=bool)
    firsts[[ranks[0] for ranks in _groups(number)]] = True
    return jnp.array(firsts)[lax.axis_index(AXIS)]
'''

PARTS = '''\
def _take(piece, part):
    """Rows of a piece: (first, how many), or their numbers."""
    if isinstance(part, tuple):
        return lax.dynamic_slice_in_dim(piece, part[0], part[1])
    return piece[part]


def _put(piece, part, data):
    if isinstance(part, tuple):
        return lax.dynamic_update_slice_in_dim(piece, data, part[0], axis=0)
    return piece.at[part].set(data)
'''

STEPS = {
    "all_reduce": """\
def _all_reduce(piece, part, number):
    data = lax.psum(_take(piece, part), AXIS, axis_index_groups=_groups(number))
    return _put(piece, part, data)
""",
    "reduce": '''\
def _reduce(piece, part, number):
    """The sum ends on the first rank of a group: a psum that the others forget."""
    own = _take(piece, part)
    data = lax.psum(own, AXIS, axis_index_groups=_groups(number))
    return _put(piece, part, jnp.where(_leads(number), data, own))
''',
    "broadcast": '''\
def _broadcast(piece, part, number):
    """From the first rank of a group: a psum to which the others give zeros."""
    own = _take(piece, part)
    given = jnp.where(_leads(number), own, jnp.zeros_like(own))
    return _put(piece, part, lax.psum(given, AXIS, axis_index_groups=_groups(number)))
''',
    "reduce_scatter": """\
def _reduce_scatter(piece, part, own, number):
    data = lax.psum_scatter(
        _take(piece, part), AXIS, axis_index_groups=_groups(number), tiled=True
    )
    return _put(piece, own, data)
""",
    "all_gather": """\
def _all_gather(piece, part, own, number):
    data = lax.all_gather(_take(piece, own), AXIS, axis_index_groups=_groups(number), tiled=True)
    return _put(piece, part, data)
""",
}

WHOLES = {
    "all_reduce": '''\
def _in_place(x, rows, pieces, steps):
    """Run the steps on an array cut into rows; it is padded where they do not divide it."""
    flat = x.reshape(-1)
    padded = jnp.pad(flat, (0, -flat.size % (rows * pieces)))
    done = [steps(piece) for piece in padded.reshape(pieces, rows, -1)]
    return jnp.stack(done).reshape(-1)[: flat.size].reshape(x.shape)
''',
    "reduce_scatter": '''\
def _scattered(x, rows, pieces, shard, steps):
    """Run the steps on the array cut into rows, and return the row that this rank ends with."""
    if x.size % rows:
        raise ValueError(f"{x.size} elements do not split into {rows} parts")
    parts = jnp.array_split(x.reshape(rows, -1), pieces, axis=1)
    return jnp.concatenate([steps(part) for part in parts if part.size], axis=1)[shard]
''',
    "all_gather": '''\
def _gathered(x, rows, pieces, place, steps):
    """Run the steps on rows of which this rank brings one, and return them all."""
    whole = jnp.zeros((rows, x.size), x.dtype).at[place].set(x.reshape(-1))
    parts = jnp.array_split(whole, pieces, axis=1)
    return jnp.concatenate([steps(part) for part in parts if part.size], axis=1).reshape(-1)
''',
}
