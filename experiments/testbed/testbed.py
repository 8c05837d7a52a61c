"""A test cluster on this machine, from the command line; README.md beside this file shows it.

    python -m experiments.testbed.testbed --nodes 2 --rate 200mbit
    python -m experiments.testbed.testbed --nodes 2 --rate 200mbit -- torchrun ...
    python -m experiments.testbed.testbed clean

Exit codes: that of the command; 2 bad input or a machine that does not allow it; 5 ip or tc is
missing; 130 interrupted; 143 terminated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from experiments.testbed.bandwidth import (
    Flow,
    LevelRate,
    level_rates,
    measure_both_ways,
    measure_pairs,
)
from experiments.testbed.launch import check_command, run_in_every_node
from experiments.testbed.model import topology_yaml
from experiments.testbed.network import cluster
from experiments.testbed.ownership import clean
from experiments.testbed.spec import MAX_NODES, NetworkSpec, parse_rate
from experiments.testbed.system import COMMAND, ToolMissing, check
from p2smt.cluster.hostlist import parse_hostlist
from p2smt.errors import InputError
from p2smt.units import format_time, parse_count

BAD_INPUT, TOOL_MISSING, INTERRUPTED = 2, 5, 130
_MOST = 10**6


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError("arguments", message, "see --help")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code.  An error is one line on stderr."""
    try:
        return _clean() if list(arguments) == ["clean"] else _run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("testbed: interrupted\n")
        return INTERRUPTED
    except InputError as error:
        sys.stderr.write(f"testbed: error: {error}\n")
        return TOOL_MISSING if isinstance(error, ToolMissing) else BAD_INPUT


def _run(arguments: Sequence[str]) -> int:
    before, dashes, command = _split(arguments)
    options = _parser().parse_args(before)
    spec = _spec(options)
    if dashes and not command:
        raise InputError("--", "must be followed by a command", "add one, or leave -- out")
    if command:
        check_command(command)
    _write_topology(options, spec)
    with cluster(spec) as nodes:
        if command:
            return run_in_every_node(nodes, command)
        flows = measure_pairs(nodes)
        _show(flows, measure_both_ways(nodes), level_rates(spec, nodes, flows))
    return 0


def _split(arguments: Sequence[str]) -> tuple[list[str], bool, list[str]]:
    given = list(arguments)
    if "--" not in given:
        return given, False, []
    place = given.index("--")
    return given[:place], True, given[place + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=COMMAND,
        usage=f"{COMMAND} --nodes N --rate RATE [options] [-- COMMAND ...] | {COMMAND} clean",
        description="Builds a rate-shaped cluster of network namespaces, runs COMMAND in every "
        "node (without one: measures the links), and removes the cluster.",
        allow_abbrev=False,
    )
    parser.add_argument("--nodes", required=True, help="nodes of a rack; of unequal ones 3+2+1")
    parser.add_argument("--rate", required=True, help="rate of a node's uplink, like 200mbit")
    parser.add_argument("--racks", help="racks (default 1: no rack level)")
    parser.add_argument("--rack-rate", help="rate of a rack's uplink")
    parser.add_argument("--hosts", help="names of the nodes, rack by rack, as a host list")
    parser.add_argument("--name", help="name of the cluster (default: a new one)")
    parser.add_argument("--topology-out", metavar="FILE", help="write the p2smt topology here")
    parser.add_argument("--ranks-per-node", default="1", help="for the topology (default 1)")
    return parser


def _spec(options: argparse.Namespace) -> NetworkSpec:
    name = {} if options.name is None else {"name": str(options.name)}
    rack_rate = options.rack_rate
    return NetworkSpec(
        _racks(options.nodes, options.racks),
        parse_rate(options.rate, "--rate"),
        None if rack_rate is None else parse_rate(rack_rate, "--rack-rate"),
        () if options.hosts is None else parse_hostlist(options.hosts),
        **name,
    )


def _racks(nodes: str, racks: str | None) -> tuple[int, ...]:
    """The nodes of each rack, given as ``3+2+1`` or as one number for all."""
    counts = nodes.split("+")
    if len(counts) > 1 and racks is not None:
        rule = "has the nodes of each rack, so it says how many racks there are"
        raise InputError(f"--nodes {nodes[:80]}", rule, "leave --racks out")
    times = parse_count(racks or "1", "--racks", MAX_NODES)
    return tuple(parse_count(count, "--nodes", _MOST) for count in counts) * times


def _write_topology(options: argparse.Namespace, spec: NetworkSpec) -> None:
    ranks = parse_count(options.ranks_per_node, "--ranks-per-node", _MOST)
    text = topology_yaml(spec, ranks)
    if options.topology_out is None:
        return
    try:
        Path(options.topology_out).write_text(text, encoding="utf-8")
    except OSError as error:
        rule = f"cannot be written ({error.strerror})"
        raise InputError(f"--topology-out {options.topology_out}", rule) from None


def _show(flows: Sequence[Flow], both_ways: Sequence[float], levels: Sequence[LevelRate]) -> None:
    wide = max(6, *(len(node.host) for flow in flows for node in (flow.source, flow.target)))
    print(f"{'from':{wide}}  {'to':{wide}}  {'Mbit/s':>9}  {'both ways':>9}  round trip")
    for flow, both in zip(flows, both_ways, strict=True):
        ends = f"{flow.source.host:{wide}}  {flow.target.host:{wide}}"
        rates = f"{_mbit(flow.bytes_per_s):>9}  {_mbit(both):>9}"
        print(f"{ends}  {rates}  {format_time(flow.round_trip_s):>10}")
    print("\nlevel   asked Mbit/s  reached")
    for level in levels:
        share = level.reached_bytes_per_s / level.asked_bytes_per_s
        asked, reached = _mbit(level.asked_bytes_per_s), _mbit(level.reached_bytes_per_s)
        print(f"{level.level:6}  {asked:>12}  {reached} ({share:.1%})")


def _mbit(bytes_per_s: float) -> str:
    return f"{bytes_per_s * 8 / 1e6:.1f}"


def _clean() -> int:
    check()
    removed, in_use = clean()
    for name in removed:
        print(f"removed the leftovers of cluster {name}")
    for name in in_use:
        print(f"left alone: cluster {name}, which is in use")
    if not removed and not in_use:
        print("nothing to remove")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
