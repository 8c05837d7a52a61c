"""Algorithms and libraries of a program's own: those of docs/cost-model.md, message by message.

The pieces of the page run as they stand; the loads that their rule claims are held against every
message of every member, routed over each link that it passes.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.cluster.library.file import packaged_text, parse_library
from p2smt.cluster.library.model import (
    ADDED,
    AddedAlgorithm,
    Library,
    LibraryRun,
    SizeThreshold,
    SizeThresholds,
)
from p2smt.cluster.library.registry import library_of, register_library
from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.bounds import step_model
from p2smt.cost.library.ways import AlgorithmRule, LibraryRule, register_algorithm
from p2smt.cost.loads.footprint_explicit import explicit_footprint
from p2smt.cost.loads.level_use import Footprint
from p2smt.errors import InputError
from p2smt.programs.parts import by_size
from tests.oracles import loads as oracle
from tests.pages import complaints
from tests.tiers import examples_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "cost-model.md").read_text(encoding="utf-8")
PIECES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN = re.findall(r"```python\n(?:(?!```).)*?```\n\n```text\n(.*?)```", PAGE, re.DOTALL)

MessagesOf = Callable[[Sequence[Sequence[int]]], Iterator[tuple[int, int, float]]]


Registered = tuple[dict[str, Library], dict[str, tuple[AlgorithmRule, str]]]


@cache
def page() -> tuple[dict[str, object], str, Registered]:
    """The names that the page's pieces define, what they print, and what they register."""
    names: dict[str, object] = {}
    out, before = io.StringIO(), registered()
    with contextlib.redirect_stdout(out):
        for code in PIECES:
            exec(compile(code, "cost-model.md", "exec"), names)
    added = registered()
    back_to(before)
    return names, out.getvalue(), added


def registered() -> Registered:
    return dict(ADDED.libraries), dict(ADDED.algorithms)


def back_to(state: Registered) -> None:
    ADDED.libraries.clear()
    ADDED.libraries.update(state[0])
    ADDED.algorithms.clear()
    ADDED.algorithms.update(state[1])


@pytest.fixture(autouse=True)
def _of_the_page() -> None:
    """What the page registers is known to a test."""
    back_to(page()[2])


def test_the_page_prints_what_it_shows() -> None:
    assert page()[1] == "".join(SHOWN)


@pytest.mark.exhaustive
def test_the_page_is_typed(tmp_path: Path) -> None:
    assert not complaints(PIECES, tmp_path)


# Loads ------------------------------------------------------------------------------------


@st.composite
def clusters(draw: st.DrawFn) -> Topology:
    """One to two levels between nodes and inside them, with every kind of link."""
    sizes = draw(st.sampled_from([(2, 2), (3, 2), (2, 4), (2, 2, 2), (2, 3, 2), (3, 1, 4)]))
    nodes = draw(st.integers(0, len(sizes) - 2))
    names, levels = ("a", "b", "c"), []
    for j, size in enumerate(sizes):
        kind = draw(st.sampled_from([LinkKind.SWITCH, LinkKind.SWITCH, *LinkKind]))
        under = int(np.prod(sizes[j + 1 :]))
        ports = draw(st.sampled_from([n for n in range(1, under + 1) if under % n == 0]))
        link = Link(
            kind,
            (Piece("simple", 1e-6, draw(st.sampled_from([1e9, 4e9, 9e9]))),),
            ports=ports if kind is LinkKind.SWITCH else 1,
            torus=(size,) if kind is LinkKind.TORUS else (),
            fabric="infiniband" if j <= nodes else "nvlink4",
        )
        levels.append(Level(names[j], size, link))
    return Topology("drawn", tuple(levels))


def grouped(topology: Topology, whole: bool) -> list[list[int]]:
    """All devices as one group, or every second one of each node and the others as two."""
    every = list(range(topology.devices))
    return [every] if whole else [every[::2], every[1::2]]


@settings(derandomize=True, deadline=None, max_examples=examples_of(100))
@given(clusters(), st.booleans())
def test_the_worst_link_of_each_level_carries_what_the_rule_says(
    topology: Topology, whole: bool
) -> None:
    groups = grouped(topology, whole)
    by_node = [oracle.by_node(topology, group) for group in groups]
    if len(by_node[0][0]) < 2:
        return
    listed = cast("MessagesOf", page()[0]["messages"])
    sent = [message for nodes in by_node for message in listed(nodes)]
    one = replace(topology.under("nccl-rails"), best=True)
    model = step_model(one, explicit_footprint(one, np.array(groups)), Collective.ALL_REDUCE)
    (way,) = [w for w in model.ways if (w.algorithm, w.protocol) == ("by-rails", "simple")]
    for j, level in enumerate(topology.levels):
        if level.link.kind is LinkKind.SWITCH:
            worst = max(oracle.send_loads(topology, j, sent)[0].values(), default=0.0)
        else:
            worst = max(oracle.routed(topology, j, sent).values(), default=0.0)
        claimed = way.level_s_per_byte[j] * level.link.bandwidth_bytes_per_s
        assert claimed == pytest.approx(worst), level


