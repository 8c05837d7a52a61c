"""`p2smt estimate`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, Texts, argument, opened, option, part
from p2smt.cli.training import training_options as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import RenderableType

    from p2smt.api.what_if import WhatIf
    from p2smt.cluster.topology import Topology
    from p2smt.parallelism.placement import Placement
    from p2smt.report.outputs.training import EstimateOutput
    from p2smt.training.measured.anchor import Anchor
    from p2smt.training.prediction import RunEstimate
    from p2smt.training.strategy import Batch, Strategy
    from p2smt.training.transformer import Transformer


@opened
def estimate(
    *,
    file: Text = argument(
        "FILE",
        "In place of --strategy, --model and the batch: a launch script of Megatron-LM or "
        "TorchTitan, TOML, a configuration of DeepSpeed, a recipe (nothing in it is run), or an "
        "answer of plan or estimate.",
    ),
    settings: Texts = option(
        "NAME=VALUE",
        "What FILE, or one in --measured, leaves open, by the names that errors ask for.",
        "--set",
    ),
    model: Text = t.MODEL,
    cluster: o.ClusterOptions,
    strategy: Text = option(
        "KEY=N,..",
        "tp, pp, dp, cp, vpp, mbs, sp (0, 1), zero (0 to 3), recompute (none, selective, full, "
        "full:7 for 7 layers of a chunk, or modules: moe_act+layernorm), flash (0, 1), dtype "
        "(bf16, fp16, fp8, mxfp8, nvfp4), split (layers of each chunk: 19/20*2/21m/0, m with "
        "multi-token prediction), dp_replicate (copies of ZeRO's shards), optimizer_bytes (of a "
        "parameter), offload (part of the layers); of mixtures ep, etp, dispatcher (alltoall, "
        "flex), overlap, shared_overlap (0, 1), imbalance, graphs (none, partial, full), "
        "fp8_attention, fp8_params (0, 1); dropout (0, 1).",
        "-s",
    ),
    workload: t.WorkloadOptions,
    placement: Text = option(
        "MATRIX", "Rows for pp, dp, cp, tp; default: ranks in order, pp outermost."
    ),
    expert_placement: Text = option(
        "MATRIX", "Of a mixture: rows for pp, ed, ep, et; default: ranks in order, pp outermost."
    ),
    hosts: Text = o.HOSTS,
    output: Text = o.PLAN_FILE,
    memory: Text = t.MEMORY,
    prices: o.PriceOptions = part("library", "nominal"),
    svg: Text = t.SVG,
    what_if: Texts = o.WHAT_IF,
    measured: Texts = t.MEASURED,
    force: bool = t.FORCE,
    details: bool = o.DETAILS,
    json: bool = o.JSON,
) -> int:
    """Time and memory of an iteration of one training run, by their parts."""
    from p2smt.api.planning import write_training_plan
    from p2smt.api.what_if import estimate_what_if
    from p2smt.api.workload import estimate as estimated
    from p2smt.cli.output import note, note_beside, tell_tables, writable
    from p2smt.cli.solve_command import hosts_of
    from p2smt.cluster.allocation import uneven_note
    from p2smt.cluster.changed_cluster import first_listed, parse_changes
    from p2smt.files.write import check_svg_name
    from p2smt.report.text import printable
    from p2smt.report.training.picture import write_run_picture
    from p2smt.training.on_hosts import devices_on, in_order
    from p2smt.training.strategy import (
        AXES,
        EXPERT_AXES,
        spread_strategy,
        spread_text,
        with_given,
    )
    from p2smt.training.training_plan import training_plan

    if file is None:
        workload.check_given({"model": model, "topology": cluster.topology, "strategy": strategy})
    topology = cluster.under(prices)
    listed = hosts_of(hosts, topology)
    devices = devices_on(topology, listed)
    left_open = settings if file or not measured else None
    launch = t.launched(file, left_open, model, strategy, workload, devices)
    trained, batch = workload.of(model) if launch is None else (launch.model, launch.batch)
    by_hosts = listed is not None and not in_order(topology, listed, topology.devices)
    # refused before anything is written
    parse_changes(what_if or (), topology, even=not by_hosts)

    text = (strategy if launch is None else spread_text(launch.strategy)) or ""

    def chosen_on(devices: int) -> Strategy:
        device = topology.device if launch is None else None
        return with_given(spread_strategy(text, devices, device), text, workload.given())

    valid_on = _valid_on(trained, batch, text)
    with t.hinting_at_part(topology, valid_on):
        chosen = chosen_on(devices)
    where = None if placement is None else _placement(placement, topology, AXES, chosen.sizes)
    theirs = None
    if expert_placement is not None:
        theirs = _placement(expert_placement, topology, EXPERT_AXES, chosen.expert_sizes)
    writable(svg)
    o.plan_writable(output)
    if svg is not None:
        check_svg_name(svg)
    most = t.memory_bytes(memory)

    own_matrices = launch is not None and where is None and theirs is None

    def again(there: Topology, sequences: int, most: int | None) -> RunEstimate:
        own_hosts = _listed_on(there, topology, listed)
        matrices = where, theirs
        if launch is not None and own_matrices:
            matrices = launch.matrices_on(there, own_hosts)
        return estimated(
            *(
                trained,
                there,
                chosen_on(devices_on(there, own_hosts)),
                replace(batch, sequences=sequences),
            ),
            workload.efficiency if own is None else own.efficiency(found.efficiency),
            placement=matrices[0],
            experts=matrices[1],
            memory=most,
            hosts=own_hosts,
        )

    if (
        launch
        and launch.placement
        and own_matrices
        and not any(launch.matrices_on(topology, listed))
    ):
        note("its placement is of another topology: ranks are in order, pp outermost")
    own: Anchor | None = None
    with t.hinting_at_part(topology, valid_on):
        found = again(topology, batch.sequences, most)
    own = t.anchor_of(
        *(measured, trained, topology, batch, found.efficiency),
        *(workload.given(), force, settings, listed),
    )
    base = topology if own is None else own.topology(topology)
    if own is not None:
        found = again(base, batch.sequences, most)
    changes = parse_changes(what_if or (), base, even=not by_hosts)
    if by_hosts and listed is not None:
        changes = tuple(first_listed(change, base, listed) for change in changes)
    rows = tuple(estimate_what_if(found, changes, again, most))
    below = _gained(found, rows) if rows else []
    if output is not None:
        write_training_plan(training_plan(found), output)
        below.append(f"plan written to {printable(output)}")
    if svg is not None:
        write_run_picture([found], svg)
        below.append(f"picture written to {printable(svg)}")
    if unknown := uneven_note(topology):
        note_beside(unknown)
    if launch is None:
        _note_uncut(trained, chosen, text)
    tell_tables(
        json,
        lambda: _data(found, rows, own),
        lambda: _shown(found, below, own, details=details),
        t.after_tables(below, details),
    )
    return 0


def _data(found: RunEstimate, rows: Sequence[WhatIf], own: Anchor | None) -> EstimateOutput:
    from p2smt.report.training.estimate_data import estimate_data

    return estimate_data(found, rows or None, own)


def _note_uncut(model: Transformer, strategy: Strategy, text: str) -> None:
    """Say that experts are not cut, where a text leaves open what trainers have otherwise."""
    from p2smt.cli.output import note
    from p2smt.training.strategy import assumed_parts, uncut_words

    assumed = assumed_parts(strategy, text, model.experts is not None)
    if default := uncut_words(strategy, assumed):
        note(f"etp=1 is assumed, as the strategy says nothing of it; {default}")


def _valid_on(model: Transformer, batch: Batch, text: str) -> Callable[[Topology], None]:
    """Raises where a strategy's text, whose replicas fill what there is, is not valid."""
    from p2smt.training.strategy import spread_strategy
    from p2smt.training.validity import check

    degrees = ",".join(one for one in text.split(",") if one.partition("=")[0].strip() != "dp")

    def valid_on(there: Topology) -> None:
        check(model, batch, spread_strategy(degrees or "tp=1", there.devices), there.devices)

    return valid_on


