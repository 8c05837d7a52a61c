"""Which device a launcher's own local number stands for.

A launcher numbers the ranks of a host by their order; a plan may give the first of them any device.
Where the two differ, the program must be told.
"""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.interop.launchers.places import PlacedPlan

TABLE = "ranks.csv"
"""How commands call the table of ``--to csv``."""


def local_orders(plan: PlacedPlan) -> dict[str, tuple[int, ...]]:
    """For each host the local ranks (devices) of its ranks, the ranks ascending."""
    found: dict[str, list[int]] = {host: [] for host in plan.hosts}
    for place in plan.places:
        found[place.host].append(place.local_rank)
    return {host: tuple(devices) for host, devices in found.items()}


def telling(order: Sequence[int], local: str) -> str:
    """A command that runs what follows it with LOCAL_RANK set to the device of the plan.

    Empty where the launcher's own number, which the variable ``local`` has, is that of the device;
    ``order``: the devices by that number.
    """
    if tuple(order) == tuple(range(len(order))):
        return ""
    return _setting(f"order=({' '.join(map(str, order))}); export LOCAL_RANK=${{order[{local}]}}")


def local_notes(plan: PlacedPlan, local: str, rank: str, start: str) -> tuple[str, ...]:
    """What to do where a launcher's own number is not that of the device; else nothing.

    ``local`` and ``rank`` are the variables in which the launcher tells a process its number on
    the host and among all; ``start`` is how the program is started, with ``{}`` where the command
    stands that tells it LOCAL_RANK.
    """
    orders, table = set(local_orders(plan).values()), ""
    if len(orders) == 1:
        told = telling(next(iter(orders)), local)
    else:
        told = _setting(f"export LOCAL_RANK=$(sed -n $(({rank} + 2))p {TABLE} | cut -d, -f3)")
        table = f", with {TABLE} from p2smt export PLAN --to csv"
    if not told:
        return ()
    lead = f"{local} is not the plan's local rank (which device a rank uses)"
    return (f"{lead}; to have it in LOCAL_RANK{table}: {start.format(told)}",)


def _setting(how: str) -> str:
    return f"bash -c '{how}; exec \"$@\"' -"
