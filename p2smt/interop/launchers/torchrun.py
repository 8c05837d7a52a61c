"""Commands for torchrun, one for each host.

torch.distributed.run: with the static rendezvous, the default, the ranks of the node that
``--node-rank`` numbers k are ``k * nproc .. k * nproc + nproc - 1``, their LOCAL_RANK counting from
0.  So torchrun can start a plan's ranks as they are only if those of each host are one such block.
"""

from __future__ import annotations

import shlex

from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.launchers.local_ids import local_notes
from p2smt.interop.launchers.places import PlacedPlan

PORT = 29_500


def write_torchrun(plan: PlacedPlan, path: str) -> Exported:
    """A line for each host: its name, and the command without the program.

    Raises:
        InputError: the ranks of some host are not one block.
    """
    hosts = _blocks(plan)
    common = f"--nproc-per-node={plan.per_host} --master-addr={hosts[0]} --master-port={PORT}"
    lines = [
        f"{host} torchrun --nnodes={len(hosts)} --node-rank={k} {common}\n"
        for k, host in enumerate(hosts)
    ]
    notes = (
        f"a line is a host and its command; to start all: {_loop(path, 'train.py')}",
        *local_notes(plan, "LOCAL_RANK", "RANK", "HOST's command --no-python {} python train.py"),
    )
    return Exported("".join(lines), notes)


def _loop(path: str, program: str) -> str:
    ssh = f'ssh -n "$host" "cd $PWD && $command {program}" &'
    return f"while read -r host command; do {ssh} done < {shlex.quote(path)}; wait"


def _blocks(plan: PlacedPlan) -> list[str]:
    """The host of each block of ranks."""
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
