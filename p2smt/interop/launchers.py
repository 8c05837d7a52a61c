"""Files for what starts the ranks of a plan: Open MPI, Slurm, torchrun, and plain tables.

:mod:`p2smt.interop.places` says on which host and device each rank lies.
"""

from __future__ import annotations

import ipaddress
import re
import shlex

from p2smt.cluster.hostlist import format_hostlist
from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.places import PlacedPlan, local_notes, local_orders, telling

# An Open MPI rankfile: ``rank R=HOST slot=CORE``.
# mpirun(1): in Open MPI 4 a rank needs a slot, the logical core that it is bound to; each gets that
# of its local rank's number.  Version 5 reads the same file by ``--map-by rankfile:file=``, and
# binds to no core where ``--bind-to none`` says so; version 4 binds all the same.
#
# Names are shortened to what stands before the first dot unless an option says otherwise, and hosts
# whose names are equal then are one host, without a word.


MAX_NAMED = 16
"""Most hosts that a note names one by one."""
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*|[A-Za-z][A-Za-z0-9_.-]*")
_WORDS = ("rank", "slot", "slots", "username", "user-name", "user_name")
_KEEP = ("--mca orte_keep_fqdn_hostnames 1 ", "--prtemca prte_keep_fqdn_hostnames 1 ")


def write_rankfile(plan: PlacedPlan, path: str) -> Exported:
    """The rankfile, and how versions 4 and 5 of Open MPI take it.

    Raises:
        InputError: a host has a name that a rankfile cannot hold.
    """
    for host in plan.hosts:
        _check_name(host)
    lines = [f"rank {one.rank}={one.host} slot={one.local_rank}\n" for one in plan.places]
    keep, file = _KEEP if _alike(plan.hosts) else ("", ""), shlex.quote(path)
    four = f"mpirun {keep[0]}--rankfile {file} {_hosts(plan)}"
    five = f"mpirun {keep[1]}--map-by rankfile:file={file} {_hosts(plan)}"
    notes = (
        f"Open MPI 4: {four} PROGRAM",
        f"Open MPI 5: {five} PROGRAM",
        "each rank is bound to one core; to bind none take --to slurm and mpirun --map-by seq "
        "--hostfile FILE --bind-to none (Open MPI 5: --map-by seq:file=FILE)",
        *local_notes(
            plan, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK", f"{four} {{}} PROGRAM"
        ),
    )
    return Exported("".join(lines), notes)


def _hosts(plan: PlacedPlan) -> str:
    """The option that names the hosts, and how many ranks each may have."""
    if len(plan.hosts) > MAX_NAMED:
        return f"--hostfile HOSTS (a line 'NAME slots={plan.per_host}' for each)"
    return "--host " + ",".join(f"{host}:{plan.per_host}" for host in plan.hosts)


def _check_name(host: str) -> None:
    number = host.isdecimal() or host in _WORDS
    if not _address(host) and (number or not _HOST.fullmatch(host)):
        rule = "is no name that a rankfile can hold"
        raise InputError(f"host {host[:80]!r}", rule, "take --to slurm, and mpirun --map-by seq")


def _alike(hosts: tuple[str, ...]) -> bool:
    """Whether some names are equal up to their first dots."""
    short = {host if _address(host) else host.partition(".")[0] for host in hosts}
    return len(short) < len(hosts)


def _address(host: str) -> bool:
    try:
        return isinstance(ipaddress.ip_address(host), ipaddress.IPv4Address)
    except ValueError:
        return False


# A Slurm host file: the host of each rank, a line each, in the order of the ranks.
# srun(1), ``--distribution=arbitrary``: processes are allocated in the order of the file that
# SLURM_HOSTFILE names.  Task i runs on the host of line i, and the tasks of one host count
# SLURM_LOCALID from 0 in the order of their numbers; hosts that no line names stay idle.  The file
# is for a step of an allocation that exists; ``mpirun --map-by seq`` reads the same lines.


