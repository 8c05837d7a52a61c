"""What the modules hold that depends on no plan."""

from __future__ import annotations

HEAD = '''\
"""{first}

redistribute(x) takes an array that is sharded as NamedSharding(mesh(), SOURCE), or in an equivalent
way over the axes of another mesh of the same devices.{partial}
"""

import functools

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
'''

PARTIAL = """
Partial values are stacked along a first dimension, an entry for each value of the partial axes."""

MESH = '''\
def mesh(order=0):
    """The devices in an order of the plan, by process and number; an axis for each digit."""
    devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
    if len(devices) != len(ORDERS[order]):
        raise RuntimeError(f"made for {len(ORDERS[order])} devices, not {len(devices)}")
    return Mesh(np.array([devices[i] for i in ORDERS[order]]).reshape(SIZES), AXES)
'''

MAPPED = '''\
@functools.cache
def mapped(function, order, given, result):
    """A function of one device's block as one of the whole array."""
    specs = {"in_specs": given, "out_specs": result, "check_vma": False}
    return jax.jit(jax.shard_map(function, mesh=mesh(order), **specs))
'''

RENUMBERED = '''\
def renumbered(x, order, spec, shape):
    """The blocks stay where they are; the mesh of another order says which they are."""
    blocks = [shard.data for shard in x.addressable_shards]
    sharding = NamedSharding(mesh(order), spec)
    return jax.make_array_from_single_device_arrays(shape, sharding, blocks)
'''

WHOLE = '''\
def redistribute(x):
    """The array `x` in the layout TARGET of the plan.

    {note}
    """
    if x.shape != SHAPE or x.dtype != DTYPE:
        raise ValueError(f"made for {{DTYPE}}{{list(SHAPE)}}, not {{x.dtype}}{{list(x.shape)}}")
    if not isinstance(x, jax.core.Tracer):
        if not x.sharding.is_equivalent_to(NamedSharding(mesh(), SOURCE), x.ndim):
            raise ValueError(f"x is sharded as {{x.sharding}}, not as {{SOURCE}} on mesh()")
    {lines}
'''

INSIDE_JIT = "It may be called inside jit, where XLA shards `x` as SOURCE first."

NOT_INSIDE_JIT = (
    "The result has the devices in another order, so this is no part of a jitted function."
)

PADDED = '''\
def padded(x):
    """An array of the planned shape, with zeros at the ends, so that blocks are of one shape."""
    return jax.numpy.pad(x, PADDING)


def unpadded(x):
    """The array without what `padded` added."""
    return x[tuple(slice(size) for size in UNPADDED)]
'''
