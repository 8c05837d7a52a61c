"""A rank's place among all: given, or found where torchrun or srun started it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from p2smt.errors import InputError

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
