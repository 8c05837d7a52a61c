"""`p2smt estimate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, opened, option, part
from p2smt.cli.training import training_options as t

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.parallelism.placement import Placement
    from p2smt.training.efficiency import Efficiency
    from p2smt.training.strategy import Strategy


@opened
def estimate(
    *,
    model: Text = t.MODEL,
    cluster: o.ClusterOptions,
    strategy: Text = option(
        "KEY=N,..",
        "tp, pp, dp, cp, vpp, mbs, sp (0, 1), zero (0 to 3), recompute (none, selective, full), "
        "flash (0, 1), dtype (bf16, fp16), split (layers of each chunk: 19/20*2/21).",
        "-s",
    ),
    workload: t.WorkloadOptions,
    placement: Text = option(
        "MATRIX", "Rows for pp, dp, cp, tp; default: ranks in order, pp outermost."
    ),
    memory: Text = t.MEMORY,
    prices: o.PriceOptions = part("library", "nominal"),
    svg: Text = t.SVG,
    json: bool = o.JSON,
) -> int:
    """Time and memory of an iteration of one training run, by their parts."""
    from p2smt.api.workload import estimate as estimated
    from p2smt.cli.output import tell_tables, writable
    from p2smt.errors import InputError
    from p2smt.files.write import check_svg_name
    from p2smt.report.training.estimate_data import estimate_data
    from p2smt.report.training.estimate_tables import estimate_tables, memory_tables
    from p2smt.report.training.picture import write_run_picture
    from p2smt.training.efficiencies.file import fitted_on, unfitted_efficiency
    from p2smt.training.remedies import remedies
    from p2smt.training.strategy import parse_strategy

    if strategy is None:
        raise InputError("strategy", "is missing", "give --strategy tp=8,pp=4,dp=2")
    chosen = parse_strategy(strategy)
    trained, batch = workload.of(model)
    topology = cluster.under(prices)
    where = None if placement is None else _placement(placement, topology, chosen)
    writable(svg)
    if svg is not None:
        check_svg_name(svg)
    most = t.memory_bytes(memory)
    told: Efficiency | str | None = workload.efficiency
    if alone := told is None and svg is None and not json and not fitted_on(topology.known_device):
        told = unfitted_efficiency(topology.known_device)
    of_what = trained, topology, chosen, batch, told
    found = estimated(*of_what, placement=where, memory=most)
    tables = memory_tables if alone else estimate_tables
    if svg is not None:
        write_run_picture([found], svg)
    tell_tables(
        json,
        lambda: estimate_data(found),
        lambda: (tables(found, () if found.fits else remedies(found)),),
    )
    return 0


def _placement(text: str, topology: Topology, strategy: Strategy) -> Placement:
    """The matrix of --placement, which has a row for each axis in Megatron's order."""
    from p2smt.parallelism.placement import ParallelismAxis
    from p2smt.training.strategy import AXES

    sizes = zip(AXES, strategy.sizes, strict=True)
    return o.placement_of(text, topology, tuple(ParallelismAxis(*one) for one in sizes))
