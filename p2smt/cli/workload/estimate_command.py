"""`p2smt estimate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from p2smt.cli import options as o
from p2smt.cli.workload import workload_options as w

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.parallelism.placement import Placement
    from p2smt.training.strategy import Strategy


def estimate(
    model: w.ModelOption = None,
    topology: o.TopologyOption = None,
    use: o.UseOption = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            "-s",
            metavar="KEY=N,..",
            help="tp, pp, dp, cp, vpp, mbs, sp (0, 1), zero (0 to 3), recompute (none, selective, "
            "full), flash (0, 1), dtype (bf16, fp16), split (layers of each chunk: 19/20*2/21).",
        ),
    ] = None,
    global_batch: w.BatchOption = None,
    seq: w.SequenceOption = None,
    efficiency: w.EfficiencyOption = None,
    placement: Annotated[
        str | None,
        typer.Option(
            "--placement",
            metavar="MATRIX",
            help="Rows for pp, dp, cp, tp; default: ranks in order, pp outermost.",
        ),
    ] = None,
    memory: w.MemoryOption = None,
    library: o.LibraryOption = None,
    nominal: o.NominalOption = False,
    svg: w.SvgOption = None,
    json: o.JsonOption = False,
) -> int:
    """Time and memory of an iteration of one training run, by their parts."""
    from p2smt.api.workload import estimate as estimated
    from p2smt.cli import given, restrictions
    from p2smt.cli.output import print_json
    from p2smt.errors import InputError
    from p2smt.files.write import check_svg_name
    from p2smt.report.tables import show
    from p2smt.report.training.estimate_data import estimate_data
    from p2smt.report.training.estimate_tables import estimate_tables
    from p2smt.report.training.picture import write_run_picture
    from p2smt.training.remedies import remedies
    from p2smt.training.strategy import parse_strategy

    texts = w.WorkloadTexts(model, global_batch, seq, efficiency, memory)
    if strategy is None:
        raise InputError("strategy", "is missing", "give --strategy tp=8,pp=4,dp=2")
    chosen = parse_strategy(strategy)
    trained, batch = texts.trained()
    cluster = given.topology_of(topology, library, nominal=nominal, use=use)
    where = None if placement is None else _placement(placement, cluster, chosen)
    restrictions.writable(svg)
    if svg is not None:
        check_svg_name(svg)
    found = estimated(
        trained, cluster, chosen, batch, efficiency, placement=where, memory=texts.memory_bytes()
    )
    if svg is not None:
        write_run_picture([found], svg)
    if json:
        print_json(estimate_data(found))
    else:
        show(estimate_tables(found, () if found.fits else remedies(found)))
    return 0


def _placement(text: str, topology: Topology, strategy: Strategy) -> Placement:
    """The matrix of --placement, which has a row for each axis in Megatron's order."""
    from p2smt.cli.scene_options import placement_of
    from p2smt.parallelism.placement import ParallelismAxis
    from p2smt.training.strategy import AXES

    sizes = zip(AXES, strategy.sizes, strict=True)
    return placement_of(text, topology, tuple(ParallelismAxis(*one) for one in sizes))
