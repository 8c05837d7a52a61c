"""`p2smt crossings`."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import options as o


def crossings(
    factors: Annotated[
        str | None,
        typer.Option(metavar="N,N,..", help="Sizes of levels such as 4,8, outermost first."),
    ] = None,
    ports: Annotated[
        str | None,
        typer.Option(metavar="N,N,..", help="Ports of an entity of each level; default: 1 each."),
    ] = None,
    topology: o.TopologyOption = None,
    axes: o.AxesOption = None,
    placement: o.PlacementOption = None,
    reduce: o.ReduceOption = None,
    reduce_scatter: o.ReduceScatterOption = None,
    all_gather: o.AllGatherOption = None,
    algorithm: o.AlgorithmOption = None,
    nominal: o.NominalOption = False,
    kind: o.KindOption = None,
    length: o.LengthOption = "5",
    sufficient: Annotated[
        bool,
        typer.Option(
            "--sufficient",
            help="The fewest programs of which one is always best, whatever the hardware, proved.",
        ),
    ] = False,
    latency_ratio: Annotated[
        str | None,
        typer.Option(
            metavar="R,..",
            help="Latency of each level over that of the innermost, which is left out; default: 1.",
        ),
    ] = None,
    bandwidth_ratio: Annotated[
        str | None,
        typer.Option(
            metavar="A..B,R,..",
            help="How many times slower a port of each level is than one of the innermost; of the "
            "outermost also from A to B; default: 1..64, others 1.",
        ),
    ] = None,
    cost_per_call: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Of a call, over the innermost latency; default: 0, with --sufficient an unknown "
            "c >= 0, which 0 drops.",
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw the regions of --factors: .png, .svg or .pdf."),
    ] = None,
    latex: Annotated[
        bool, typer.Option("--latex", help="Write costs of --sufficient as LaTeX.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the certificate of --sufficient."),
    ] = None,
    time_limit: o.TimeOption = None,
    seed: o.SeedOption = "0",
    json: o.JsonOption = False,
) -> int:
    """Which program is best, for which latencies, bandwidths and payloads: exactly.

    Of --factors (rings, numbers as ratios between levels), or of a request on a --topology with its
    library, on a --placement or on whichever is best; of several requests without --placement:
    which placement is best, by the ratio of the first two payloads, for large ones.
    """
    from p2smt.cli import given, restrictions
    from p2smt.cli.crossings_given import ratios_of, setting_of, unknown_call
    from p2smt.cli.scene_options import RequestTexts
    from p2smt.errors import InputError

    limits = given.limits_of(time_limit, seed)
    restrictions.writable(out)
    texts = RequestTexts(reduce, reduce_scatter, all_gather)
    if (factors is None) == (topology is None):
        raise InputError("crossings", "take either --factors, or --topology with a request")
    ratios = {"--latency-ratio": latency_ratio, "--bandwidth-ratio": bandwidth_ratio}
    drawn = {**ratios, "--plot": plot}
    if sufficient and topology is None:
        _refuse(drawn, "goes with --factors alone", "drop it, or --sufficient")
    if not sufficient:
        extra = {"--out": out, "--latex": "" if latex else None}
        _refuse(extra, "goes with --sufficient", "add that, or drop it")
    if topology is not None:
        own = {"--ports": ports, "--cost-per-call": cost_per_call, "--kind": kind, **drawn}
        _refuse(own, "goes with --factors", "drop it")
        _refuse({"--sufficient": "" if sufficient else None}, "goes with --factors", "give these")
        from p2smt.cli.crossings_shown import PlacedTexts, show_placed

        placed = PlacedTexts(topology, axes, placement, texts, algorithm, nominal)
        return show_placed(placed, length, limits, json)
    placed_only = {"--axes": axes, "--placement": placement, "--algorithm": algorithm}
    nominal_given = {"--nominal": "" if nominal else None, "requests": "" if texts.some else None}
    _refuse({**placed_only, **nominal_given}, "goes with --topology", "drop it")
    if sufficient:
        from p2smt.cli.least_set import show_least_set

        setting = setting_of(factors, ports, kind, length, unknown_call(cost_per_call))
        return show_least_set(setting, limits, out, latex, json)
    from p2smt.cli.crossings_shown import show_table

    setting = setting_of(factors, ports, kind, length, cost_per_call not in (None, "0"))
    rows = ratios_of(len(setting.factors), latency_ratio, bandwidth_ratio, cost_per_call)
    return show_table(setting, rows, limits, plot, json)


def _refuse(given: dict[str, str | None], rule: str, remedy: str) -> None:
    """Raise InputError for the first of these options that is given."""
    from p2smt.errors import InputError

    for name, value in given.items():
        if value is not None:
            raise InputError(name, rule, remedy)
