"""A rank's place among all: given, or found where torchrun or srun started it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.runtime.payload import RunOptions

_PORT = 29_500


@dataclass(frozen=True, slots=True)
class Place:
    """A rank among all, its number among those of its machine, and where the store is.

    ``listen_fd`` is a listening socket for the store that this rank is to serve; ``serves``
    that it has yet to open one.  ``joined``: somebody else started the ranks; ``run`` tells
    apart runs that meet at the same store.
    """

    rank: int
    ranks: int
    local_rank: int
    local_ranks: int
    host: str
    port: int
    listen_fd: int | None = None
    serves: bool = False
    joined: bool = False
    run: str = ""


def local_ranks(place: Place | None, ranks: int) -> range:
    """The ranks of this machine, numbered one after the other; all, if none exist yet."""
    if place is None:
        return range(ranks)
    count = min(place.local_ranks, ranks)
    first = min(max(0, place.rank - place.local_rank), ranks - count)
    return range(first, first + count)


def existing_place(environment: Mapping[str, str] = os.environ) -> Place | None:
    """This process's place among ranks that a launcher started; None: there is no launcher.

    torchrun sets RANK and WORLD_SIZE; a step that srun started has SLURM_PROCID and
    SLURM_STEP_NUM_TASKS.

    Raises:
        InputError: a variable is missing or no number.
    """
    if "RANK" in environment and "WORLD_SIZE" in environment:
        return _torchrun(environment)
    if "SLURM_PROCID" in environment and _number(environment, "SLURM_STEP_NUM_TASKS", 1) > 1:
        return _srun(environment)
    return None


def _torchrun(environment: Mapping[str, str]) -> Place:
    ranks = _number(environment, "WORLD_SIZE")
    rank = _number(environment, "RANK", below=ranks)
    host = environment.get("MASTER_ADDR")
    if host is None or "MASTER_PORT" not in environment:
        raise InputError(
            "RANK and WORLD_SIZE without MASTER_ADDR and MASTER_PORT",
            "ranks need an address to meet at",
            "start them with torchrun, or set all four",
        )
    return Place(
        rank,
        ranks,
        _number(environment, "LOCAL_RANK", rank),
        _number(environment, "LOCAL_WORLD_SIZE", ranks),
        host,
        _number(environment, "MASTER_PORT", below=2**16),
        serves=rank == 0 and environment.get("TORCHELASTIC_USE_AGENT_STORE") != "True",
        joined=True,
        run=environment.get("TORCHELASTIC_RESTART_COUNT", ""),
    )


def _srun(environment: Mapping[str, str]) -> Place:
    ranks = _number(environment, "SLURM_STEP_NUM_TASKS")
    rank = _number(environment, "SLURM_PROCID", below=ranks)
    local = _number(environment, "SLURM_LOCALID", 0)
    tasks = environment.get("SLURM_STEP_TASKS_PER_NODE", "1")
    step = _number(environment, "SLURM_STEP_ID", 0)
    job = _number(environment, "SLURM_JOB_ID", 0)
    port = _number(environment, "MASTER_PORT", _PORT + (16 * job + step) % 10_000, below=2**16)
    host = environment.get("MASTER_ADDR") or first_host(environment.get("SLURM_STEP_NODELIST", ""))
    each = int(found[0]) if (found := re.match(r"[0-9]{1,9}", tasks)) else 1
    serves = rank == 0
    return Place(
        rank, ranks, local, each, host, port, serves=serves, joined=True, run=f"{job}.{step}"
    )


def first_host(hosts: str) -> str:
    """The first name of a Slurm host list: ``a[03-05,7],b`` gives ``a03``."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])+", hosts)
    if first is None:
        raise InputError("SLURM_STEP_NODELIST", "is empty", "set MASTER_ADDR to rank 0's host")
    return re.sub(r"\[(\w*)[^\]]*\]", r"\1", first[0])


