"""A Slurm host file: the host of each rank, a line each, in the order of the ranks.

srun(1), ``--distribution=arbitrary``: processes are allocated in the order of the file that
SLURM_HOSTFILE names.  Task i runs on the host of line i, and the tasks of one host count
SLURM_LOCALID from 0 in the order of their numbers; hosts that no line names stay idle.  The file
is for a step of an allocation that exists; ``mpirun --map-by seq`` reads the same lines.
"""

from __future__ import annotations

import shlex

from p2smt.interop.exported import Exported
from p2smt.interop.launchers.local_ids import local_notes
from p2smt.interop.launchers.places import PlacedPlan


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
