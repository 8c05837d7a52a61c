"""`p2smt export`, and `p2smt order`, which puts the hosts of a job in order for a plan."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from p2smt.cli import option_groups as o
from p2smt.cli.output import note
from p2smt.cli.parameters import Text, argument, flag, opened, option, required
from p2smt.cli.schedules.tuner_files import TunerOptions, tuner_file
from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from p2smt.api.order import OrderedHosts
    from p2smt.cluster.topology import Topology
    from p2smt.interop.exported import Writer
    from p2smt.interop.jobs.command import AskedJob
    from p2smt.interop.places import PlacedPlan
    from p2smt.plans.file_model import AnyPlan
    from p2smt.report.outputs.orders import OrderOutput

MAX_NOTE = 4000
"""Characters of a note, which may be a command: long enough that none is cut."""


@opened
def export(
    *,
    source: Text = argument("PLAN", "What solve -o, plan -o or redistribute -o wrote."),
    to: str = required(
        "NAME",
        "csv, hostlist, rankfile, slurm, torchrun; device-mesh, jax-mesh, megatron, torchtitan, "
        "deepspeed; python or jax (programs); megatron-options, megatron-bridge, "
        "torchtitan-options, deepspeed-options, sbatch, kubernetes (of plan -o); jax-shard-map (of "
        "redistribute -o); nccl-tuner, rccl-tuner, ncclx-tuner, ompi-tuned, ompi-han, mpich, "
        "mpich-ch4 (or of --topology).",
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
    tuner: TunerOptions,
    json: bool = o.JSON,
) -> int:
    """Write where a plan's ranks go, as a launcher or a framework takes it; or a plan as code.

    Or what a library is to run, by collective, communicator and size, as a file that it reads.
    """
    from p2smt.cli import given
    from p2smt.interop.exports import JOBS, writer_named
    from p2smt.interop.jobs.command import AskedJob
    from p2smt.interop.places import host_notes, placed
    from p2smt.plans.file import read_plan
    from p2smt.resharding.plan_file import is_redistribution

    others = (hosts, per_host, launched, launcher, by_host or None)
    if (made := tuner_file(to, source, tuner, output)) is not None:
        if any(one is not None for one in others):
            raise InputError(f"--to {to}", "takes no options of hosts and ranks", "drop them")
        o.check_kept(output, source, *(text.partition("=")[2] for text in tuner.measured or ()))
        return _write_or_tell(to, output, made.text, made.notes, json)
    if source is None or tuner.any_given:
        writer_named(to)
        rule = "takes a PLAN, and none of --topology, --comms, --measured, --margin, --model-only"
        raise InputError(f"--to {to[:40]}", rule, "give the PLAN alone")
    if is_redistribution(source):
        if by_host or any(one is not None for one in (hosts, per_host, launched, launcher)):
            rule = "the plan of a redistribution has its devices in order"
            options = "--hosts, --devices-per-host, --by-host, --launched or --launcher"
            raise InputError(options, rule, "drop it")
        return _redistribution(source, to, output, json)
    writer = writer_named(to)
    o.check_kept(output, source, hosts, launched)
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
        asked = AskedJob(source, launcher or "", pinned=hosts is not None)
        _check_numbers(asked, to, renumbered=by_host or launched is not None)
        made = job(plan, output or "FILE", asked)
    notes = host_notes(plan) if writer.starts or job is not None else ()
    return _write_or_tell(to, output, made.text, (*notes, *made.notes), json)


def _write_or_tell(to: str, output: Text, text: str, notes: Sequence[str], as_json: bool) -> int:
    """Write a file, or one JSON object that has its text as well; without JSON also notes."""
    from p2smt.cli.output import print_json
    from p2smt.files.write import write_atomically
    from p2smt.report.outputs.orders import ExportOutput

    if not as_json:
        return _write(output, text, notes)
    if output is not None:
        write_atomically(output, text)
    print_json(ExportOutput(to=to, file=output, text=text, notes=notes))
    return 0


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


def _check_numbers(asked: AskedJob, to: str, *, renumbered: bool) -> None:
    """That a job which orders its hosts itself numbers its ranks as the plan does."""
    if renumbered and to == "sbatch" and not asked.pinned:
        rule = "numbers ranks on hosts that are known, and the job orders its own"
        raise InputError("--by-host or --launched", rule, "drop it, or pin hosts with --hosts")


def _redistribution(source: str, to: str, output: Text, as_json: bool) -> int:
    """Write a redistribution as code; a plan that verify refutes is bad input."""
    from p2smt.api.arrays import read_redistribution
    from p2smt.interop.exports import array_writer_named

    writer = array_writer_named(to)
    o.check_kept(output, source)
    made = writer.write(read_redistribution(source), f"plan {source[:200]}")
    return _write_or_tell(to, output, made.text, made.notes, as_json)


def _write(output: Text, text: str, notes: Iterable[str]) -> int:
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


# The hosts of a job in order.


@opened
def order(
    *,
    source: str = argument("PLAN", "What plan -o or solve -o wrote.", needed=True),
    hosts: Text = o.HOSTS,
    topology: Text = option(
        "NAME[:N]|FILE",
        "The cluster that the hosts are of, by name; default: that of the plan.",
        "--topology",
        "-t",
    ),
    to: str = option(
        "NAME",
        "How they are written: slurm (SLURM_HOSTFILE: a host a rank), hostlist, csv, rankfile or "
        "torchrun.",
        default="slurm",
    ),
    per_host: Text = option(
        "N", "Where a node of the plan is several hosts: 4 for NVL72.", "--devices-per-host"
    ),
    output: Text = option("FILE", "Where to; default: stdout.", "-o"),
    json: bool = o.JSON,
) -> int:
    """Order the hosts of a job for a plan, whose degrees and placement in the nodes stay.

    Of more hosts than the ranks fill also which stay idle.  Exit code 4: there are too few.
    """
    from p2smt.api.order import PLANS_OWN, TooFewHostsError, cluster_of, order_hosts
    from p2smt.cli import given
    from p2smt.cli.codes import INFEASIBLE
    from p2smt.cli.output import print_json
    from p2smt.files.write import write_atomically
    from p2smt.interop.exports import writer_named
    from p2smt.plans.file import read_plan

    writer = writer_named(to)
    if not writer.starts:
        rule = "is nothing that starts ranks"
        raise InputError(f"--to {to[:40]!r}", rule, "name slurm, hostlist, csv, rankfile, torchrun")
    o.check_kept(output, source, hosts, topology)
    each = None if per_host is None else given.count_of(per_host, "--devices-per-host")
    plan = read_plan(source)
    cluster = None if topology is None else given.topology_of(topology)
    name = f"plan {source[:200]}"
    remedy = PLANS_OWN if cluster is None else ""
    listed = _listed(hosts, cluster or cluster_of(plan, name), remedy)
    try:
        found = order_hosts(plan, listed, cluster, per_host=each, source=name)
    except TooFewHostsError as error:
        typer.echo(f"p2smt: {error}", err=True)
        return INFEASIBLE
    made = writer.write(found.plan, output or "FILE")
    notes = (_said(found), *made.notes)
    if not json:
        return _write(output, made.text, notes)
    if output is not None:
        write_atomically(output, made.text)
    print_json(_order_data(found, made.text, notes))
    return 0


def _order_data(found: OrderedHosts, text: str, notes: Sequence[str]) -> OrderOutput:
    from p2smt.report.outputs.orders import OrderOutput

    return OrderOutput(
        hosts=[place.host for place in found.plan.places],
        idle=found.idle,
        seconds=found.seconds,
        listed_s=found.listed_s,
        trained=found.trained,
        compared=found.compared,
        notes=notes,
        text=text,
    )


def _listed(hosts: Text, cluster: Topology, remedy: str = "") -> Sequence[str]:
    """The hosts of the job: --hosts, else $SLURM_JOB_NODELIST, else all that the cluster names.

    Raises:
        InputError: no host list, a host that the cluster lacks, or none are given and none named.
    """
    from p2smt.cli.solve_command import NODELIST, hosts_of
    from p2smt.cluster.hostlist import hosts_named, parse_hostlist
    from p2smt.errors import InputError

    if cluster.hosts is not None:
        return hosts_of(hosts, cluster, remedy) or ()
    if hosts is not None:
        return hosts_named(hosts)
    if listed := os.environ.get(NODELIST):
        return parse_hostlist(listed)
    rule = f"says nothing of hosts, nor does ${NODELIST}"
    raise InputError(f"topology {cluster.name}", rule, "give --hosts, or -t with a cluster's file")


def _said(found: OrderedHosts) -> str:
    from p2smt.cluster.hostlist import format_hostlist
    from p2smt.units import format_time

    idle = f"; idle: {format_hostlist(found.idle)}" if found.idle else ""
    if found.seconds is None or found.listed_s is None:
        return f"hosts as given: the topology of the plan does not say where they are{idle}"
    what = "an iteration" if found.trained else "the requests"
    return (
        f"{what}: {format_time(found.seconds)}, as listed {format_time(found.listed_s)}; the best "
        f"of {found.compared} orders, with the plan's degrees and placement in the nodes{idle}"
    )
