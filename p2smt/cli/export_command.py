"""`p2smt export`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from p2smt.interop.exported import Writer
    from p2smt.interop.launchers.places import PlacedPlan

MAX_NOTE = 4000
"""Characters of a note, which may be a command: long enough that none is cut."""


def export(
    source: Annotated[str, typer.Argument(metavar="PLAN", help="A plan that solve -o wrote.")],
    to: Annotated[
        str,
        typer.Option("--to", metavar="NAME", help="csv, hostlist, rankfile, slurm or torchrun."),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to; default: stdout."),
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            "--hosts",
            metavar="FILE",
            help="Names for the hosts of a plan that has none, one a line, in the plan's order; "
            "default: node0, node1, ..",
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
            help="Number the ranks that are started host by host, whatever the plan's ranks are: "
            "for a mesh built from --to device-mesh.",
        ),
    ] = False,
) -> int:
    """Write where the ranks of a plan go, as a launcher or a framework takes it."""
    from p2smt.cli import given
    from p2smt.cli.output import note
    from p2smt.errors import InputError
    from p2smt.files.write import same_file, write_atomically
    from p2smt.interop.exports import writer_named
    from p2smt.interop.launchers.host_file import read_hosts
    from p2smt.interop.launchers.places import placed
    from p2smt.plans.file import read_plan

    writer = writer_named(to)
    names = None if hosts is None else read_hosts(hosts)
    if output is not None and any(same_file(output, path) for path in (source, hosts) if path):
        raise InputError(f"output {output[:200]!r}", "is a file that is read", "name another")
    each = None if per_host is None else given.count_of(per_host, "--devices-per-host")
    plan = placed(read_plan(source), f"plan {source[:200]}", names, each)
    if by_host:
        plan = _renumbered(plan, writer)
    made = writer.write(plan, output or "FILE")
    if output is None:
        typer.echo(made.text, nl=False)
    else:
        write_atomically(output, made.text)
    for line in made.notes:
        note(line, MAX_NOTE)
    return 0


def _renumbered(plan: PlacedPlan, writer: Writer) -> PlacedPlan:
    """The plan with its ranks numbered host by host; says so."""
    from p2smt.cli.output import note
    from p2smt.errors import InputError
    from p2smt.interop.launchers.places import by_host

    if not writer.starts:
        raise InputError("--by-host", f"is for what starts ranks, not {writer.name}", "drop it")
    note("ranks are numbered host by host, not as in the plan: build the mesh by --to device-mesh")
    return by_host(plan)
