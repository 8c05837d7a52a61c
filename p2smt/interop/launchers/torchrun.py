"""Commands for torchrun, one for each host.

torch.distributed.run: with the static rendezvous, the default, the ranks of the node that
``--node-rank`` numbers k are ``k * nproc .. k * nproc + nproc - 1``, their LOCAL_RANK counting from
0.  So torchrun can start a plan's ranks as they are only if those of each host are one such block.
"""

from __future__ import annotations

import shlex

from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.launchers.local_ids import local_orders, telling
from p2smt.interop.launchers.places import PlacedPlan

PORT = 29_500


def write_torchrun(plan: PlacedPlan, path: str) -> Exported:
    """A line for each host: its name, and the command without the program.

    Where LOCAL_RANK as torchrun counts it is not the device, the command sets it to that.

    Raises:
        InputError: the ranks of some host are not one block.
    """
    hosts, orders = _blocks(plan), local_orders(plan)
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
