"""An Open MPI rankfile: ``rank R=HOST slot=CORE``.

mpirun(1): in Open MPI 4 a rank needs a slot, the logical core that it is bound to; each gets that
of its local rank's number.  Version 5 reads the same file by ``--map-by rankfile:file=``, and binds
to no core where ``--bind-to none`` says so; version 4 binds all the same.

Names are shortened to what stands before the first dot unless an option says otherwise, and hosts
whose names are equal then are one host, without a word.
"""

from __future__ import annotations

import ipaddress
import re
import shlex

from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.launchers.local_ids import local_notes
from p2smt.interop.launchers.places import PlacedPlan

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
