"""What a plan can be exported to: a row for each ``--to``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from p2smt.errors import InputError, did_you_mean
from p2smt.interop.arrays.shard_map import write_shard_map
from p2smt.interop.exported import ArrayWriter, Exported, Writer
from p2smt.interop.frameworks import (
    write_deepspeed,
    write_device_mesh,
    write_jax_mesh,
    write_megatron,
    write_torchtitan,
)
from p2smt.interop.jobs.command import AskedJob
from p2smt.interop.jobs.jobset import write_jobset
from p2smt.interop.jobs.sbatch import write_sbatch
from p2smt.interop.launchers import (
    write_csv,
    write_hostlist,
    write_rankfile,
    write_slurm,
    write_torchrun,
)
from p2smt.interop.meshes.programs.jax_writer import write_jax
from p2smt.interop.meshes.programs.torch_writer import write_torch
from p2smt.interop.places import PlacedPlan
from p2smt.interop.trainers.deepspeed import DEEPSPEED
from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.interop.trainers.megatron_bridge import MEGATRON_BRIDGE
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.interop.trainers.trainer import options_writer
from p2smt.interop.tuners.mpi_writers import MPI_WRITERS
from p2smt.interop.tuners.writers import TUNER_WRITERS

WRITERS = (
    Writer("csv", "rank,host,local_rank: a line for each rank", ".csv", write_csv, starts=True),
    Writer(
        "hostlist", "the hosts by their first rank, in one line", "", write_hostlist, starts=True
    ),
    Writer("rankfile", "Open MPI: the host and core of each rank", "", write_rankfile, starts=True),
    Writer("slurm", "srun: the host of each rank, a line each", "", write_slurm, starts=True),
    Writer("torchrun", "torchrun: a command for each host", "", write_torchrun, starts=True),
    Writer("device-mesh", "torch: a function that makes the mesh", ".py", write_device_mesh),
    Writer("jax-mesh", "JAX: a function that makes the mesh", ".py", write_jax_mesh),
    Writer("megatron", "Megatron-LM: sizes and order of its axes", "", write_megatron),
    Writer("torchtitan", "TorchTitan: the degrees of parallelism", "", write_torchtitan),
    Writer("deepspeed", "DeepSpeed: the process topology", ".py", write_deepspeed),
    Writer("python", "torch.distributed: a function for each request", ".py", write_torch),
    Writer("jax", "JAX: a function for each request", ".py", write_jax),
    options_writer(MEGATRON, ""),
    options_writer(MEGATRON_BRIDGE, ".py"),
    options_writer(TORCHTITAN, ""),
    options_writer(DEEPSPEED, ".json"),
    Writer("sbatch", "Slurm: the job of `plan -o` as a batch script", ".sh", write_sbatch),
    Writer("kubernetes", "Kubernetes: the same as a JobSet", ".yaml", write_jobset),
)

JOBS: Mapping[str, Callable[[PlacedPlan, str, AskedJob], Exported]] = MappingProxyType(
    {"sbatch": write_sbatch, "kubernetes": write_jobset}
)
"""Writers of whole jobs by their names, of which more is asked."""

ARRAY_WRITERS = (
    ArrayWriter("jax-shard-map", "JAX: a redistribution as a function", write_shard_map),
)


def array_writer_named(name: str) -> ArrayWriter:
    """The row of that name for the plan of a redistribution.

    Raises:
        InputError: there is none.
    """
    for writer in ARRAY_WRITERS:
        if writer.name == name:
            return writer
    names = ", ".join(writer.name for writer in ARRAY_WRITERS)
    rule = "is not for the plan of a redistribution"
    raise InputError(f"--to {name[:40]!r}", rule, f"it has {names}")


def writer_named(name: str) -> Writer:
    """The row of that name.

    Raises:
        InputError: there is none.
    """
    for writer in WRITERS:
        if writer.name == name:
            return writer
    if any(writer.name == name for writer in ARRAY_WRITERS):
        rule = "is for the plan of a redistribution"
        raise InputError(f"--to {name}", rule, "give a file that redistribute -o wrote")
    libraries = [writer.name for writer in (*TUNER_WRITERS, *MPI_WRITERS)]
    if name in libraries:
        rule = "tells a library what to run, and says nothing of where ranks go"
        raise InputError(f"--to {name}", rule, "p2smt export writes it")
    names = [*(writer.name for writer in WRITERS), *libraries]
    rule = f"is none of {', '.join(names)}"
    raise InputError(f"--to {name[:40]!r}", rule, did_you_mean(name, names) or "name one of them")
