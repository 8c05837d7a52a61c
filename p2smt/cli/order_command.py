"""`p2smt order`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, argument, opened, option

if TYPE_CHECKING:
    from p2smt.api.order import OrderedHosts
    from p2smt.cluster.topology import Topology


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
) -> int:
    """Order the hosts of a job for a plan, whose degrees and placement in the nodes stay.

    Of more hosts than the ranks fill also which stay idle.  Exit code 4: there are too few.
    """
    from p2smt.api.order import TooFewHostsError, cluster_of, order_hosts
    from p2smt.cli import given
    from p2smt.cli.codes import INFEASIBLE
    from p2smt.cli.export_command import check_output, write_out
    from p2smt.errors import InputError
    from p2smt.interop.exports import writer_named
    from p2smt.plans.file import read_plan

    writer = writer_named(to)
    if not writer.starts:
        rule = "is nothing that starts ranks"
        raise InputError(f"--to {to[:40]!r}", rule, "name slurm, hostlist, csv, rankfile, torchrun")
    check_output(output, source, hosts, topology)
    each = None if per_host is None else given.count_of(per_host, "--devices-per-host")
    plan = read_plan(source)
    cluster = None if topology is None else given.topology_of(topology)
    name = f"plan {source[:200]}"
    listed = _listed(hosts, cluster or cluster_of(plan, name))
    try:
        found = order_hosts(plan, listed, cluster, per_host=each, source=name)
    except TooFewHostsError as error:
        typer.echo(f"p2smt: {error}", err=True)
        return INFEASIBLE
    made = writer.write(found.plan, output or "FILE")
    return write_out(output, made.text, (_said(found), *made.notes))


def _listed(hosts: Text, cluster: Topology) -> Sequence[str]:
    """The hosts of the job: --hosts, else $SLURM_JOB_NODELIST, else all that the cluster names.

    Raises:
        InputError: no host list, a host that the cluster lacks, or none are given and none named.
    """
    from p2smt.cli.solve_command import NODELIST, hosts_of
    from p2smt.cluster.hostlist import hosts_named, parse_hostlist
    from p2smt.errors import InputError

    if cluster.hosts is not None:
        return hosts_of(hosts, cluster) or ()
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
