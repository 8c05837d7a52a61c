"""Whatever is in a file: a topology, or one clear line; in bounded time and memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology, parse_topology
from p2smt.cluster.hosts import Hosts
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.files.yaml_text import dump_yaml, parts_of
from p2smt.interop.clusters.combine import ImportOptions, combined
from p2smt.interop.clusters.facts import Facts
from p2smt.interop.clusters.kubernetes import read_kubernetes
from p2smt.interop.clusters.physical_hosts import read_physical_hosts
from p2smt.interop.clusters.read import formats, import_text
from p2smt.interop.clusters.slurm import read_scontrol, read_slurm_conf, read_slurm_yaml
from tests.interop.clusters.texts import EVERY
from tests.strategies.json_values import json_values
from tests.tiers import examples_of

OPTIONS = ImportOptions(node="dgx-h100")
READERS: dict[str, Callable[[str, str], Facts]] = {
    "tree.conf": read_slurm_conf,
    "deep.conf": read_slurm_conf,
    "twice.conf": read_slurm_conf,
    "blocks.conf": read_slurm_conf,
    "topology.yaml": read_slurm_yaml,
    "scontrol.txt": read_scontrol,
    "scontrol_blocks.txt": read_scontrol,
    "gcloud.csv": read_physical_hosts,
    "instances.json": read_physical_hosts,
    "nodes.json": read_kubernetes,
}
WORDS = st.sampled_from(
    (
        *("SwitchName=", "Nodes=", "Switches=", "BlockName=", "n[1-9]", "[", "]", "-", ",", "="),
        *(" ", "#", "\n", "\\\n", '"', "{", "}", "/a/b/c", ":", "null", "[]", "99999999"),
        *("\x00", "é", "leaf0"),
    )
)


def outcome(read: Callable[[str, str], Facts], text: str) -> bool:
    """Whether a text becomes a topology that can be written; else it is refused in one line."""
    refused = ""
    lost: tuple[str, ...] = ()
    try:
        found, lost = combined([read(text, "f")], OPTIONS)
        import_text(found)
    except InputError as error:
        refused = str(error)
    assert all("\n" not in line and len(line) < 2000 for line in (refused, *lost))
    return not refused


@st.composite
def edited(draw: st.DrawFn, text: str) -> str:
    """A text with some parts dropped, doubled, replaced or cut off."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        kind = draw(st.sampled_from(["drop", "double", "word", "cut", "move"]))
        piece = text[start:end]
        if kind == "cut":
            text = text[:start]
        elif kind == "move":
            at = draw(st.integers(0, len(text)))
            text = text[:at] + piece + text[at:]
        else:
            new = {"drop": "", "double": piece * 2, "word": draw(WORDS)}[kind]
            text = text[:start] + new + text[end:]
    return text


def test_the_files_themselves_are_read() -> None:
    assert all(outcome(READERS[name], text) for name, text in EVERY.items())


@pytest.mark.parametrize("name", EVERY)
def test_edited_files(name: str) -> None:
    @settings(max_examples=examples_of(200), deadline=None)
    @given(edited(EVERY[name]))
    def check(text: str) -> None:
        outcome(READERS[name], text)

    check()


@settings(max_examples=examples_of(200))
@given(st.text() | st.lists(WORDS).map("".join), st.sampled_from(sorted(set(READERS))))
def test_arbitrary_text(text: str, name: str) -> None:
    outcome(READERS[name], text)
    for one in formats(OPTIONS):
        one.recognises(text)


JSON = json_values(
    *("items", "metadata", "name", "labels", "status", "capacity", "nvidia.com/gpu"),
    *("resourceStatus", "physicalHost", "physicalHostTopology", "rack", "block"),
)


@settings(max_examples=examples_of(200))
@given(JSON)
def test_arbitrary_json(data: object) -> None:
    for text in (json.dumps(data), json.dumps({"items": data}), json.dumps({"items": [data]})):
        outcome(read_kubernetes, text)
        outcome(read_physical_hosts, text)
        outcome(read_slurm_yaml, text)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_kubernetes, '{"items": [' + "{}," * 2**22 + "{}]}"),
        (read_slurm_conf, "SwitchName=s Nodes=n[1-999999999]"),
        (read_slurm_conf, f"SwitchName=s Nodes={'n' * 100_000}[1-100000]"),
        (read_slurm_conf, "SwitchName=s Nodes=" + "[1-9]" * 100_000),
        (read_slurm_conf, "\n".join(f"SwitchName=s{i} Switches=s{i + 1}" for i in range(30_000))),
        (read_slurm_conf, "SwitchName=s Nodes=" + ",".join(["n1"] * 100_000)),
        (read_slurm_conf, " " * 1_000_000 + "x"),
        (read_slurm_conf, "\\\n" * 300_000),
        (read_slurm_conf, "a=" * 500_000),
        (read_scontrol, "SwitchName=s Level=" + "9" * 1_000_000),
        (read_slurm_yaml, "- " * 100_000),
        (read_slurm_yaml, "- topology: t\n  tree: " + "{a: " * 10_000),
        (read_kubernetes, '{"items": [' + "[" * 200_000),
        (read_kubernetes, json.dumps({"items": [0] * 300_000})),
        (read_physical_hosts, "a /" + "b/" * 500_000),
        (read_physical_hosts, "a b\n" * 300_000),
        (read_physical_hosts, "/" * 1_000_000),
    ],
)
def test_hostile_sizes_are_refused_soon(read: Callable[[str, str], Facts], text: str) -> None:
    assert not outcome(read, text)
    for one in formats(OPTIONS):
        one.recognises(text)


def test_more_hosts_than_there_are_places_are_refused_before_a_tree_is_made() -> None:
    facts = read_slurm_conf("SwitchName=a Nodes=n[1-131072]\nSwitchName=b Nodes=m", "f")
    message = "131073 hosts of 8 devices: are more than 1048576 devices; .* --hosts FILE"
    with pytest.raises(InputError, match=message):
        combined([facts], ImportOptions(node="dgx-h100"))
    found, _ = combined([facts], ImportOptions(node="dgx-h100", only=("n7", "m")))
    assert found.sizes == (2, 1, 8)


@pytest.mark.exhaustive
@pytest.mark.parametrize("count", [1000, 125_000])
def test_what_could_not_be_read_again_is_not_written(count: int) -> None:
    node = load_topology("dgx-h100").levels[0]
    names = tuple(f"n{i}" for i in range(count))
    hosts = Hosts(names, tuple(range(count)), (tuple(f"s{i}" for i in range(count)),))
    levels = (replace(node, name="leaf", size=count), replace(node, size=1))
    topology = Topology("wide", levels, hosts=hosts)
    if count == 1000:
        assert parse_topology(import_text(topology), "again") == topology
        return
    with pytest.raises(InputError, match=r"file of \d+ parts: would not be read again: at most"):
        import_text(topology)


@given(
    st.recursive(
        st.integers() | st.text("ab"), lambda x: st.lists(x) | st.dictionaries(st.text("ab"), x)
    )
)
def test_parts_are_those_that_the_reader_counts(data: object) -> None:
    def counted(node: yaml.Node) -> int:
        inside = node.value if isinstance(node, yaml.CollectionNode) else []
        pairs = isinstance(node, yaml.MappingNode)
        return 1 + sum(
            map(counted, [part for pair in inside for part in pair] if pairs else inside)
        )

    node = yaml.compose(dump_yaml({"k": data}), Loader=yaml.SafeLoader)
    assert node is not None
    assert parts_of({"k": data}) == counted(node)
