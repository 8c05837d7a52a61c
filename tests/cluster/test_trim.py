"""Parts of nodes: what is left of levels, ports and measured errors, and that costs are the same as
those of the same devices in the whole cluster."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.error_class import Basis, ErrorClass
from p2smt.cluster.file import dump_topology, load_topology, parse_topology, topology_from_data
from p2smt.cluster.trimmed import even_part, parse_uses, trimmed, use_notes, used_devices
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.accuracy import system_name
from p2smt.cost.bounds import single_time
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray, default_ranks
from tests.cluster.test_hosts import uneven
from tests.strategies.draws import Draws, draws

SOCKETS = """
name: sockets
library: none
levels:
  - {name: leaf, size: 2, link: {kind: switch, bandwidth: 100 GB/s, latency: 2 us, fabric: roce}}
  - {name: node, size: 2, link: {kind: switch, ports: 4, bandwidth: 25 GB/s, latency: 5 us,
      fabric: roce}}
  - {name: socket, size: 2, link: {kind: switch, ports: 2, bandwidth: 50 GB/s, latency: 1 us,
      fabric: pcie}}
  - {name: gpu, size: 4, link: {kind: full-mesh, bandwidth: 25 GB/s, latency: 1 us,
      fabric: nvlink1}}
"""
WHOLE = ("gb200-nvl72:3", "dgx-h100:4", "mi300x:2", "aws-p4d:4", "azure-ndv4:2")


def test_levels_and_ports_shrink_together() -> None:
    rack = trimmed(load_topology("gb200-nvl72:2"), {"gpu": 64})
    assert rack.sizes == (2, 64)
    assert (rack.levels[0].link.ports, rack.levels[1].whole) == (64, 72)
    assert trimmed(load_topology("aws-p4d"), {"gpu": 6}).levels[0].link.ports == 3
    nodes = trimmed(parse_topology(SOCKETS, "test"), {"gpu": 2, "leaf": 1})
    assert nodes.sizes == (1, 2, 2, 2)
    assert [level.link.ports for level in nodes.levels] == [1, 2, 1, 1]
    assert [level.whole for level in nodes.levels] == [0, 0, 0, 4]


def test_all_of_a_level_changes_nothing() -> None:
    whole = load_topology("azure-ndv2")
    assert trimmed(whole, {"gpu": 8}) == whole == trimmed(whole, {})


def test_the_part_is_written_to_files() -> None:
    part = trimmed(load_topology("dgx-h100"), {"gpu": 6})
    assert topology_from_data(dump_topology(part), "again") == part
    assert trimmed(part, {"gpu": 4}).levels[1].whole == 8


@pytest.mark.parametrize(
    ("spec", "uses", "message"),
    [
        ("dgx-h100", {"gpux": 6}, "is no level of dgx-h100; did you mean 'gpu'"),
        ("dgx-h100", {"gpu": 9}, "level gpu has 8"),
        ("aws-p4d", {"gpu": 5}, "4 ports of each node serve 2 devices each"),
        ("azure-ndv2", {"gpu": 4}, "level gpu is a ring"),
        ("tpu-v5p", {"chip": 2}, "is a torus"),
    ],
)
def test_what_cannot_be_trimmed_is_named(spec: str, uses: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        trimmed(load_topology(spec), uses)


def test_nodes_with_names_are_chosen_by_name() -> None:
    with pytest.raises(InputError, match="give --hosts"):
        trimmed(uneven(), {"node": 4})
    part = trimmed(uneven(), {"gpu": 1})
    assert (part.installed, part.hosts) == (16, uneven().hosts)


@pytest.mark.parametrize("whole", [4, -1, 2**21])
def test_a_whole_is_more_than_its_part(whole: int) -> None:
    level = load_topology("azure-ndv4").levels[1]
    with pytest.raises(InputError, match="whole must be more"):
        replace(level, whole=min(whole, 2**21))


@pytest.mark.parametrize("text", ["gpu", "=6", "gpu=", "gpu=0", "gpu=x", "gpu=6.0", "gpu==6"])
def test_bad_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--use"):
        parse_uses([text])
    with pytest.raises(InputError, match="given twice"):
        parse_uses(["gpu=6", "gpu=6"])


def test_devices_keep_their_numbers() -> None:
    assert used_devices(load_topology("dgx-h100")) is None
    part = trimmed(parse_topology(SOCKETS, "test"), {"gpu": 2})
    assert used_devices(part) == (0, 1, 4, 5)
    assert use_notes(part)[0].endswith("CUDA_VISIBLE_DEVICES=0,1,4,5")
    assert use_notes(trimmed(load_topology("dgx-h100"), {"gpu": 1})) == (
        "1 of the 8 devices of each node is used, which keeps its number: CUDA_VISIBLE_DEVICES=0",
    )
    rack = use_notes(trimmed(load_topology("gb200-nvl72"), {"gpu": 64}))
    assert "64 of the 72 devices of each rack" in rack[0]
    assert "CUDA" not in rack[0]
    assert use_notes(load_topology("dgx-h100")) == ()


@pytest.mark.parametrize("kind", list(DIRECT))
@pytest.mark.parametrize("payload", [2**10, 2**20, 2**30])
def test_trays_are_a_level_on_the_same_wires(kind: RequestKind, payload: int) -> None:
    """What one collective takes does not change; an all-to-all counts its messages by level."""
    flat = load_topology("gb200-nvl72:2")
    trays = trimmed(flat, {"tray": 18})
    assert (trays.names, trays.sizes) == (("rack", "tray", "gpu"), (2, 18, 4))
    assert trays.node_level == 0
    assert topology_from_data(dump_topology(trays), "trays") == trays
    for racks in (1, 2):
        seconds = [
            single_time(one, ranks_over(racks), [1], kind, payload).seconds for one in (flat, trays)
        ]
        assert seconds[1] == pytest.approx(seconds[0], rel=1e-9)
    for level, local in ((0, 72), (1, 72), (1, 4)):
        same = level + (level > 0)
        assert system_name(trays, same, local) == system_name(flat, level, local)


def ranks_over(racks: int) -> IntArray:
    """The 144 GPUs of two racks in groups over so many of them."""
    return np.arange(144).reshape(-1, 72 * racks)


def test_some_trays_keep_their_cards() -> None:
    trays = trimmed(load_topology("gb200-nvl72:2"), {"tray": 16})
    assert (trays.sizes, trays.levels[0].link.ports) == ((2, 16, 4), 64)
    part = trimmed(load_topology("gb200-nvl72:2"), {"gpu": 64})
    assert used_devices(trays) == used_devices(part) == tuple(range(64))
    assert part.levels[1].groups is None
    for text, message in (("tray=19", "level tray has 18"), ("trai=1", "did you mean 'tray'")):
        with pytest.raises(InputError, match=message):
            trimmed(load_topology("gb200-nvl72:2"), parse_uses([text]))
    with pytest.raises(InputError, match="groups of 5: must divide its 72"):
        replace(load_topology("gb200-nvl72:2").levels[1], groups=("tray", 5))


def test_measured_errors_are_of_whole_nodes() -> None:
    one = ErrorClass("all-reduce", 0.1, Basis.IN_SAMPLE)
    whole = replace(load_topology("dgx-h100"), calibrated=True, errors=(("node", one),))
    assert trimmed(whole, {"gpu": 6}).errors == ()
    assert trimmed(whole, {"node": 1}).errors == whole.errors


def test_the_part_of_a_rack_that_is_a_power_of_two() -> None:
    rack = load_topology("gb200-nvl72:3")
    part = even_part(rack)
    assert part is not None
    assert part.topology == trimmed(rack, {"gpu": 64})
    assert (part.use, part.size, part.odd) == ("gpu=64", 72, 9)
    assert part.words == "64 of each 72, as most jobs on such racks take"
    assert even_part(part.topology) is None
    assert even_part(trimmed(rack, {"gpu": 48})) is None  # asked for so
    assert even_part(load_topology("dgx-h100:3")) is None  # as many nodes as are asked for


def test_a_part_has_the_name_of_no_whole_node() -> None:
    part = trimmed(load_topology("gb200-nvl72"), {"gpu": 8})
    assert system_name(part, 1) == "8 of 72 x nvlink5 switch 900 GB/s"
    assert system_name(part, 1, 4) == "4 of 72 x nvlink5 switch 900 GB/s"
    assert system_name(part, 0).startswith("8 of 72 x ")
    assert system_name(load_topology("dgx-b200"), 1) == "8 x nvlink5 switch 900 GB/s"


@given(st.sampled_from(WHOLE), st.sampled_from([1, 2, 4, 6, 8]), draws())
def test_costs_are_those_of_the_same_devices(spec: str, count: int, data: Draws) -> None:
    whole = load_topology(spec)
    if data.draw(st.booleans()):
        whole = whole.under("none")
    part = trimmed(whole, {whole.names[-1]: count})
    sizes = data.draw(st.permutations([whole.sizes[0], count]))
    ranks = default_ranks(sizes)
    under = whole.sizes[-1]
    placed = ranks // count * under + ranks % count
    kind = data.draw(st.sampled_from(RequestKind))
    axes = data.draw(st.sampled_from([(0,), (1,), (0, 1)]))
    if math.prod(sizes[i] for i in axes) == 1:
        return
    size = data.draw(st.sampled_from([1, 2**16, 2**30]))
    mine = single_time(part, ranks, axes, kind, size)
    same = single_time(whole, np.asarray(placed), axes, kind, size)
    assert mine.seconds == pytest.approx(same.seconds, rel=1e-9)
