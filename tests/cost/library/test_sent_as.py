"""A collective that a library carries out by another one: Gloo's reduce-scatter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.cluster.file import load_topology
from p2smt.cluster.library.file import packaged_text, parse_library
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective
from p2smt.cost.bounds import regular_model
from p2smt.errors import InputError
from p2smt.programs.program import Grouping


def seconds(topology: Topology, collective: Collective, payload: int) -> float:
    digits = tuple(((size, 1),) for size in topology.sizes)
    return regular_model(topology, digits, Grouping(0, 2), collective).time(payload).seconds


@pytest.mark.parametrize("payload", [1, 2**20, 2**30])
def test_a_reduce_scatter_of_gloo_costs_an_all_reduce(payload: int) -> None:
    gloo = load_topology("dgx-a100").under("gloo")
    whole = seconds(gloo, Collective.ALL_REDUCE, payload)
    assert seconds(gloo, Collective.REDUCE_SCATTER, payload) == pytest.approx(whole)
    assert seconds(gloo, Collective.ALL_GATHER, payload) < whole


def test_its_call_has_a_cost_of_its_own() -> None:
    gloo = replace(load_topology("dgx-a100").under("gloo"), calls=(("reduce-scatter", 1.0),))
    whole = seconds(gloo, Collective.ALL_REDUCE, 1)
    assert seconds(gloo, Collective.REDUCE_SCATTER, 1) == pytest.approx(1.0 - 50e-6 + whole)


def test_other_operations_send_their_own_messages() -> None:
    gloo = library_of("gloo")
    assert gloo.sent_for(Collective.REDUCE_SCATTER) is Collective.ALL_REDUCE
    assert gloo.sent_for(Collective.ALL_GATHER) is Collective.ALL_GATHER
    assert library_of("nccl-2.20").sent_for(Collective.REDUCE_SCATTER) is Collective.REDUCE_SCATTER


def test_what_it_is_carried_by_is_a_collective() -> None:
    text = packaged_text("gloo").replace("reduce-scatter: all-reduce", "reduce-scatter: send")
    with pytest.raises(InputError, match=r"reduce-scatter"):
        parse_library(text, "mine.yaml")
