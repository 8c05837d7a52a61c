"""`p2smt export`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from p2smt.cli.output import note
from p2smt.cli.parameters import Text, argument, flag, opened, option, required
from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from p2smt.interop.exported import Writer
    from p2smt.interop.jobs.command import JobRequest
    from p2smt.interop.places import PlacedPlan
    from p2smt.plans.file_model import AnyPlan

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
        "torchtitan-options, deepspeed-options, sbatch, kubernetes (of plan -o); jax-shard-map (of "
        "redistribute -o).",
    ),
    output: Text = option("FILE", "Where to; default: stdout.", "-o"),
    hosts: Text = option(
        "FILE|LIST",
        "Names for the hosts of a plan that has none, in its order: a file with one on a line, or "
        "n[01-16]; default: node0, node1, ..  Of a plan that names them: those of the job, which "
        "must have them all; default: $SLURM_JOB_NODELIST, where it is set; all: not checked.  "
        "With sbatch: pins them.",
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
    launcher: Text = option(
        "NAME",
        "Of sbatch and kubernetes, what they start: megatron or torchtitan; default: the one whose "
        "constants the plan is predicted with.",
    ),
) -> int:
    """Write where a plan's ranks go, as a launcher or a framework takes it; or a plan as code."""
    from p2smt.cli import given
    from p2smt.interop.exports import JOBS, writer_named
    from p2smt.interop.jobs.command import JobRequest
    from p2smt.interop.places import host_notes, placed
    from p2smt.plans.file import read_plan
    from p2smt.resharding.plan_file import is_redistribution

    if is_redistribution(source):
        if by_host or any(one is not None for one in (hosts, per_host, launched, launcher)):
            rule = "the plan of a redistribution has its devices in order"
            options = "--hosts, --devices-per-host, --by-host, --launched or --launcher"
            raise InputError(options, rule, "drop it")
        return _redistribution(source, to, output)
    writer = writer_named(to)
    check_output(output, source, hosts, launched)
    each = None if per_host is None else given.count_of(per_host, "--devices-per-host")
    read = read_plan(source)
    names = _job_hosts(hosts, read, writer)
    plan = placed(read, f"plan {source[:200]}", names, each)
    plan = _renumbered(plan, writer, launched, by_host=by_host)
    job = JOBS.get(to)
    if job is None:
        if launcher is not None:
            raise InputError("--launcher", f"is of {' and '.join(JOBS)}", "drop it")
        made = writer.write(plan, output or "FILE")
    else:
        asked = JobRequest(source, launcher or "", pinned=hosts is not None)
        _check_numbers(asked, to, renumbered=by_host or launched is not None)
        made = job(plan, output or "FILE", asked)
    notes = host_notes(plan) if writer.starts else ()
    return write_out(output, made.text, (*notes, *made.notes))


def _job_hosts(hosts: Text, plan: AnyPlan, writer: Writer) -> Sequence[str] | None:
    """The hosts that are given, or those of the job where its ranks are started by their names.

    Raises:
        InputError: they are no list of hosts, or ``all`` of a plan that names none.
    """
    from p2smt.cli.solve_command import NODELIST
    from p2smt.cluster.hostlist import hosts_named, parse_hostlist

    named = plan.topology.hosts or plan.topology.switches
    if hosts is not None:
        return None if named and hosts == "all" else hosts_named(hosts)
    listed = os.environ.get(NODELIST)
    return parse_hostlist(listed) if listed and named and writer.starts else None


def _check_numbers(asked: JobRequest, to: str, *, renumbered: bool) -> None:
    """That a job which orders its hosts itself numbers its ranks as the plan does."""
    if renumbered and to == "sbatch" and not asked.pinned:
        rule = "numbers ranks on hosts that are known, and the job orders its own"
        raise InputError("--by-host or --launched", rule, "drop it, or pin hosts with --hosts")


def _redistribution(source: str, to: str, output: Text) -> int:
    """Write a redistribution as code; a plan that verify refutes is bad input."""
    from p2smt.api.arrays import read_redistribution
    from p2smt.interop.exports import array_writer_named

    writer = array_writer_named(to)
    check_output(output, source)
    made = writer.write(read_redistribution(source), f"plan {source[:200]}")
    return write_out(output, made.text, made.notes)


def check_output(output: Text, *read: Text) -> None:
    """That nothing that is read is written over."""
    from p2smt.files.write import same_file

    if output is not None and any(same_file(output, path) for path in read if path):
        raise InputError(f"output {output[:200]!r}", "is a file that is read", "name another")


def write_out(output: Text, text: str, notes: Iterable[str]) -> int:
    """Write a file whole, or to stdout; then the notes."""
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