def test_it_is_not_offered_to_groups_of_several_sizes() -> None:
    """Its rule is of groups of one size: what several send together is not known."""
    link = Link(LinkKind.SWITCH, (Piece("simple", 1e-6, 1e9),), fabric="infiniband")
    inside = replace(link, fabric="nvlink4")
    topology = Topology("t", (Level("node", 3, link), Level("gpu", 4, inside)))
    one = replace(topology.under("nccl-rails"), best=True)

    def ways(*groups: Sequence[int]) -> set[str]:
        footprint = explicit_footprint(one, by_size(groups))
        return {way.algorithm for way in step_model(one, footprint, Collective.ALL_REDUCE).ways}

    assert "by-rails" in ways([0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11])
    assert "by-rails" not in ways([0, 1, 4, 5], [2, 3, 6, 7, 10, 11])


# What is registered -----------------------------------------------------------------------


def nothing(_: Operation, __: Footprint, ___: int) -> LibraryRule | None:
    return None


def test_a_rule_that_cannot_run_is_left_out() -> None:
    """On one node, and for what it is no algorithm of, the library has its other ways."""
    one = load_topology("dgx-h100:2").under("nccl-rails")

    def ways(operation: Operation, devices: int) -> set[str]:
        footprint = explicit_footprint(one, np.arange(devices).reshape(1, devices))
        return {way.algorithm for way in step_model(one, footprint, operation).ways}

    assert "by-rails" in ways(Collective.ALL_REDUCE, 16)
    assert "by-rails" not in ways(Collective.ALL_REDUCE, 12)  # 8 and 4 members
    assert "by-rails" not in ways(Collective.ALL_REDUCE, 8)
    assert "by-rails" not in ways(Collective.ALL_GATHER, 16)
    assert "by-rails" not in ways(RequestKind.ALL_TO_ALL, 16)


def test_names_of_algorithms() -> None:
    found = register_algorithm("mine", nothing, family="ring")
    assert register_algorithm("mine", nothing, family="ring") == found == AddedAlgorithm("mine")
    for taken in ("by-rails", "ring", "p2p"):
        with pytest.raises(InputError, match="another algorithm has this name"):
            register_algorithm(taken, nothing)
    with pytest.raises(InputError, match="another algorithm has this name"):
        register_algorithm("mine", nothing, family="tree")
    with pytest.raises(InputError, match="must be lower-case"):
        register_algorithm("My own", nothing)
    with pytest.raises(InputError, match="must be one of ring, tree, nvls, pat, p2p"):
        register_algorithm("mine2", nothing, family="star")


GLOO = packaged_text("gloo").replace("name: gloo", "name: own")
OWN = GLOO.replace("all-reduce: [{", "all-reduce: [{algorithm: by-rails, protocols: [simple]}, {")


def test_a_library_file_names_an_added_algorithm() -> None:
    """The first that can run does, where no rule says otherwise."""
    register_library(parse_library(OWN, "own.yaml"))
    one = load_topology("dgx-h100:2").under("own")
    for devices, algorithm in ((16, "by-rails"), (8, "ring")):
        groups = np.arange(devices).reshape(1, devices)
        model = step_model(one, explicit_footprint(one, groups, False), Collective.ALL_REDUCE)
        assert model.time(1e6).algorithm == algorithm


def test_a_library_needs_a_way_beside_an_added_algorithm() -> None:
    """Its rule may decline, and so may an algorithm that nobody registered."""
    alone = GLOO.replace("algorithm: ring", "algorithm: by-rails", 1)
    with pytest.raises(InputError, match=r"runs\.all-reduce: nothing runs it for every group"):
        parse_library(alone, "own.yaml")
    with pytest.raises(InputError, match="by-trails"):
        parse_library(OWN.replace("by-rails", "by-trails"), "own.yaml")
    run = LibraryRun(AddedAlgorithm("by-trails"), ("simple",))
    gloo = library_of("gloo")
    runs = {**dict(gloo.runs), "all-reduce": (*gloo.runs_of("all-reduce"), run)}
    with pytest.raises(InputError, match=r"runs\.all-reduce\[1\]\.algorithm 'by-trails'"):
        register_library(replace(gloo, name="own", runs=tuple(runs.items())))


def test_a_ladder_names_an_algorithm_by_equality() -> None:
    """A copy of a name is that name: it may come from another process."""
    library = library_of("nccl-rails")
    copied = pickle.loads(pickle.dumps(library))
    assert copied == library
    rungs = (SizeThreshold(1024, AddedAlgorithm("by-rails"), "simple"),)
    register_library(replace(copied, name="own", ladders=(SizeThresholds("all-reduce", rungs),)))


def test_another_process_must_register_it_too() -> None:
    """What is sent is the name; what it loads is not known there until it is registered."""
    added = pickle.dumps(AddedAlgorithm("by-rails"))
    code = (
        "import pickle, sys\n"
        "from p2smt.cluster.library.model import added\n"
        "try:\n    added(pickle.loads(bytes.fromhex(sys.argv[1])))\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    command = [sys.executable, "-c", code, added.hex()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("InputError algorithm by-rails: is not registered")


def test_an_added_algorithm_runs_only_where_it_is_allowed() -> None:
    """--algorithm names algorithms of the package; the others are left out then."""
    one = load_topology("dgx-h100:2").under("nccl-rails")
    groups = np.arange(16).reshape(1, 16)
    for topology, there in ((one, True), (one.running((Algorithm.RING,)), False)):
        model = step_model(topology, explicit_footprint(topology, groups), Collective.ALL_REDUCE)
        assert ("by-rails" in {way.algorithm for way in model.ways}) == there
