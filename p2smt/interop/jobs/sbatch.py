"""A batch script for Slurm: the whole job of a training plan.

sbatch(1), srun(1): lines of ``#SBATCH`` ask for nodes; the script runs on the first of them, and
``srun --distribution=arbitrary`` starts rank r on the host in line r of ``$SLURM_HOSTFILE``.  Which
hosts a job gets is known when it runs: unless they are pinned, the job asks ``p2smt order`` for
their order.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import groupby

from p2smt.cluster.hostlist import format_hostlist
from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.jobs.command import PORT, USUAL, AskedJob, JobCommand, job_command, setting
from p2smt.interop.places import PlacedPlan, local_orders


def write_sbatch(plan: PlacedPlan, path: str, asked: AskedJob = USUAL) -> Exported:
    """The script; its hosts are those of the plan if they are pinned, else those of the job.

    Raises:
        InputError: as :func:`~p2smt.interop.jobs.command.job_command`, or the ranks of hosts lie on
            their devices in unlike orders.
    """
    command = job_command(plan, asked)
    order = _local_order(plan)
    lines = [
        *_header(plan, command, asked),
        *_said(command, asked),
        *_needs(plan, asked),
        *_yours(command),
        *_planned(command),
        *(_pinned(plan) if asked.pinned else _ordered(plan, asked)),
        *_start(len(plan.places), order, command),
    ]
    return Exported("\n".join(lines) + "\n", (*_notes(plan, path, asked), *command.notes))


def _local_order(plan: PlacedPlan) -> tuple[int, ...]:
    """The devices of a host by its ranks, ascending."""
    orders = set(local_orders(plan).values())
    if len(orders) > 1:
        rule = "has hosts whose ranks lie on their devices in unlike orders"
        raise InputError(plan.source, rule, "give --hosts and --by-host, or take --to slurm")
    return orders.pop()


def _hosts(plan: PlacedPlan) -> tuple[str, ...]:
    """Those with ranks, by their first."""
    return tuple(dict.fromkeys(place.host for place in plan.places))


def _header(plan: PlacedPlan, command: JobCommand, asked: AskedJob) -> Iterator[str]:
    hosts = _hosts(plan)
    yield "#!/bin/bash"
    yield f"#SBATCH --job-name={command.name}"
    yield f"#SBATCH --nodes={len(hosts)}"
    yield f"#SBATCH --ntasks-per-node={plan.per_host}"
    yield f"#SBATCH --gpus-per-node={plan.per_host}"
    yield "#SBATCH --exclusive"
    if asked.pinned:
        yield f"#SBATCH --nodelist={format_hostlist(hosts)}"


def _said(command: JobCommand, asked: AskedJob) -> Iterator[str]:
    yield f"# {command.title}, by p2smt: {command.what}"
    yield f"# of {shlex.quote(asked.plan)}"
    for note in command.notes:
        yield f"# {note}"


def _needs(plan: PlacedPlan, asked: AskedJob) -> Iterator[str]:
    """What must be there for it to run."""
    if asked.pinned:
        yield "# It needs the hosts of its plan, by the names that Slurm has of them, and no p2smt."
    else:
        yield "# It needs p2smt on the first of its nodes, as p2smt order puts these in order,"
        yield f"# and the plan there: {shlex.quote(asked.plan)}, or what PLAN names."
        if plan.problem.topology.hosts is not None:
            yield "# Its hosts must be in the plan's topology, or in a file that TOPOLOGY names."
    yield ""
    yield "set -eo pipefail"


def _yours(command: JobCommand) -> Iterator[str]:
    yield ""
    yield "# YOURS: account, partition and time above, modules or a container here, and the program"
    yield f"program=({shlex.join(command.program)})"
    yield "# YOURS: data, tokenizer, learning rate, checkpoints; or behind the name of this script"
    yield "yours=("
    yield ")"


def _planned(command: JobCommand) -> Iterator[str]:
    """Options of the plan, which the user's must not repeat: trainers would take the last."""
    yield ""
    yield "# the plan's"
    yield from (setting(*one) for one in command.environment.items())
    yield "planned=("
    yield from (f"  {option}" for option in command.options)
    yield ")"
    yield 'yours+=("$@")'
    yield 'for given in "${yours[@]}"; do'
    yield '  for option in "${planned[@]}"; do'
    yield '    if [[ $option == --* && ${given%%=*} == "$option" ]]; then'
    yield '      echo "$option is the plan\'s: leave it out, or plan again" >&2'
    yield "      exit 2"
    yield "    fi"
    yield "  done"
    yield "done"


def _pinned(plan: PlacedPlan) -> Iterator[str]:
    """The host of each rank: a line for each run of ranks on one host."""
    yield ""
    yield "# the host of each rank, of as many in a row as behind it"
    yield "hostfile=$(mktemp)"
    yield "while read -r host count; do"
    yield '  for ((i = 0; i < count; i++)); do echo "$host"; done'
    yield "done > \"$hostfile\" << 'HOSTS'"
    for host, ranks in groupby(plan.places, key=lambda place: place.host):
        yield f"{host} {len(list(ranks))}"
    yield "HOSTS"


def _ordered(plan: PlacedPlan, asked: AskedJob) -> Iterator[str]:
    yield ""
    yield "# the host of each rank: those of the job in the best order for the plan"
    yield f"plan=${{PLAN:-{shlex.quote(asked.plan)}}}"
    yield "hostfile=$(mktemp)"
    yield f'{shlex.join(_order(plan))} "$plan" ${{TOPOLOGY:+-t "$TOPOLOGY"}} -o "$hostfile"'


def _order(plan: PlacedPlan) -> tuple[str, ...]:
    """The command that orders the hosts of a job, without its plan."""
    topology = plan.problem.topology
    node = topology.devices_under(topology.node_level)
    each = () if plan.per_host == node else ("--devices-per-host", str(plan.per_host))
    return ("p2smt", "order", *each)


def _start(ranks: int, order: tuple[int, ...], command: JobCommand) -> Iterator[str]:
    straight = order == tuple(range(len(order)))
    local = "$SLURM_LOCALID" if straight else "${order[SLURM_LOCALID]}"
    devices = "" if straight else f"order=({' '.join(map(str, order))}); "
    words = ['"${program[@]}"', '"${planned[@]}"', '"${yours[@]}"', *map(shlex.quote, command.last)]
    yield ""
    yield "export MASTER_ADDR"
    yield 'read -r MASTER_ADDR < "$hostfile"'
    yield f"export MASTER_PORT=${{MASTER_PORT:-{PORT}}} SLURM_HOSTFILE=$hostfile"
    yield "# RANK, WORLD_SIZE and LOCAL_RANK are what torch.distributed takes"
    yield f"srun --ntasks={ranks} --distribution=arbitrary bash -c '"
    yield f"  {devices}export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK={local}"
    yield '  exec "$@"\' - \\'
    yield f"  {' '.join(words)}"


def _notes(plan: PlacedPlan, path: str, asked: AskedJob) -> Iterator[str]:
    yield f"sbatch {shlex.quote(path)} ARGUMENTS: yours, such as data and tokenizer"
    if not asked.pinned:
        yield (
            "the job orders its hosts by p2smt order, which must be on the first of them; PLAN and "
            "TOPOLOGY of its environment name other files; --hosts pins hosts instead"
        )
        if plan.problem.topology.hosts is not None:
            yield (
                "the plan knows no hosts but those that it was made on: sbatch "
                "--export=ALL,TOPOLOGY=FILE names a topology that has what the job may get"
            )
