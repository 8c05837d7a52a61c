"""Runs exported modules for JAX on forced host devices.

``python -m tests.interop.meshes.jax_devices CASES OUT``: as in ``gloo_ranks``, with as many devices
as XLA_FLAGS forces.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tests.interop.meshes.payloads import payload
from tests.pages import script


def main(cases: list[dict[str, Any]], out: Path) -> None:
    known: dict[str, Any] = {}
    ranks = jax.device_count()
    for number, case in enumerate(cases):
        path = case["module"]
        if path not in known:
            known[path] = script(Path(path))
        module = known[path]
        whole = np.stack([payload(number, rank, case["elements"]) for rank in range(ranks)])
        call = module.sharded(getattr(module, case["name"]), module.mesh())
        for rank, result in enumerate(np.asarray(call(whole))):
            np.save(out / f"{number}.{rank}.npy", result)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
