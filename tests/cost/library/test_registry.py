"""Libraries by name, those of a program's own among them, and files that are none."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from p2smt.cluster.file import load_topology
from p2smt.cluster.library.file import packaged_names, packaged_text, parse_library, read_library
from p2smt.cluster.library.model import ADDED, Library, LibraryRun, NodeCount
from p2smt.cluster.library.registry import (
    known_or_named,
    library_names,
    library_of,
    register_library,
)
from p2smt.cluster.topology import Algorithm
from p2smt.collectives.names import Collective
from p2smt.cost.bounds import step_model
from p2smt.cost.loads.footprint_explicit import explicit_footprint
from p2smt.cost.requested_algorithms import check_topology
from p2smt.errors import InputError

NAMES = ("gloo", "mpich-5", "nccl-2.12", "nccl-2.20", "nccl-2.30", "openmpi-4", "openmpi-5", "rccl")


@pytest.fixture
def own() -> Library:
    """A library of a program's own."""
    return replace(library_of("gloo"), name="mine")


def test_the_package_has_these() -> None:
    assert packaged_names() == NAMES
    assert [library_of(name).name for name in NAMES] == [*NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_files_of_the_package_obey_the_rules_of_others(name: str) -> None:
    """They are read without the checks that a file from outside has to pass."""
    assert parse_library(packaged_text(name), name) == library_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_a_library_has_a_source(name: str) -> None:
    """A line at the head names it; the blocks of numbers say where in it."""
    assert all(source.startswith("https://") for source in library_of(name).sources)
    blocks = ("calls:", "hops:", "formula:", "  base:", "  hops:", "  corrections:")
    lines = packaged_text(name).splitlines()
    for block in blocks:
        for i, line in enumerate(lines):
            if line.startswith(block):
                assert "#" in line or "#" in lines[i - 1] or block == "  hops:", line


def test_calls_and_hops() -> None:
    library = replace(
        library_of("nccl-2.20"),
        calls=(("all-reduce", 6.8e-6), ("send", 6.6e-6)),
        hops=(
            (("inside", "ring", "ll"), 0.6e-6),
            (("pcie", "ring", "ll"), 1e-6),
            (("pcie", "p2p", "simple"), 5.7e-6),
            (("network", "tree", "ll"), 5e-6),
            (("network", "ring", "ll128"), 4e-6),
            (("efa", "tree", "ll"), 80e-6),
        ),
    )
    assert (library.call_s("all-reduce"), library.call_s("all-gather")) == (6.8e-6, 0)
    across = replace(library, calls_across=(("network", 4e-6), ("efa", 30e-6)))
    assert [across.across_s(name) for name in ("infiniband", "efa", "")] == [4e-6, 30e-6, 4e-6]
    assert replace(library, calls_across=()).across_s("efa") == 0
    assert library.hop_s("nvlink4", "ring", "ll", across=False) == 0.6e-6
    assert library.hop_s("pcie", "ring", "ll", across=False) == 1e-6
    assert library.hop_s("infiniband", "tree", "ll", across=True) == 5e-6
    assert library.hop_s("efa", "tree", "ll", across=True) == pytest.approx(80e-6)
    assert library.hop_s("", "ring", "ll128", across=True) == 4e-6
    assert library.hop_s("pcie", "nvls", "simple", across=False) == pytest.approx(5.7e-6)
    assert library.protocol("ll").efficiency == 0.5
    assert library.protocol("large").efficiency == 1.0


def test_an_unknown_library() -> None:
    with pytest.raises(InputError, match=r"did you mean 'nccl-2\.30'"):
        library_of("nccl")
    with pytest.raises(InputError, match=r"'nccl-2\.2' is not known|nccl-2\.20"):
        library_of("nccl-2.2")
    with pytest.raises(InputError) as caught:
        library_of("zzz")
    assert all(name in str(caught.value) for name in NAMES)


def test_a_library_of_ones_own(own: Library) -> None:
    register_library(own)
    register_library(own)
    assert library_of("mine") == own
    assert "mine" in library_names()
    with pytest.raises(InputError, match="another library has this name"):
        register_library(replace(own, vendor="another"))
    with pytest.raises(InputError, match="another library has this name"):
        register_library(replace(own, name="rccl"))


def test_counts_below_none_are_refused(own: Library) -> None:
    run = LibraryRun(Algorithm.TREE, ("simple",), most_in_node=-1)
    runs = dict(own.runs) | {"all-reduce": (*own.runs_of("all-reduce"), run)}
    for library, key in (
        (replace(own, peers_at_once=-1), "peers_at_once -1"),
        (replace(own, runs=tuple(runs.items())), ".most_in_node -1"),
    ):
        with pytest.raises(InputError, match="must be at least 0") as caught:
            register_library(library)
        assert caught.value.given.endswith(key)


def test_a_library_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(packaged_text("gloo").replace("name: gloo", "name: mine"))
    assert read_library(str(path)) == replace(library_of("gloo"), name="mine")


def test_the_example_of_the_page() -> None:
    page = Path(__file__).parents[3] / "docs" / "libraries.md"
    example = page.read_text().partition("```yaml\n")[2].partition("```")[0]
    found = parse_library(example, "example")
    assert (found.name, found.algorithms) == ("mine", (Algorithm.RING, Algorithm.BINOMIAL))


GLOO = packaged_text("gloo")
RCCL = packaged_text("rccl")
BROADCAST = "broadcast: [{algorithm: binomial, protocols: [simple]}]"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (GLOO.replace("algorithm: binomial", "algorithm: binomal"), ("binomal", "binomial")),
        (GLOO.replace("send: 50 us", "send: -50 us"), ("calls.send",)),
        (GLOO.replace("send: 50 us", "sent: 50 us"), ("calls.sent", "all-to-all")),
        (GLOO.replace("{simple: 20 us}", "{simple: 20}", 1), ("hops.inside.ring.simple",)),
        (GLOO.replace("{simple: 20 us}", "{fast: 20 us}", 1), ("hops.inside.ring.fast",)),
        (GLOO.replace("  inside:", "  intside:"), ("hops.intside",)),
        (GLOO.replace("p2p: {simple: 20 us}", "peer: {simple: 20 us}"), ("hops.inside.peer",)),
        (GLOO.replace("efficiency: 1}", "efficiency: 1.5}"), ("protocols.simple.efficiency",)),
        (GLOO.replace("efficiency: 1}", "efficiency: 0}"), ("protocols.simple.efficiency",)),
        (
            GLOO.replace("efficiency: 1}", "efficiency: 1, caps: {nvlink: 3 GB/s}}"),
            ("protocols.simple.caps.nvlink",),
        ),
        (
            GLOO.replace(BROADCAST, "# none"),
            ("runs.broadcast", "every group on one node", "such as ring"),
        ),
        (
            GLOO.replace("binomial, protocols", "binomial, nodes: one, protocols"),
            ("runs.broadcast", "every group on several nodes"),
        ),
        (
            GLOO.replace("binomial, protocols", "binomial, least_members: 3, protocols"),
            ("runs.broadcast", "every group on one node"),
        ),
        (
            GLOO.replace("binomial, protocols: [simple]", "binomial, protocols: [ll]"),
            ("runs.broadcast[0].protocols 'll'",),
        ),
        (GLOO.replace("  send: 50 us\n", ""), ("calls.send: is missing", "every operation")),
        (GLOO.replace("    ring: {simple: 20 us}\n    p2p: {", "    tree: {"),
         ("hops.inside.ring.simple: is missing", "runs.all-reduce[0]")),
        (GLOO.replace("  network:\n    ring: {simple: 50 us}\n    p2p: {simple: 50 us}\n", ""),
         ("hops.network.ring.simple: is missing", "runs.all-reduce[0]")),
        (re.sub("(ring|p2p): {ll: [^,]*, ", r"\1: {", RCCL),
         ("hops.inside.ring.ll: is missing", "runs.all-reduce[2]")),
        (RCCL.replace("calls_across:  #", "calls_across:\n  xgmi: 3 us  #"),
         ("calls_across.xgmi", "network, infiniband")),
        (RCCL.replace("in_flight: 8", "in_flight: 0"), ("in_flight",)),
        (RCCL.replace("ring_pace: ", "ring_pace: 0.5  # "), ("ring_pace 0.5", "1 to 100")),
        (GLOO.replace("efficiency: 1}", "two_children: 0}"), ("protocols.simple.two_children",)),
        (GLOO.replace("efficiency: 1}", "two_children: 1.1}"), ("protocols.simple.two_children",)),
        (GLOO.replace("  broadcast: [{", "  brodcast: [{"), ("runs.brodcast",)),
        (GLOO.replace("name: gloo", "name: Gloo"), ("name 'Gloo'",)),
        (GLOO.replace("name: gloo", "name: none"), ("name 'none'",)),
        (GLOO + "formulas: {}\n", ("unknown key 'formulas'",)),
        (RCCL.replace("known: 0.75", "known: 1.75"), ("formula.hardware.xgmi.known",)),
        (RCCL.replace("inside: xgmi", "inside: nvlink2"), ("formula.inside 'nvlink2'",)),
        (RCCL.replace("row: net", "row: nett"), ("formula.hardware.infiniband.row",)),
        (RCCL.replace("up_to: 512 KiB", "up_to: 32 MiB"), ("ladders[0].rungs", "rise")),
        (RCCL.replace("algorithm: direct, protocol: ll,", "algorithm: nvls, protocol: ll,"),
         ("ladders[0].rungs[0] nvls with ll",)),
        (RCCL.replace("algorithm: direct, protocols", "algorithm: nvls, protocols")
         .replace("algorithm: direct", "algorithm: nvls"), ("formula.nvls",)),
        (RCCL.replace("factors: [0.1,", "factors: [0,", 1), ("formula.corrections[0].factors",)),
        (RCCL.replace("factor: 0.11}", "factor: 0.11, cap: ll}"), ("formula.scalings[1].cap",)),
    ],
)  # fmt: skip
def test_bad_libraries_are_one_line(text: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        parse_library(text, "mine.yaml")
    message = str(caught.value)
    assert message.startswith("mine.yaml")
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_a_ladder_without_a_last_rung_and_without_a_formula() -> None:
    library = library_of("rccl")
    with pytest.raises(InputError, match="leaves larger sizes without a choice"):
        register_library(replace(library, name="mine", formula=None))


def test_a_topology_that_a_library_cannot_run_on() -> None:
    h100, v100 = load_topology("dgx-h100"), load_topology("dgx2")
    nccl, gloo = library_of("nccl-2.20"), library_of("gloo")
    check_topology(h100, nccl)
    nvls = (Algorithm.NVLS, Algorithm.NVLS_TREE)
    check_topology(h100.running(nvls), nccl)
    check_topology(replace(v100, algorithms=nvls), nccl)  # not restricted: of no concern
    with pytest.raises(InputError, match="no link of the topology has in_switch_reduction"):
        check_topology(v100.running(nvls), nccl)
    with pytest.raises(InputError, match="gloo runs only ring, binomial, scatter-gather"):
        check_topology(v100.running((Algorithm.TREE,)), gloo)
    fixed = ((Collective.BROADCAST, Algorithm.BINOMIAL),)
    check_topology(replace(v100, overrides=fixed), gloo)
    with pytest.raises(InputError, match=r"overrides\.broadcast binomial"):
        check_topology(replace(v100, overrides=fixed), nccl)


@pytest.mark.parametrize(
    ("preset", "collective", "algorithm", "rule"),
    [
        ("dgx-h100", Collective.BROADCAST, Algorithm.TREE, "runs broadcast only by ring"),
        ("dgx-h100", Collective.ALL_GATHER, Algorithm.NVLS_TREE, "only by ring, nvls, pat"),
        ("dgx2", Collective.ALL_REDUCE, Algorithm.NVLS, "no link of the topology has in_switch"),
        ("dgx-h100:1", Collective.ALL_REDUCE, Algorithm.NVLS_TREE, "runs only across nodes"),
        ("dgx-h100:1", Collective.ALL_GATHER, Algorithm.PAT, "where a node has one member"),
    ],
)
def test_what_is_named_for_a_collective_can_run_it_on_the_topology(
    preset: str, collective: Collective, algorithm: Algorithm, rule: str
) -> None:
    library = library_of("nccl-2.30")
    topology = replace(load_topology(preset), overrides=((collective, algorithm),))
    with pytest.raises(InputError, match=rule) as caught:
        check_topology(topology, library)
    assert f"overrides.{collective.value} {algorithm.value}" in str(caught.value)
    check_topology(
        replace(load_topology(preset), overrides=((collective, Algorithm.RING),)), library
    )


def test_what_is_named_for_all_can_run_something_on_the_topology() -> None:
    library, one = library_of("nccl-2.30"), load_topology("dgx-h100:1")
    check_topology(load_topology("dgx-h100:2").running((Algorithm.PAT,)), library)
    for algorithm, rule in (
        (Algorithm.NVLS_TREE, "runs only across nodes"),
        (Algorithm.PAT, "runs only where a node has one member of a group"),
    ):
        with pytest.raises(InputError, match=rule):
            check_topology(one.running((algorithm,)), library)


def test_counts_of_nodes() -> None:
    assert [NodeCount.ONE.holds(n) for n in (1, 2)] == [True, False]
    assert [NodeCount.SEVERAL.holds(n) for n in (1, 2)] == [False, True]
    assert [NodeCount.ANY.holds(n) for n in (1, 2)] == [True, True]


def test_a_choice_is_that_of_the_library_itself_not_of_its_name(own: Library) -> None:
    """Forgotten and registered anew under its name, a library chooses by its new rules."""
    footprint = explicit_footprint(load_topology("dgx-h100"), np.arange(16).reshape(1, 16))

    def chosen() -> str:
        h100 = load_topology("dgx-h100").under("mine")
        return step_model(h100, footprint, Collective.BROADCAST).time(2**20).algorithm

    register_library(own)
    assert chosen() == "binomial"
    ADDED.libraries.clear()
    rings = (LibraryRun(Algorithm.RING, ("simple",)),)
    register_library(replace(own, runs=tuple((dict(own.runs) | {"broadcast": rings}).items())))
    assert chosen() == "ring"


@pytest.mark.parametrize(
    ("library", "kept"), [("gloo", (("any", 0.9),)), ("nccl-2.30", (("any", 0.9), ("send", 0.2)))]
)
def test_what_operations_reach_under_a_library_without_a_choice_is_its_own(
    library: str, kept: tuple[tuple[str, float], ...]
) -> None:
    """Fitted to sends alone, it looks as a preset's does; which library it was says more."""
    one = load_topology("dgx-h100:2")
    link = replace(one.levels[0].link, efficiency=(("any", 0.9), ("send", 0.2)))
    levels = (replace(one.levels[0], link=link), one.levels[1])
    fitted = replace(one, levels=levels, library=library_of(library), calibrated=True)
    assert fitted.under("nccl-2.20").levels[0].link.efficiency == kept
    unknown = replace(fitted, library=known_or_named("not-registered"))
    assert unknown.under("nccl-2.20").levels[0].link.efficiency == (("any", 0.9), ("send", 0.2))
