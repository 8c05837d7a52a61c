"""`p2smt topology fabric`."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import options as o

FabricArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME[:N]|FILE",
        help="Such as dgx1, dgx1:2, ring:8, torus:4x4, cube:3, mesh:4, a level preset, or a file: "
        "YAML, a topology of msccl-tools, what nvidia-smi topo -m printed.",
    ),
]
UnitOption = Annotated[
    str | None,
    typer.Option("--unit", metavar="RATE", help="Bandwidth of one unit, such as 25GB/s."),
]
LinkBandwidthOption = Annotated[
    str | None,
    typer.Option(
        "--link-bandwidth",
        metavar="RATE",
        help="Of one NVLink in each direction, for what nvidia-smi topo -m printed.",
    ),
]


def fabric(
    spec: FabricArgument,
    unit: UnitOption = None,
    link_bandwidth: LinkBandwidthOption = None,
    json: o.JsonOption = False,
) -> int:
    """One fabric: which rank can send to which, and what they share on the way."""
    from p2smt.cli.output import print_json
    from p2smt.interop.fabrics import read_fabric
    from p2smt.report.tables import show
    from p2smt.report.topologies import fabric_data, fabric_tables
    from p2smt.units import exact_rate

    found = read_fabric(
        spec,
        unit=None if unit is None else exact_rate(unit, "--unit"),
        link_bandwidth=(
            None if link_bandwidth is None else exact_rate(link_bandwidth, "--link-bandwidth")
        ),
    )
    if json:
        print_json(fabric_data(found))
    else:
        show(fabric_tables(found))
    return 0
