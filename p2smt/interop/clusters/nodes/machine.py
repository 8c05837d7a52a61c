"""What the machine that this runs on tells of itself.

``nvidia-smi topo -m`` (or ``rocm-smi --showtopo``) has GPUs and what joins them, ``nvidia-smi
--query-gpu=name`` their models, /sys/class/infiniband rates of network cards, $NCCL_TOPO_FILE PCIe
(and all, where no tool is installed), and $SLURM_JOB_NODELIST the hosts of the job.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from p2smt.cluster.nodes.hostlist import parse_hostlist
from p2smt.errors import BackendError
from p2smt.files.yaml_text import read_text
from p2smt.interop.clusters.facts import Facts, OutsideFacts
from p2smt.interop.clusters.nodes.facts import CardPort, NodeFacts, Told
from p2smt.interop.clusters.nodes.models import model_of_product
from p2smt.interop.clusters.nodes.nccl_xml import parse_nccl_xml
from p2smt.interop.clusters.nodes.reduce import facts_of_node
from p2smt.interop.clusters.nodes.rocm_matrix import parse_rocm_matrix
from p2smt.interop.clusters.nodes.topo_matrix import parse_topo_matrix

NVIDIA, ROCM = "nvidia-smi", "rocm-smi"
TOPO_FILE, NODE_LIST = "NCCL_TOPO_FILE", "SLURM_JOB_NODELIST"
CARDS = "/sys/class/infiniband"
MAX_SECONDS = 60.0
_MAX_XML = 8 * 1024 * 1024
_RATE = re.compile(r"([0-9]{1,4}(?:\.[0-9])?) Gb/sec\b.*", re.S)
_SPEAKS = {"InfiniBand": "infiniband", "Ethernet": "roce"}


def facts_of_machine(environment: Mapping[str, str], told: Told, cards: str = CARDS) -> list[Facts]:
    """What this machine, and the job that it is part of, tell; with these variables.

    Raises:
        BackendError: nothing here tells of GPUs, or the tool that should fails.
        InputError: what tells is malformed, or leaves something open.
    """
    tool = _from_tool(environment, cards)
    file = _from_file(environment)
    if tool is None and file is None:
        raise BackendError(
            f"no GPUs to ask: neither {NVIDIA} nor {ROCM} is installed here, and ${TOPO_FILE} is "
            "not set; run this on a node with GPUs, or give files from one to p2smt topology import"
        )
    node = _joined(tool, file) if tool and file else tool or file
    found = [facts_of_node(node, told)] if node else []
    if listed := environment.get(NODE_LIST, ""):
        hosts = parse_hostlist(listed)
        found.append(Facts(f"${NODE_LIST}", outside=OutsideFacts((), loose=hosts)))
    return found


def _from_tool(environment: Mapping[str, str], cards: str) -> NodeFacts | None:
    """What the vendor's tool prints; None: there is none."""
    path = environment.get("PATH", os.defpath)
    nvidia, rocm = (shutil.which(name, path=path) for name in (NVIDIA, ROCM))
    if nvidia is not None:
        node = parse_topo_matrix(_printed(nvidia, "topo", "-m"), f"{NVIDIA} topo -m")
        names = _printed(nvidia, "--query-gpu=name", "--format=csv,noheader").split("\n")
        models = tuple(model_of_product(name) for name in names if name.strip())
        if len(models) == len(node.gpus):
            node = node.of_models(models)
        return _with_rates(node, cards)
    if rocm is not None:
        return parse_rocm_matrix(_printed(rocm, "--showtopo"), f"{ROCM} --showtopo")
    return None


def _printed(program: str, *options: str) -> str:
    """What a program prints.

    Raises:
        BackendError: it fails, or takes too long.
    """
    shown = " ".join((os.path.basename(program), *options))
    try:
        done = subprocess.run(
            (program, *options),
            capture_output=True,
            timeout=MAX_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        late = isinstance(error, subprocess.TimeoutExpired)
        why = f"took longer than {MAX_SECONDS:g} s" if late else f"cannot be run: {error}"
        raise BackendError(f"{shown} {why}") from None
    text = done.stdout.decode("utf-8", errors="replace")
    if done.returncode:
        said = (done.stderr.decode("utf-8", errors="replace") or text).strip().split("\n")[0]
        why = f"failed with exit code {done.returncode}: {said[:200] or 'without a word'}"
        raise BackendError(f"{shown} {why}; is the driver loaded, and may this user see the GPUs?")
    return text


def _from_file(environment: Mapping[str, str]) -> NodeFacts | None:
    path = environment.get(TOPO_FILE, "")
    if not path:
        return None
    return parse_nccl_xml(read_text(path, f"${TOPO_FILE}", _MAX_XML), os.path.basename(path)[:100])


def _joined(tool: NodeFacts, file: NodeFacts) -> NodeFacts:
    """What a tool prints, with the PCIe of a file, and its network cards if the tool has none."""
    count = len(tool.gpus)
    if count != len(file.gpus):
        left = f"{file.source} has {len(file.gpus)} GPUs, not {count}: it is left out"
        return replace(tool, lost=(*tool.lost, left))
    gpus = tuple(
        replace(
            gpu,
            pcie_bytes_per_s=other.pcie_bytes_per_s,
            uplink_bytes_per_s=other.uplink_bytes_per_s,
        )
        for gpu, other in zip(tool.gpus, file.gpus, strict=True)
    )
    found = replace(tool, gpus=gpus, socket_bytes_per_s=file.socket_bytes_per_s)
    if tool.ports:
        return found
    near = [
        row[:count] + file.near[i][count:] if i < count else file.near[i]
        for i, row in enumerate((*tool.near, *file.near[count:]))
    ]
    return replace(found, ports=file.ports, near=tuple(near))


def _with_rates(node: NodeFacts, cards: str) -> NodeFacts:
    """The same with rates and fabrics of ports, as the kernel has them."""
    return replace(node, ports=tuple(_with_rate(port, Path(cards)) for port in node.ports))


def _with_rate(port: CardPort, cards: Path) -> CardPort:
    folder = cards / port.name / "ports" / "1"
    rate = _RATE.fullmatch(_line(folder / "rate"))
    speaks = _SPEAKS.get(_line(folder / "link_layer").strip(), "")
    return replace(port, bytes_per_s=float(rate[1]) * 1e9 / 8 if rate else None, fabric=speaks)


def _line(path: Path) -> str:
    """The start of a small file; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(200).decode("ascii", errors="replace").strip()
    except (OSError, ValueError):
        return ""