def write_slurm(plan: PlacedPlan, path: str) -> Exported:
    """The host file, exactly as many lines as ranks."""
    text = "".join(f"{place.host}\n" for place in plan.places)
    count, file = len(plan.places), shlex.quote(path)
    srun = f"SLURM_HOSTFILE={file} srun -n {count} --distribution=arbitrary"
    notes = (
        f"in an allocation that has these {len(plan.hosts)} hosts: {srun} PROGRAM",
        f"rank 0 is on {plan.places[0].host}: set MASTER_ADDR={plan.places[0].host} for programs "
        "that meet there",
        *local_notes(plan, "SLURM_LOCALID", "SLURM_PROCID", f"{srun} {{}} PROGRAM"),
    )
    return Exported(text, notes)


# Ranks as a table: ``rank,host,local_rank``, and the hosts alone.


HEADER = "rank,host,local_rank"


def write_csv(plan: PlacedPlan, _path: str) -> Exported:
    """A line for each rank, in their order."""
    means = "local_rank counts the devices of a host from 0: it is the one that the rank uses"
    lines = [f"{place.rank},{place.host},{place.local_rank}" for place in plan.places]
    return Exported("\n".join([HEADER, *lines]) + "\n", (means,))


def write_hostlist(plan: PlacedPlan, path: str) -> Exported:
    """The hosts by their first rank, in one line as Slurm writes them."""
    hosts = dict.fromkeys(place.host for place in plan.places)
    note = f"for salloc --nodelist=$(cat {shlex.quote(path)}): which hosts, as Slurm sorts them"
    return Exported(format_hostlist(tuple(hosts)) + "\n", (note,))


# Commands for torchrun, one for each host.
# torch.distributed.run: with the static rendezvous, the default, the ranks of the node that
# ``--node-rank`` numbers k are ``k * nproc .. k * nproc + nproc - 1``, their LOCAL_RANK counting
# from 0.  So torchrun can start a plan's ranks as they are only if those of each host are one such
# block.


PORT = 29_500


def write_torchrun(plan: PlacedPlan, path: str) -> Exported:
    """A line for each host: its name, and the command without the program.

    Where LOCAL_RANK as torchrun counts it is not the device, the command sets it to that.

    Raises:
        InputError: the ranks of some host are not one block.
    """
    hosts, orders = host_blocks(plan), local_orders(plan)
    common = f"--nproc-per-node={plan.per_host} --master-addr={hosts[0]} --master-port={PORT}"
    lines = []
    for k, host in enumerate(hosts):
        told = telling(orders[host], "LOCAL_RANK")
        program = f" --no-python {told} python" if told else ""
        options = f"--nnodes={len(hosts)} --node-rank={k} {common}{program}"
        lines.append(f"{host} torchrun {options}\n")
    ssh = 'ssh -n "$host" "cd $PWD && $command train.py" &'
    loop = f"while read -r host command; do {ssh} done < {shlex.quote(path)}; wait"
    notes = (f"a line is a host and the command for it; to start train.py on all: {loop}",)
    return Exported("".join(lines), notes)


def host_blocks(plan: PlacedPlan) -> list[str]:
    """The host of each block of ranks, as torchrun numbers them.

    Raises:
        InputError: the ranks of some host are not one block.
    """
    each = plan.per_host
    for place in plan.places:
        first = plan.places[place.rank - place.rank % each]
        if place.host != first.host:
            raise _scattered(plan, first.host)
    return [place.host for place in plan.places[::each]]


def _scattered(plan: PlacedPlan, host: str) -> InputError:
    ranks = [place.rank for place in plan.places if place.host == host]
    shown = ", ".join(map(str, ranks[:4])) + (", .." if len(ranks) > 4 else "")
    given = f"{plan.source}: ranks {shown} of {host}"
    rule = "are not one block of consecutive ranks, and torchrun gives a host no others"
    return InputError(
        given,
        rule,
        "start them by --to slurm or rankfile, or host by host with --by-host and the mesh of "
        "--to device-mesh",
    )
