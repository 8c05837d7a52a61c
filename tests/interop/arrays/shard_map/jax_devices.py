"""Runs generated modules on forced host devices.

``python -m tests.interop.arrays.shard_map.jax_devices MODULES GIVEN OUT``: case i has module
``i.py`` and the whole source array ``i.npy``; the block of device d goes to ``i.d.npy``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np
from jax.sharding import NamedSharding

from tests.pages import script


def main(folder: Path, count: int) -> None:
    for number in range(count):
        module = script(folder / f"case_{number}.py")
        given = np.load(folder / f"{number}.npy").astype(module.DTYPE)
        x = jax.device_put(given, NamedSharding(module.mesh(), module.SOURCE))
        result = module.redistribute(x)
        assert result.dtype == module.DTYPE
        for shard in result.addressable_shards:
            np.save(folder / f"{number}.{shard.device.id}.npy", np.asarray(shard.data, np.float64))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
