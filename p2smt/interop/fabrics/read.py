"""A fabric by name or from a file of any kind that is known here."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.file import MAX_BYTES, load_fabric
from p2smt.cluster.fabric.wiring import fabric_of
from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.files.yaml_text import read_text
from p2smt.interop.fabrics.msccl_topology import fabric_of_msccl, is_msccl_topology
from p2smt.interop.fabrics.nvidia_smi import is_nvidia_smi, wiring_of_smi
from p2smt.result import StopWatch


def read_fabric(
    spec: str,
    *,
    unit: Fraction | None = None,
    link_bandwidth: Fraction | None = None,
    watch: StopWatch | None = None,
) -> Fabric:
    """The fabric that ``spec`` names: as :func:`p2smt.cluster.fabric.file.load_fabric`, or a file
    with a topology of msccl-tools (JSON) or what `nvidia-smi topo -m` printed.

    Args:
        spec: a name or a path.
        unit: bytes per second of one unit of bandwidth; None: the greatest common one.
        link_bandwidth: bytes per second of one NVLink each way, for `nvidia-smi topo -m`.
        watch: of its making, which takes seconds where ranks are a thousand.

    Raises:
        InputError: no such fabric or file, or it cannot be read.
        OutOfTimeError: the time of ``watch`` came.
    """
    if link_bandwidth is not None and not _is_other_text(spec):
        rule = "goes with what nvidia-smi topo -m printed: others say their bandwidths"
        raise InputError("--link-bandwidth", rule, "drop it")
    if not os.path.isfile(spec) or spec.endswith((".yaml", ".yml")):
        return load_fabric(spec, unit, watch)
    source = Path(spec).name[:60]
    if spec.endswith(".json"):
        data = read_json(spec, source, "see docs/fabrics.md", MAX_BYTES)
        if is_msccl_topology(data):
            if unit is not None:
                raise InputError("--unit", f"bandwidths of {source} have no unit", "drop it")
            return fabric_of_msccl(data, source)
        raise InputError(source, 'is no topology of msccl-tools ("msccl_type": "topology")')
    text = read_text(spec, "fabric file", MAX_BYTES)
    if not is_nvidia_smi(text):
        rule = "is neither YAML, nor JSON of msccl-tools, nor what nvidia-smi topo -m prints"
        raise InputError(source, rule, "see docs/fabrics.md")
    return fabric_of(wiring_of_smi(text, link_bandwidth, source), unit)


def _is_other_text(spec: str) -> bool:
    """Whether it is a file that is neither YAML nor JSON by its name."""
    return os.path.isfile(spec) and not spec.endswith((".yaml", ".yml", ".json"))