def _number(
    environment: Mapping[str, str], name: str, default: int | None = None, below: int = 2**31
) -> int:
    text = environment.get(name)
    if text is None and default is not None:
        return default
    if text is None or not re.fullmatch(r"[0-9]{1,18}", text) or int(text) >= below:
        rule = f"must be a whole number from 0 to {below - 1}"
        raise InputError(f"{name}={text and text[:40]}", rule, "use torchrun or srun")
    return int(text)


# Tells without torch that there are too few GPUs, from what the system shows of them.
# What is counted is an upper bound: a rank may see fewer than the machine has, and then torch says
# so when the rank starts.


_ROOT = Path("/")
_NVIDIA = "0x10de"
_DISPLAY = "0x03"
_OTHER_WAYS = ("dev/dxg", "dev/kfd", "dev/nvmap", "dev/nvhost-gpu")
"""Signs of GPUs that are not found as others are: of WSL, of AMD, of Tegra."""


def check_gpus(options: RunOptions, place: Place | None, ranks: int) -> None:
    """Refuse to start ranks, or to be one, where GPUs are surely missing.

    A launcher may show each rank a GPU of its own, so of ranks that exist (``place``) only those
    that can see none at all are refused.

    Raises:
        BackendError: there is no GPU.
        ExecutionError: there are fewer than the ranks need.
    """
    count = most_gpus() if options.device == "cuda" else None
    if count == 0:
        raise no_gpus(options)
    if count is not None and place is None and (ranks - 1) // options.ranks_per_gpu >= count:
        raise too_few_gpus(count * options.ranks_per_gpu, count, count)


def no_gpus(options: RunOptions) -> BackendError:
    """The error where the system shows no GPU."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    why = "" if hidden is None else f" (CUDA_VISIBLE_DEVICES={hidden[:40]})"
    return BackendError(
        f"{_asked(options)}: this machine shows no CUDA GPU{why}; run on a machine with GPUs, "
        "or use --backend gloo --device cpu"
    )


def no_cuda(options: RunOptions) -> BackendError:
    """The error where torch cannot use a GPU."""
    also = ", or has no NCCL" if options.backend == "nccl" else ""
    return BackendError(
        f"{_asked(options)}: this torch finds no CUDA GPU{also}; install a CUDA build of torch "
        "on a machine with GPUs, or use --backend gloo --device cpu"
    )


def _asked(options: RunOptions) -> str:
    return "backend nccl" if options.backend == "nccl" else "device cuda"


def too_few_gpus(rank: int, gpu: int, count: int) -> ExecutionError:
    """The error of a rank that has no GPU."""
    return ExecutionError(
        f"rank {rank}: needs GPU {gpu}, but this machine has {count}; start fewer ranks, "
        "or put several on a GPU with --ranks-per-gpu (a check of results, not of times)"
    )


def most_gpus(environment: Mapping[str, str] = os.environ, root: Path = _ROOT) -> int | None:
    """GPUs that CUDA can find here at most; None: that cannot be known without asking it."""
    if not (root / "sys/bus/pci").exists() or any((root / way).exists() for way in _OTHER_WAYS):
        return None
    nodes = len(list((root / "dev").glob("nvidia[0-9]*")))
    drivers = len(list((root / "proc/driver/nvidia/gpus").glob("*")))
    present = max(nodes, drivers, sum(map(_is_gpu, (root / "sys/bus/pci/devices").glob("*"))))
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    return present if visible is None else min(present, _named(visible))


def _named(visible: str) -> int:
    """How many devices CUDA_VISIBLE_DEVICES names: those before the first that is none."""
    names = (name.strip() for name in visible.split(","))
    return sum(1 for _ in takewhile(lambda name: name not in ("", "-1"), names))


def _is_gpu(device: Path) -> bool:
    try:
        vendor, kind = (device / "vendor").read_text(), (device / "class").read_text()
    except OSError:
        return False
    return vendor.strip() == _NVIDIA and kind.startswith(_DISPLAY)
