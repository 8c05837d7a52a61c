"""JAX ``Mesh``: devices in the order of launched ranks, brought to their coordinates.

``jax.devices()`` of a job lists devices by process; sorted by process and number they are those of
launched ranks 0, 1, .., with a process for each device or for each host.  ``Mesh`` takes them in
any order.
"""

from __future__ import annotations

from p2smt.interop.exported import Exported
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.meshes.arrays import comment_name, tensor_text
from p2smt.interop.meshes.device_mesh import names_text
from p2smt.interop.meshes.jax_processes import process_notes
from p2smt.interop.meshes.numbering import launched_ranks


def write_jax_mesh(plan: PlacedPlan, _path: str) -> Exported:
    """A Python function that makes the mesh."""
    tensor = launched_ranks(plan)
    order = tensor_text(tensor, "np.arange", "np.array", "transpose")
    lines = [
        f'"""The mesh of {comment_name(plan.source)}, written by p2smt."""',
        "",
        "import jax",
        "import numpy as np",
        "from jax.sharding import Mesh",
        "",
        "",
        "def mesh() -> Mesh:",
        "    devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))",
        f"    if len(devices) != {tensor.size}:",
        f'        raise RuntimeError(f"made for {tensor.size} devices, not {{len(devices)}}")',
        *(f"    {line}" for line in f"ranks = {order}".splitlines()),
        f"    return Mesh(np.array(devices)[ranks], {names_text(plan)})",
    ]
    return Exported("\n".join(lines) + "\n", process_notes(plan))