def _listed_on(
    there: Topology, topology: Topology, listed: Sequence[str] | None
) -> Sequence[str] | None:
    """The hosts of a changed cluster in the order listed, and others of it behind them."""
    if listed is None or there.hosts is None or topology.hosts is None:
        return listed
    names = there.hosts.names
    if names == topology.hosts.names:
        return listed
    kept = [name for name in listed if name in names]
    return (*kept, *(name for name in names if name not in kept))


def _gained(found: RunEstimate, rows: Sequence[WhatIf]) -> list[str]:
    from p2smt.report.training.run_words import short_strategy
    from p2smt.report.what_if_rows import training_lines

    return training_lines(rows, (short_strategy(found.run.strategy), found.iteration_s))


def _shown(
    found: RunEstimate, below: Sequence[str], own: Anchor | None, *, details: bool
) -> Iterator[RenderableType]:
    """The first screen, and all tables if these are asked for; lines ``below`` follow."""
    from p2smt.report.training.first_screen import estimate_screen
    from p2smt.report.training.training_tables import estimate_tables
    from p2smt.training.remedies import remedies

    helps = () if found.fits else remedies(found)
    yield from estimate_screen(found, helps, () if details else below, own)
    if details:
        yield ""
        yield estimate_tables(found, helps)


def _placement(
    text: str, topology: Topology, names: Sequence[str], sizes: Sequence[int]
) -> Placement:
    """The matrix of an option, which has a row for each axis in Megatron's order."""
    from p2smt.parallelism.placement import ParallelismAxis

    axes = zip(names, sizes, strict=True)
    return o.placement_of(text, topology, tuple(ParallelismAxis(*one) for one in axes))
