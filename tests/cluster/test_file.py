"""Topology files: every class of bad input is one clear line; presets and round trips."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.file import (
    dump_topology,
    load_topology,
    parse_topology,
    preset_names,
    topology_from_data,
)
from p2smt.cluster.topology import ANY_ALGORITHM, Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective
from p2smt.errors import InputError
from p2smt.files.yaml_text import MAX_BYTES

STEADY = settings(derandomize=True, deadline=None)

GOOD = """\
name: small
levels:
  - name: node
    size: 2
    link: {kind: switch, ports: 4, bandwidth: 100 Gb/s, latency: 14 us}
  - name: gpu
    size: 8
    link:
      kind: switch
      device_bandwidth: 200 GB/s
      in_switch_reduction: {min_members: 5}
      measured:
        all-reduce: [{name: a, latency: 9 us, bandwidth: 90 GB/s}]
      protocols:
        - {name: simple, latency: 3.4 us, bandwidth: 300 GB/s}
        - {name: ll, latency: 600 ns, bandwidth: 87.7 GB/s}
"""

LIBRARY = """\
library:
  broadcast: binomial
  reduce: scatter-gather
"""


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_reads_every_key() -> None:
    topology = parse_topology(GOOD, "small.yaml")
    node, gpu = (level.link for level in topology.levels)
    assert (topology.name, topology.sizes, topology.names) == ("small", (2, 8), ("node", "gpu"))
    assert topology.algorithms == ANY_ALGORITHM
    assert topology.library == ()
    assert (node.kind, node.ports) == (LinkKind.SWITCH, 4)
    assert node.pieces == (Piece("simple", 14e-6, 12.5e9),)
    assert gpu.device_bandwidth_bytes_per_s == 200e9
    assert gpu.in_switch_members == 5
    assert gpu.measured == ((Collective.ALL_REDUCE, (Piece("a", 9e-6, 90e9),)),)
    assert gpu.pieces == (Piece("simple", 3.4e-6, 300e9), Piece("ll", 600e-9, 87.7e9))


def test_reads_the_library() -> None:
    topology = parse_topology(GOOD + LIBRARY, "small.yaml")
    assert topology.algorithms == ANY_ALGORITHM
    assert topology.library == (
        (Collective.BROADCAST, Algorithm.BINOMIAL),
        (Collective.REDUCE, Algorithm.SCATTER_GATHER),
    )
    dumped = dump_topology(topology)
    assert dumped["library"] == {"broadcast": "binomial", "reduce": "scatter-gather"}
    assert "library" not in dump_topology(parse_topology(GOOD, "small.yaml"))


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
        ("library.brodcast", "did you mean 'broadcast'"),
    ),
    "a request in the library": (
        GOOD + "library: {all-to-all: ring}\n",
        ("library.all-to-all", "all-gather"),
    ),
    "unknown algorithm of the library": (
        GOOD + LIBRARY.replace("binomial", "binomal"),
        ("library.broadcast 'binomal'", "did you mean 'binomial'"),
    ),
    "library twice": (
        GOOD + LIBRARY + "  broadcast: ring\n",
        ("'broadcast'", "twice", "line"),
    ),
    "library is a list": (GOOD + "library: [binomial]\n", ("library", "must be a mapping")),
    "several algorithms in the library": (
        GOOD + "library: {broadcast: [ring, tree]}\n",
        ("library.broadcast",),
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


@pytest.mark.parametrize(
    "value",
    ["", "1", "\x00", "a" * 5000, "::", ":4", "azure-ndv4:", "azure-ndv9", "no such", "../"],
)
def test_bad_specs(value: str) -> None:
    with pytest.raises(InputError) as caught:
        load_topology(value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_unknown_presets_get_a_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean 'azure-ndv4'"):
        load_topology("azure-nd-v4")


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "x", "two", "9" * 30, "2:2", " "])
def test_bad_node_counts(count: str) -> None:
    with pytest.raises(InputError, match="azure-ndv4"):
        load_topology(f"azure-ndv4:{count}")


def test_too_many_nodes() -> None:
    with pytest.raises(InputError, match="devices"):
        load_topology("azure-ndv4:1000000")


BAD_PATHS: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(missing_ok=True),
    "directory": lambda path: path.mkdir(),
    "binary": lambda path: path.write_bytes(b"\x80\x81\xff\x00"),
    "utf-16": lambda path: path.write_bytes("name: x".encode("utf-16")),
    "too large": lambda path: path.write_bytes(b"#" * (MAX_BYTES + 1)),
    "empty": lambda path: path.write_bytes(b""),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize("case", BAD_PATHS)
def test_bad_paths(case: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    BAD_PATHS[case](path)
    for spec in (str(path), f"{path}:4"):
        with pytest.raises(InputError, match=r"cluster\.yaml") as caught:
            load_topology(spec)
        assert caught.value.remedy


def test_special_files_are_refused() -> None:
    with pytest.raises(InputError, match="regular file"):
        load_topology("/dev/zero")


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(GOOD)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(InputError, match="Permission denied"):
        load_topology(str(path))


def test_files_and_node_counts(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(GOOD)
    assert load_topology(str(path)).sizes == (2, 8)
    assert load_topology(f"{path}:5").sizes == (5, 8)
    odd = tmp_path / "a:3"
    odd.write_text(GOOD)
    assert load_topology(str(odd)).sizes == (2, 8)


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
SWITCHES = st.builds(
    Link,
    st.just(LinkKind.SWITCH),
    PIECES,
    ports=st.sampled_from([1, 2, 4]),
    device_bandwidth_bytes_per_s=st.none() | RATES,
    in_switch_members=st.sampled_from([0, 2, 5]),
    measured=MEASURED,
)
MESHES = st.builds(
    Link, st.sampled_from([LinkKind.RING, LinkKind.FULL_MESH]), PIECES, measured=MEASURED
)
TORI = st.builds(Link, st.just(LinkKind.TORUS), PIECES, torus=st.just((2, 4)), measured=MEASURED)
LEVELS = st.lists(
    st.builds(Level, NAMES, st.just(8), SWITCHES | MESHES | TORI),
    min_size=1,
    max_size=4,
    unique_by=lambda level: level.name,
).map(tuple)


@STEADY
@given(
    st.builds(
        Topology,
        TEXTS.filter(bool),
        LEVELS,
        algorithms=st.permutations(list(Algorithm)).map(lambda found: tuple(found[:3])),
        description=TEXTS,
        sources=st.lists(TEXTS, max_size=2).map(tuple),
        library=st.dictionaries(st.sampled_from(Collective), st.sampled_from(Algorithm)).map(
            lambda found: tuple(found.items())
        ),
    )
)
def test_every_topology_reads_back(topology: Topology) -> None:
    check_reads_back(topology)


@STEADY
@given(st.text(max_size=200) | st.text("{}[]:,-#&*!|>'\"%@`?\n \tab0.~<=", max_size=100))
def test_no_text_gives_anything_but_an_input_error(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_topology(text, "fuzz")
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "levels", "size", "link", "kind"]), inner)
    ),
)


@STEADY
@given(JSON)
def test_no_data_gives_anything_but_an_input_error(data: object) -> None:
    with pytest.raises(InputError):
        topology_from_data(data, "fuzz")
