"""Which processes of JAX a mesh of launched ranks is for.

``jax.devices()`` lists devices by process.  With a process for each device the t-th is launched
rank t, wherever that runs; with one for each host, JAX's default, the t-th is device t % g of
process t // g, g being the devices of a host.  Only ranks that are numbered so are in both the
same; others get a mesh whose neighbours lie elsewhere than planned: right results, other times.
"""

from __future__ import annotations

from p2smt.interop.launchers.places import PlacedPlan


def process_notes(plan: PlacedPlan) -> tuple[str, ...]:
    """What to start where the ranks of a host are not one block in the order of its devices."""
    each = plan.per_host
    for place in plan.places:
        first = plan.places[place.rank - place.rank % each]
        if place.host != first.host or place.local_rank != place.rank % each:
            return (_note(plan, first.host),)
    return ()


def _note(plan: PlacedPlan, host: str) -> str:
    ranks = sorted((one.local_rank, one.rank) for one in plan.places if one.host == host)
    shown = ", ".join(str(rank) for _, rank in ranks[:4]) + (", .." if len(ranks) > 4 else "")
    return (
        f"devices 0, 1, .. of {host} are ranks {shown}, not one block in this order: start a "
        "process for each device, process_id being its rank (--to slurm or rankfile), or with a "
        "process for each host export with --by-host"
    )
