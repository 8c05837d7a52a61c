"""Topology files: every key is read, and every class of bad input is one clear line."""

from __future__ import annotations

import json

import pytest

from p2smt.cluster.file import (
    MAX_BYTES,
    dump_topology,
    parse_topology,
)
from p2smt.cluster.topology import ANY_ALGORITHM, Algorithm, LinkKind, Piece
from p2smt.collectives.names import Collective
from p2smt.errors import InputError
from tests.cluster.texts import GOOD, LIBRARY

OVERRIDES = (
    (Collective.BROADCAST, Algorithm.BINOMIAL),
    (Collective.REDUCE, Algorithm.SCATTER_GATHER),
)


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_reads_every_key() -> None:
    topology = parse_topology(GOOD, "small.yaml")
    node, gpu = (level.link for level in topology.levels)
    assert (topology.name, topology.sizes, topology.names) == ("small", (2, 8), ("node", "gpu"))
    assert topology.algorithms == ANY_ALGORITHM
    assert topology.overrides == ()
    assert (node.kind, node.ports) == (LinkKind.SWITCH, 4)
    assert node.pieces == (Piece("simple", 14e-6, 12.5e9),)
    assert gpu.device_bandwidth_bytes_per_s == 200e9
    assert gpu.in_switch_members == 5
    assert gpu.measured == ((Collective.ALL_REDUCE, (Piece("a", 9e-6, 90e9),)),)
    assert gpu.pieces == (Piece("simple", 3.4e-6, 300e9), Piece("ll", 600e-9, 87.7e9))


def test_reads_a_library_and_overrides() -> None:
    topology = parse_topology(GOOD + LIBRARY, "small.yaml")
    assert topology.algorithms == ANY_ALGORITHM
    assert topology.library_name == "gloo"
    assert topology.overrides == OVERRIDES
    dumped = dump_topology(topology)
    assert dumped["library"] == "gloo"
    assert dumped["overrides"] == {"broadcast": "binomial", "reduce": "scatter-gather"}


def test_a_mapping_under_library_holds_overrides_as_in_older_files() -> None:
    old = LIBRARY.replace("library: gloo\n", "").replace("overrides:", "library:")
    topology = parse_topology(GOOD + old, "small.yaml")
    assert (topology.library_name, topology.overrides) == ("", OVERRIDES)
    assert dump_topology(topology)["library"] == "none"
    with pytest.raises(InputError, match="keep overrides, and name a library"):
        parse_topology(GOOD + old + "overrides: {}\n", "small.yaml")


def test_no_library_is_written_as_none() -> None:
    bare = parse_topology(GOOD, "small.yaml")
    assert parse_topology(GOOD + "library: none\n", "small.yaml") == bare
    assert bare.library_name == ""
    assert dump_topology(bare)["library"] == "none"


MEASURED = """
library: nccl-2.20
best: true
calls: {all-reduce: 12 us, send: 3 us}
calibrated: true
"""


