"""`p2smt export`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from p2smt.cli import given
from p2smt.cli.output import note
from p2smt.cli.parameters import Text, argument, flag, opened, option, required
from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from p2smt.interop.exported import Writer
    from p2smt.interop.places import PlacedPlan

MAX_NOTE = 4000
"""Characters of a note, which may be a command: long enough that none is cut."""


@opened
def export(
    *,
    source: str = argument("PLAN", "What solve -o, plan -o or redistribute -o wrote.", needed=True),
    to: str = required(
        "NAME",
        "csv, hostlist, rankfile, slurm, torchrun; device-mesh, jax-mesh, megatron, torchtitan, "
        "deepspeed; python or jax (programs); megatron-options, megatron-bridge, "
        "torchtitan-options, deepspeed-options (of plan -o); jax-shard-map (of redistribute -o).",
    ),
    output: Text = option("FILE", "Where to; default: stdout.", "-o"),
    hosts: Text = option(
        "FILE|LIST",
        "Names for the hosts of a plan that has none, in its order: a file with one on a line, or "
        "n[01-16]; default: node0, node1, ..",
    ),
    per_host: Text = option(
        "N",
        "Where a node of the plan is several hosts: 4 for the racks of NVL72.",
        "--devices-per-host",
    ),
    by_host: bool = flag(
        "Ranks are numbered host by host as they are started, whatever the plan's ranks are: give "
        "it for the launcher's file and the framework's alike."
    ),
    launched: Text = option(
        "AXES|FILE",
        "Ranks are numbered over the axes in another order (such as pp,dp,tp), or host by host in "
        "the order of the hosts in a file; default: as in the plan.",
    ),
) -> int:
    """Write where a plan's ranks go, as a launcher or a framework takes it; or a plan as code."""
    from p2smt.cluster.hostlist import hosts_named
    from p2smt.interop.exports import writer_named
    from p2smt.interop.places import host_notes, placed
    from p2smt.plans.file import read_plan
    from p2smt.resharding.plan_file import is_redistribution

    if is_redistribution(source):
        if by_host or any(option is not None for option in (hosts, per_host, launched)):
            rule = "the plan of a redistribution has its devices in order"
            raise InputError(
                "--hosts, --devices-per-host, --by-host or --launched", rule, "drop it"
            )
        return _redistribution(source, to, output)
    writer = writer_named(to)
    names = None if hosts is None else hosts_named(hosts)
    _check_output(output, source, hosts, launched)
    each = None if per_host is None else given.count_of(per_host, "--devices-per-host")
    plan = placed(read_plan(source), f"plan {source[:200]}", names, each)
    plan = _renumbered(plan, writer, launched, by_host=by_host)
    made = writer.write(plan, output or "FILE")
    notes = host_notes(plan) if writer.starts else ()
    return _write(output, made.text, (*notes, *made.notes))


def _redistribution(source: str, to: str, output: Text) -> int:
    """Write a redistribution as code; a plan that verify refutes is bad input."""
    from p2smt.api.arrays import read_redistribution
    from p2smt.interop.exports import array_writer_named

    writer = array_writer_named(to)
    _check_output(output, source)
    made = writer.write(read_redistribution(source), f"plan {source[:200]}")
    return _write(output, made.text, made.notes)


def _check_output(output: Text, *read: Text) -> None:
    """That nothing that is read is written over."""
    from p2smt.files.write import same_file

    if output is not None and any(same_file(output, path) for path in read if path):
        raise InputError(f"output {output[:200]!r}", "is a file that is read", "name another")


def _write(output: Text, text: str, notes: Iterable[str]) -> int:
    from p2smt.files.write import write_atomically

    if output is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(output, text)
    for line in notes:
        note(line, MAX_NOTE)
    return 0


def _renumbered(plan: PlacedPlan, writer: Writer, launched: Text, *, by_host: bool) -> PlacedPlan:
    """The plan with its ranks numbered as they are launched; says so for what starts them."""
    from p2smt.interop import places
    from p2smt.interop.meshes.tensor import numbered

    if by_host and launched is not None:
        raise InputError("--by-host and --launched", "number the ranks both", "give one of them")
    if not by_host and launched is None:
        return plan
    if writer.starts:
        again = "--by-host" if by_host else f"--launched {launched}"
        note(f"ranks are not numbered as in the plan: export the mesh with {again} as well")
    return places.by_host(plan) if by_host else numbered(plan, launched or "")
