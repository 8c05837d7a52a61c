"""Topologies that are written and read back, and text that is none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.error_class import MAX_ERROR, Basis, ErrorClass
from p2smt.cluster.file import (
    dump_topology,
    load_topology,
    parse_topology,
    preset_names,
    topology_from_data,
)
from p2smt.cluster.link import EFFICIENCY_NAMES, FABRICS
from p2smt.cluster.topology import (
    CALL_NAMES,
    Algorithm,
    Level,
    Link,
    LinkKind,
    Piece,
    Topology,
)
from p2smt.collectives.names import Collective
from p2smt.errors import InputError
from tests.refusals import refusal
from tests.strategies.json_values import LEAVES, json_values


@pytest.mark.parametrize("name", preset_names())
def test_presets_read_back(name: str) -> None:
    check_reads_back(load_topology(name))


def check_reads_back(topology: Topology) -> None:
    data = dump_topology(topology)
    assert topology_from_data(data, "data") == topology
    assert topology_from_data(json.loads(json.dumps(data)), "data") == topology
    assert parse_topology(yaml.safe_dump(data, sort_keys=False), "yaml") == topology
    assert parse_topology(json.dumps(data), "json") == topology


NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True).filter(
    lambda name: name not in ("root", "in", "inside", "parallel", "master", "within", "across")
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
RATES = st.floats(1, 1e18, exclude_max=True)
PIECES = st.lists(
    st.builds(Piece, TEXTS, st.floats(0, 1e6, exclude_max=True), RATES),
    min_size=1,
    max_size=3,
    unique_by=lambda piece: piece.name,
).map(tuple)
MEASURED = st.dictionaries(st.sampled_from(Collective), PIECES, max_size=3).map(
    lambda found: tuple(found.items())
)
PARTS = st.dictionaries(st.sampled_from(EFFICIENCY_NAMES), st.floats(1e-6, 1.05), max_size=3).map(
    lambda found: tuple(found.items())
)
HOPS = st.dictionaries(st.sampled_from(["any", "ll", "simple"]), st.floats(0, 1e5)).map(
    lambda found: tuple(found.items())
)
FABRIC = st.sampled_from(["", *FABRICS])
SWITCHES = st.builds(
    Link,
    st.just(LinkKind.SWITCH),
    PIECES,
    ports=st.sampled_from([1, 2, 4]),
    device_bandwidth_bytes_per_s=st.none() | RATES,
    in_switch_members=st.sampled_from([0, 2, 5]),
    measured=MEASURED,
    fabric=FABRIC,
    efficiency=PARTS,
    hops=HOPS,
)
MESHES = st.builds(
    Link,
    st.sampled_from([LinkKind.RING, LinkKind.FULL_MESH]),
    PIECES,
    measured=MEASURED,
    fabric=FABRIC,
)
TORI = st.builds(Link, st.just(LinkKind.TORUS), PIECES, torus=st.just((2, 4)), measured=MEASURED)
LEVELS = st.lists(
    st.builds(Level, NAMES, st.just(8), SWITCHES | MESHES | TORI),
    min_size=1,
    max_size=4,
    unique_by=lambda level: level.name,
).map(tuple)


ERRORS = st.builds(
    lambda operation, error, basis, least, more: ErrorClass(
        operation, error, basis, least, None if more is None else least + more
    ),
    st.sampled_from(CALL_NAMES),
    st.floats(0, MAX_ERROR),
    st.sampled_from(Basis),
    st.integers(1, 2**60),
    st.none() | st.integers(0, 2**60),
)


@given(
    st.builds(
        Topology,
        TEXTS.filter(bool),
        LEVELS,
        algorithms=st.permutations(list(Algorithm)).map(lambda found: tuple(found[:3])),
        description=TEXTS,
        sources=st.lists(TEXTS, max_size=2).map(tuple),
        overrides=st.dictionaries(st.sampled_from(Collective), st.sampled_from(Algorithm)).map(
            lambda found: tuple(found.items())
        ),
        library=st.sampled_from(["", "gloo", "nccl-2.20"]),
        best=st.booleans(),
        restricted=st.booleans(),
        calls=st.dictionaries(st.sampled_from(CALL_NAMES), st.floats(0, 1e5)).map(
            lambda found: tuple(found.items())
        ),
        calibrated=st.booleans(),
    ),
    st.lists(ERRORS, max_size=3),
)
def test_every_topology_reads_back(topology: Topology, errors: list[ErrorClass]) -> None:
    """With errors of its outermost level."""
    pairs = tuple((topology.names[0], one) for one in errors)
    check_reads_back(replace(topology, errors=pairs))


@given(st.text(max_size=200) | st.text("{}[]:,-#&*!|>'\"%@`?\n \tab0.~<=", max_size=100))
def test_no_text_gives_anything_but_an_input_error(text: str) -> None:
    assert refusal(parse_topology, text, "fuzz")


JSON = json_values("name", "levels", "size", "link", "kind", leaves=LEAVES | st.floats())


@given(JSON)
def test_no_data_gives_anything_but_an_input_error(data: object) -> None:
    with pytest.raises(InputError):
        topology_from_data(data, "fuzz")
