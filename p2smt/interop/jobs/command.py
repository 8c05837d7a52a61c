"""What the ranks of a training plan run: program, environment and options of its trainer.

Both trainers take RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT of the environment.
Sources: as of :mod:`p2smt.interop.trainers.megatron` (``megatron/training/arguments.py`` also says
what graphs need of NCCL) and :mod:`p2smt.interop.trainers.torchtitan` (``run_train.sh``: what is
chosen by name, such as ``activation-checkpoint:full``, stands behind all options).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from p2smt.errors import InputError
from p2smt.interop.places import PlacedPlan
from p2smt.interop.trainers.megatron import CONNECTIONS, MEGATRON, connections
from p2smt.interop.trainers.megatron_model import is_hybrid
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.interop.trainers.trainer import Trainer, exported_options, training_of
from p2smt.plans.training.file_model import TrainingBlock
from p2smt.training.plan_block import run_of
from p2smt.training.strategy import Strategy, strategy_text
from p2smt.training.transformer import Transformer

PORT = 29_500
"""Where ranks meet on the host of rank 0."""


@dataclass(frozen=True, slots=True)
class AskedJob:
    """What is asked of a job beside its plan.

    plan: the file as the job is to call it.  launcher: the trainer's name; empty: the one whose
    framework the plan's efficiency is of.  pinned: hosts were given, and the job takes no others.
    """

    plan: str = "plan.json"
    launcher: str = ""
    pinned: bool = False


USUAL = AskedJob()


@dataclass(frozen=True, slots=True)
class JobCommand:
    """What every rank runs.

    ``options`` are lines of the shell, each an option with its values; ``last`` are words that must
    stand behind all options, the user's own among them.  ``environment``: values by name; None:
    must not be set.
    """

    title: str
    what: str
    name: str
    program: tuple[str, ...]
    options: tuple[str, ...]
    last: tuple[str, ...]
    environment: Mapping[str, str | None]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Started:
    """How a trainer is started: its program, and the environment that a strategy needs."""

    trainer: Trainer
    program: Callable[[Transformer], tuple[str, ...]]
    environment: Callable[[Strategy, str], Mapping[str, str | None]]


def _megatron_program(model: Transformer) -> tuple[str, ...]:
    return ("python", "pretrain_hybrid.py" if is_hybrid(model) else "pretrain_gpt.py")


def _megatron_environment(strategy: Strategy, device: str) -> Mapping[str, str | None]:
    found: dict[str, str | None] = {}
    if strategy.zero > 1 or not _is_blackwell(device):
        found |= connections(strategy)
    if strategy.graphs != "none":  # where memory grows by segments, NCCL must not register graphs
        found["NCCL_GRAPH_REGISTER"] = "0"
    return found


def _is_blackwell(device: str) -> bool:
    return re.match(r"g?b[123]00", device) is not None


_STARTED: Mapping[str, _Started] = MappingProxyType(
    {
        MEGATRON.name: _Started(MEGATRON, _megatron_program, _megatron_environment),
        TORCHTITAN.name: _Started(
            TORCHTITAN, lambda _: ("python", "-m", "torchtitan.train"), lambda _, __: {}
        ),
    }
)


def job_command(placed: PlacedPlan, asked: AskedJob) -> JobCommand:
    """The command of a plan's ranks.

    Raises:
        InputError: the plan is none of a training, no such trainer is started here, or it lacks
            what the strategy needs.
    """
    block = training_of(placed)
    started = _started(asked.launcher, block, placed.source)
    run = run_of(block, placed.source)
    made = exported_options(started.trainer, placed)
    lines = made.text.splitlines()
    device = placed.problem.topology.device
    sizes = ",".join(f"{axis.name}={axis.size}" for axis in placed.problem.axes)
    return JobCommand(
        started.trainer.title,
        f"{run.model.name}, {strategy_text(run.strategy)}",
        _job_name(run.model.name, sizes),
        started.program(run.model),
        tuple(line for line in lines if line.startswith("--")),
        tuple(line for line in lines if not line.startswith("--")),
        started.environment(run.strategy, device.name if device else ""),
        tuple(one for one in made.notes if CONNECTIONS not in one),
    )


def _started(launcher: str, block: TrainingBlock, source: str) -> _Started:
    if launcher in _STARTED:
        return _STARTED[launcher]
    names = ", ".join(_STARTED)
    if launcher:
        given = f"--launcher {launcher[:40]!r}"
        raise InputError(given, "is none that jobs are written for", f"they are {names}")
    framework = block.efficiency.framework.name
    for one in _STARTED.values():
        if framework in one.trainer.frameworks:
            return one
    rule = "is the framework of no trainer that jobs are written for"
    raise InputError(f"{source}: {framework[:40]}", rule, f"give --launcher: {names}")


def _job_name(model: str, sizes: str) -> str:
    """A name for Slurm and Kubernetes: a label of DNS, short, as others are made of it."""
    found = re.sub(r"[^a-z0-9]+", "-", f"{model.rpartition('/')[2]}-{sizes}".lower())
    return re.sub(r"^[^a-z]+", "", found)[:40].strip("-") or "training"


def setting(name: str, value: str | None) -> str:
    """A line of the shell that sets a variable, or sees to it that it is not set."""
    return f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"
