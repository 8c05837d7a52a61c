"""`p2smt export`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from p2smt.interop.exported import Writer
    from p2smt.interop.places import PlacedPlan

MAX_NOTE = 4000
"""Characters of a note, which may be a command: long enough that none is cut."""


def export(
    source: Annotated[
        str, typer.Argument(metavar="PLAN", help="What solve -o, plan -o or redistribute -o wrote.")
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="NAME",
            help="csv, hostlist, rankfile, slurm, torchrun; device-mesh, jax-mesh, megatron, "
            "torchtitan, deepspeed; python or jax (programs); megatron-options, "
            "torchtitan-options, deepspeed-options (of plan -o); jax-shard-map (of "
            "redistribute -o).",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to; default: stdout."),
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            "--hosts",
            metavar="FILE|LIST",
            help="Names for the hosts of a plan that has none, in its order: a file with one on a "
            "line, or n[01-16]; default: node0, node1, ..",
        ),
    ] = None,
    per_host: Annotated[
        str | None,
        typer.Option(
            "--devices-per-host",
            metavar="N",
            help="Where a node of the plan is several hosts: 4 for the racks of NVL72.",
        ),
    ] = None,
    by_host: Annotated[
        bool,
        typer.Option(
            "--by-host",
            help="Ranks are numbered host by host as they are started, whatever the plan's ranks "
            "are: give it for the launcher's file and the framework's alike.",
        ),
    ] = False,
    launched: Annotated[
        str | None,
        typer.Option(
            "--launched",
            metavar="AXES|FILE",
            help="Ranks are numbered over the axes in another order (such as pp,dp,tp), or host by "
            "host in the order of the hosts in a file; default: as in the plan.",
        ),
    ] = None,
) -> int:
    """Write where a plan's ranks go, as a launcher or a framework takes it; or a plan as code."""
    from p2smt.cli import given
    from p2smt.cli.output import note
    from p2smt.cluster.hostlist import hosts_named
    from p2smt.errors import InputError
    from p2smt.files.write import same_file, write_atomically
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
    read = [path for path in (source, hosts, launched) if path]
    if output is not None and any(same_file(output, path) for path in read):
        raise InputError(f"output {output[:200]!r}", "is a file that is read", "name another")
    each = None if per_host is None else given.count_of(per_host, "--devices-per-host")
    plan = placed(read_plan(source), f"plan {source[:200]}", names, each)
    plan = _renumbered(plan, writer, launched, by_host=by_host)
    made = writer.write(plan, output or "FILE")
    if output is None:
        typer.echo(made.text, nl=False)
    else:
        write_atomically(output, made.text)
    for line in (*(host_notes(plan) if writer.starts else ()), *made.notes):
        note(line, MAX_NOTE)
    return 0


def _redistribution(source: str, to: str, output: str | None) -> int:
    """Write a redistribution as code; a plan that verify refutes is bad input."""
    from p2smt.api.arrays import read_redistribution
    from p2smt.cli.output import note
    from p2smt.errors import InputError
    from p2smt.files.write import same_file, write_atomically
    from p2smt.interop.exports import array_writer_named

    writer = array_writer_named(to)
    if output is not None and same_file(output, source):
        raise InputError(f"output {output[:200]!r}", "is a file that is read", "name another")
    made = writer.write(read_redistribution(source), f"plan {source[:200]}")
    if output is None:
        typer.echo(made.text, nl=False)
    else:
        write_atomically(output, made.text)
    for line in made.notes:
        note(line, MAX_NOTE)
    return 0


def _renumbered(
    plan: PlacedPlan, writer: Writer, launched: str | None, *, by_host: bool
) -> PlacedPlan:
    """The plan with its ranks numbered as they are launched; says so for what starts them."""
    from p2smt.cli.output import note
    from p2smt.errors import InputError
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
