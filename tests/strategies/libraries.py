"""Hypothesis strategies for small clusters that a library runs on, calibrated or not."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from p2smt.cluster.library.registry import library_of
from p2smt.cluster.link import EFFICIENCY_NAMES, MAX_EFFICIENCY
from p2smt.cluster.topology import CALL_NAMES, Algorithm, Level, LinkKind, Topology
from tests.strategies.topologies import MAX_DEVICES, Case, cases

LIBRARIES = ("nccl-2.12", "nccl-2.20", "nccl-2.30", "rccl", "gloo")
_INNER = ("nvlink3", "nvlink4", "nvlink5", "xgmi", "pcie")
_OUTER = ("infiniband", "efa", "ethernet", "fastrak")
_PARTS = st.sampled_from([0.01, 0.5, 0.69, 0.9, 1.0, MAX_EFFICIENCY])
_SECONDS = st.sampled_from([0.0, 1e-6, 17e-6, 1e-3])
_LINKS = 1e9
"""Links of the small clusters carry some bytes per second; libraries think in GB."""


@st.composite
def run_by(draw: st.DrawFn, topology: Topology) -> Topology:
    """The cluster under one of the libraries, with rates and latencies that may be measured."""
    levels = tuple(draw(_level(topology, j)) for j in range(len(topology.levels)))
    found = replace(topology, levels=levels, overrides=(), algorithms=tuple(Algorithm))
    for j in range(len(levels)):
        found = found.with_bandwidth_factor(j, _LINKS)
    calls = draw(st.just({}) | st.dictionaries(st.sampled_from(CALL_NAMES), _SECONDS))
    found = replace(
        found,
        library=library_of(draw(st.sampled_from(LIBRARIES))),
        best=draw(st.sampled_from([False, False, True])),
        calls=tuple(calls.items()),
        call_factor=draw(st.sampled_from([1.0, 1.0, 2.0])),
    )
    return draw(_limited(found, topology))


@st.composite
def _limited(draw: st.DrawFn, found: Topology, topology: Topology) -> Topology:
    """Sometimes only some algorithms, sometimes one that is always taken."""
    match draw(st.sampled_from(["none", "none", "restricted", "overrides"])):
        case "restricted":
            return replace(found, algorithms=topology.algorithms, restricted=True)
        case "overrides":
            return replace(found, overrides=topology.overrides)
    return found


@st.composite
def _level(draw: st.DrawFn, topology: Topology, j: int) -> Level:
    level = topology.levels[j]
    names = _OUTER if j <= topology.node_level else _INNER
    fabric = draw(st.sampled_from(names)) if level.link.fabric else ""
    parts = draw(st.just({}) | st.dictionaries(st.sampled_from(EFFICIENCY_NAMES), _PARTS))
    kinds = ("tree-ll", "ring-simple", "all-reduce-ll", "nvls-simple")
    protocols = st.sampled_from(("any", "ll", "simple", "ll128", *kinds))
    hops = draw(st.just({}) | st.dictionaries(protocols, _SECONDS))
    link = replace(
        level.link,
        fabric=fabric,
        efficiency=tuple(parts.items()),
        hops=tuple(hops.items()),
        measured=(),
    )
    if link.kind is LinkKind.SWITCH and j > topology.node_level and draw(st.booleans()):
        link = replace(link, in_switch_members=2)
    return replace(level, link=link)


@st.composite
def library_cases(draw: st.DrawFn, devices: int = MAX_DEVICES) -> Case:
    """A cluster under a library, a placement on it, and at least one axis that is reduced."""
    case = draw(cases(devices))
    return replace(case, topology=draw(run_by(case.topology)))