def test_reads_what_was_measured() -> None:
    link = "{kind: switch, ports: 4,"
    text = changed(link, link + " fabric: efa, efficiency: 0.8, hops: {ll: 5 us, any: 20 us},")
    topology = parse_topology(text + MEASURED, "small.yaml")
    assert (topology.library_name, topology.best, topology.calibrated) == ("nccl-2.20", True, True)
    assert topology.calls == (("all-reduce", 12e-6), ("send", 3e-6))
    node = topology.levels[0].link
    assert (node.fabric, node.efficiency, node.hops) == (
        "efa",
        (("any", 0.8),),
        (("ll", 5e-6), ("any", 20e-6)),
    )
    assert dump_topology(topology)["calls"] == {"all-reduce": "12 us", "send": "3 us"}
    written = dump_topology(topology)["levels"]
    assert isinstance(written, list)
    assert written[0]["link"]["efficiency"] == 0.8
    assert parse_topology(json.dumps(dump_topology(topology)), "again") == topology


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("fabric: nvlink-4", "fabric 'nvlink-4': must be one of nvlink1, "),
        ("efficiency: 1.2", "efficiency 1.2 of any: is a part of the bandwidth"),
        ("efficiency: {nvls: 0}", "efficiency 0.0 of nvls: is a part of the bandwidth"),
        ("efficiency: {nvsl: 0.5}", "efficiency of 'nvsl': must be one of any, ring"),
        ("efficiency: fast", "efficiency.any: value 'fast': is no part of a bandwidth"),
        ("hops: {ll: -5 us}", "hops.ll"),
        ("hops: 5", "hops.any"),
    ],
)
def test_bad_measured_values_are_one_line(keys: str, message: str) -> None:
    link = "{kind: switch, ports: 4,"
    with pytest.raises(InputError) as caught:
        parse_topology(changed(link, f"{link} {keys},"), "small.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("small.yaml: levels[0].link")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("library: NCCL 2", "library 'NCCL 2': is no name of a library"),
        ("calls: {allreduce: 3 us}", "calls ['allreduce']: name each of all-reduce"),
        ("calls: {send: -3 us}", "calls.send"),
        ("library: 3", "library: value '3': must be the name of a library"),
        ("library: {broadcast: fast}", "overrides.broadcast"),
        ("best: 1", "best 1"),
    ],
)
def test_bad_keys_of_the_library_are_one_line(keys: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_topology(f"{GOOD}{keys}\n", "small.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


BAD_QUANTITIES = {
    "bare number": "25",
    "bare fraction": "2.5",
    "quoted number": "'25'",
    "nan": ".nan",
    "inf": ".inf",
    "nan with unit": "nan GB/s",
    "negative": "-3 GB/s",
    "zero": "0 GB/s",
    "huge": "1e999 GB/s",
    "beyond all hardware": "4e18 B/s",
    "boolean": "true",
    "null in a list": "[25 GB/s]",
    "mapping": "{value: 25 GB/s}",
    "no rate": "25 GB",
    "time": "25 us",
    "empty": "''",
    "date": "2024-01-01",
}


@pytest.mark.parametrize("case", BAD_QUANTITIES)
def test_bad_bandwidths(case: str) -> None:
    text = changed("bandwidth: 100 Gb/s", f"bandwidth: {BAD_QUANTITIES[case]}")
    refused(text, "levels[0].link")


@pytest.mark.parametrize(
    "value", ["14", "14.0", ".nan", "-1 us", "2e6 s", "1e999 s", "yes", "14 GB", "''"]
)
def test_bad_latencies(value: str) -> None:
    refused(changed("latency: 14 us", f"latency: {value}"), "levels[0].link")


def refused(text: str, *parts: str) -> InputError:
    """``text`` is refused in one line that names the file, ``parts``, and a remedy."""
    with pytest.raises(InputError) as caught:
        parse_topology(text, "small.yaml")
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    assert message.startswith("small.yaml")
    assert caught.value.rule
    for part in parts:
        assert part in message
    return caught.value


BAD_FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "empty": ("", ("is empty",)),
    "only a comment": ("# nothing\n", ("is empty",)),
    "null": ("null", ("must be a mapping",)),
    "a list": ("[1, 2]", ("must be a mapping",)),
    "a word": ("azure", ("must be a mapping",)),
    "not yaml": ("name: [", ("not valid YAML", "line")),
    "tab": ("\tname: x", ("not valid YAML",)),
    "two documents": (GOOD + "---\n" + GOOD, ("not valid YAML",)),
    "control character": ("name: \x01", ("not valid YAML",)),
    "bad escape": ('name: "\\UFFFFFFFF"', ("not valid YAML",)),
    "half a surrogate": ('name: "\\ud800"', ("surrogate",)),
    "bad directive": (f"%YAML 1.{'9' * 5000}\n---\nname: x", ("not valid YAML",)),
    "duplicate key": (changed("size: 2", "size: 2\n    size: 4"), ("'size'", "twice", "line 5")),
    "duplicate top key": (GOOD + "name: again\n", ("'name'", "twice")),
    "key that is a list": ("[a, b]: c", ("key must be text",)),
    "alias": ("name: &x small\ndescription: *x", ("aliases", "line 1")),
    "alias bomb": (
        "a: &a [x, x]\n" + "".join(f"{c}: &{c} [*{p}, *{p}]\n" for p, c in ("ab", "bc", "cd")),
        ("aliases",),
    ),
    "merge key": ("<<: {name: x}\n" + GOOD, ("unknown key '<<'",)),
    "deep nesting": ("[" * 5000, ("nesting",)),
    "deep mapping": ("{a: " * 5000, ("nesting",)),
    "too long": ("#" * (MAX_BYTES + 1), ("longer than",)),
    "python tag": ("name: !!python/object/apply:os.getcwd []", ("tag",)),
    "binary tag": ("name: !!binary aGk=", ("tag",)),
    "set tag": ("!!set {name, levels}", ("tag",)),
    "bad int tag": ("name: !!int ''", ("must not be empty",)),
    "bad bool tag": ("name: !!bool maybe", ("tag",)),
    "unknown key": (GOOD + "levles: []\n", ("'levles'", "did you mean 'levels'", "sources")),
    "unknown key of a level": (
        changed("size: 2", "sise: 2"),
        ("'sise'", "levels[0]", "did you mean 'size'"),
    ),
    "unknown key of a link": (
        changed("ports: 4", "nics: 4"),
        ("'nics'", "levels[0].link", "the keys here are kind, ports", "remove it"),
    ),
    "unknown key of a piece": (
        changed("{name: ll,", "{name: ll, beta: 3,"),
        ("'beta'", "levels[1].link.protocols[1]", "name, latency, bandwidth"),
    ),
    "unknown key of a measured piece": (
        changed("{name: a,", "{name: a, beta: 3,"),
        ("'beta'", "all-reduce", "name, latency, bandwidth"),
    ),
    "missing name": (changed("name: small\n", ""), ("name", "missing")),
    "missing levels": ("name: x", ("levels", "missing")),
    "missing size": (changed("    size: 2\n", ""), ("levels[0].size", "missing")),
    "missing kind": (changed("kind: switch, ports", "ports"), ("levels[0].link.kind", "missing")),
    "missing latency": (
        changed(", latency: 14 us", ""),
        ("levels[0].link", "both bandwidth and latency", "latency: 14 us"),
    ),
    "missing bandwidth": (changed("bandwidth: 100 Gb/s, ", ""), ("both bandwidth and latency",)),
    "neither": (changed(", bandwidth: 100 Gb/s, latency: 14 us", ""), ("both bandwidth",)),
    "both": (
        changed("latency: 14 us", "protocols: [{name: a, latency: 1 us, bandwidth: 1 GB/s}]"),
        ("beside protocols", "keep one"),
    ),
    "no protocols": (
        changed("bandwidth: 100 Gb/s, latency: 14 us", "protocols: []"),
        ("levels[0].link", "at least one"),
    ),
    "protocol twice": (changed("name: ll", "name: simple"), ("levels[1].link", "used twice")),
    "empty name": (changed("name: small", "name: ''"), ("name", "must not be empty")),
    "name is a number": (changed("name: small", "name: 5"), ("name 5", "must be text", "quotes")),
    "level name": (changed("name: node", "name: Node"), ("levels[0]", "lower-case")),
    "reserved level name": (changed("name: node", "name: root"), ("levels[0]", "root")),
    "level name twice": (changed("name: gpu", "name: node"), ("twice",)),
    "size zero": (changed("size: 2", "size: 0"), ("levels[0]", "size must be 1 to")),
    "size negative": (changed("size: 2", "size: -2"), ("levels[0]", "size must be 1 to")),
    "size huge": (changed("size: 2", "size: 99999999"), ("levels[0]", "size must be 1 to")),
    "size gigantic": (
        changed("size: 2", "size: " + "9" * 5000),
        ("levels[0].size", "whole number"),
    ),
    "size boolean": (changed("size: 2", "size: true"), ("levels[0].size True", "whole number")),
    "size quoted": (changed("size: 2", "size: '2'"), ("levels[0].size '2'", "whole number")),
    "size fraction": (changed("size: 2", "size: 2.0"), ("levels[0].size", "whole number")),
    "size nan": (changed("size: 2", "size: .nan"), ("levels[0].size", "whole number")),
    "size null": (changed("size: 2", "size:"), ("levels[0].size None", "whole number")),
    "size octal": (changed("size: 2", "size: 010"), ("levels[0].size", "whole number")),
    "too many devices": (changed("size: 8", "size: 1048576"), ("devices", "at most")),
    "ports zero": (changed("ports: 4", "ports: 0"), ("levels[0].link", "ports 0", "at least 1")),
    "ports boolean": (changed("ports: 4", "ports: yes"), ("levels[0].link.ports",)),
    "ports that do not divide": (changed("ports: 4", "ports: 3"), ("node", "spread evenly")),
    "unknown kind": (
        changed("kind: switch, ports", "kind: swich, ports"),
        ("levels[0].link.kind 'swich'", "full-mesh", "did you mean 'switch'"),
    ),
    "ports on a ring": (changed("kind: switch, ports", "kind: ring, ports"), ("only a switch",)),
    "torus without dims": (changed("kind: switch, ports: 4", "kind: torus"), ("dims",)),
    "dims that do not multiply": (
        changed("kind: switch, ports: 4", "kind: torus, dims: [3, 4]"),
        ("levels[0]", "multiply"),
    ),
    "dims of text": (
        changed("kind: switch, ports: 4", "kind: torus, dims: [a]"),
        ("levels[0].link.dims[0] 'a'", "whole number"),
    ),
    "in-switch of one": (changed("min_members: 5", "min_members: 1"), ("levels[1].link", "2")),
    "in-switch as a number": (
        changed("in_switch_reduction: {min_members: 5}", "in_switch_reduction: 5"),
        ("levels[1].link.in_switch_reduction", "must be a mapping"),
    ),
    "unknown measured": (
        changed("all-reduce:", "allreduce:"),
        ("levels[1].link.measured.allreduce", "did you mean 'all-reduce'"),
    ),
    "nothing measured": (
        changed("[{name: a, latency: 9 us, bandwidth: 90 GB/s}]", "[]"),
        ("levels[1].link", "at least one"),
    ),
    "unknown algorithm": (
        GOOD + "algorithms: [ring, treee]\n",
        ("algorithms[1] 'treee'", "in-switch", "did you mean 'tree'"),
    ),
    "no algorithms": (GOOD + "algorithms: []\n", ("algorithms", "at least one")),
    "algorithms is a word": (GOOD + "algorithms: ring\n", ("algorithms 'ring'", "must be a list")),
    "unknown collective of the library": (
        GOOD + LIBRARY.replace("broadcast", "brodcast"),
        ("overrides.brodcast", "did you mean 'broadcast'"),
    ),
    "a request in the library": (
        GOOD + "library: {all-to-all: ring}\n",
        ("overrides.all-to-all", "all-gather"),
    ),
    "unknown algorithm of the library": (
        GOOD + LIBRARY.replace("binomial", "binomal"),
        ("overrides.broadcast 'binomal'", "did you mean 'binomial'"),
    ),
    "library twice": (
        GOOD + LIBRARY + "  broadcast: ring\n",
        ("'broadcast'", "twice", "line"),
    ),
    "library is a list": (GOOD + "library: [binomial]\n", ("library", "name of a library")),
    "several algorithms in the library": (
        GOOD + "library: {broadcast: [ring, tree]}\n",
        ("overrides.broadcast",),
    ),
    "no levels": ("name: x\nlevels: []", ("0 levels",)),
    "levels is a mapping": ("name: x\nlevels: {a: b}", ("levels", "must be a list")),
    "level is a word": ("name: x\nlevels: [node]", ("levels[0]", "must be a mapping")),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files(case: str) -> None:
    text, parts = BAD_FILES[case]
    refused(text, *parts)


def test_a_bare_number_is_told_about_units() -> None:
    error = refused(changed("bandwidth: 100 Gb/s", "bandwidth: 100"), "link.bandwidth", "100")
    assert "unit" in error.rule
    assert "GB/s" in error.remedy
