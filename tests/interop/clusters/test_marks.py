"""Words of tools for places that they do not know: such hosts are left out, and counted."""

from __future__ import annotations

import json

import pytest

from p2smt.interop.clusters.facts import BLOCK_TIERS, Facts, OutsideFacts, is_nowhere
from p2smt.interop.clusters.kubernetes import read_kubernetes
from p2smt.interop.clusters.physical_hosts import read_physical_hosts
from p2smt.interop.clusters.slurm import read_scontrol, read_slurm_conf, read_slurm_yaml
from p2smt.interop.clusters.switch_tree import HostTree, blocks_of, tree_of

WORDS = (
    *("no-topology", "unknown", "Unknown", "default", "none", "<none>", "N/A", "null", "-"),
    "00000000-0000-0000-0000-000000000000",
    *("no_switch", "unknown-rack", "UnknownLeaf", "missing", "TBD", "not-known", "default-rack"),
)


def tree(facts: Facts) -> tuple[HostTree, str]:
    assert isinstance(facts.outside, OutsideFacts)
    make = blocks_of if facts.outside.tiers == BLOCK_TIERS else tree_of
    found, lost = make(facts.outside, "f")
    return found, "\n".join((*facts.lost, *lost))


def check(facts: Facts, levels: int = 1) -> None:
    """Four hosts under two leaves, and two that are nowhere."""
    found, said = tree(facts)
    assert (found.hosts, len(found.tiers)) == (("n1", "n2", "n3", "n4"), levels)
    assert found.left_out == {"m1": (), "m3": ()}
    assert "nothing says where 2 hosts are: they are left out (m1, m3)" in said


@pytest.mark.parametrize("word", ["no-topology", "unknown", "Unknown", "default", "none", "null"])
def test_in_a_slurm_tree(word: str) -> None:
    """Above, beside or below real switches."""
    leaves = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\n"
    mark = f"SwitchName={word} Nodes=m[1,3]\n"
    check(read_slurm_conf(leaves + mark, "f"))
    check(read_slurm_conf(f"SwitchName=s Switches=a,b\n{mark}{leaves}", "f"))
    check(read_slurm_conf(f"SwitchName=s Switches=a,b,{word}\n{mark}{leaves}", "f"))
    deep = f"SwitchName={word} Switches=c\nSwitchName=c Nodes=m[1,3]\n"
    check(read_slurm_conf(f"SwitchName=s Switches=a,b\n{deep}{leaves}", "f"))


@pytest.mark.parametrize("word", ["no-topology", "unknown", "default"])
def test_in_other_files_of_slurm(word: str) -> None:
    blocks = f"BlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n[3-4]\nBlockName={word} Nodes=m[1,3]\n"
    check(read_slurm_conf(blocks, "f"))
    lines = (("a", "n[1-2]"), ("b", "n[3-4]"), (word, "m[1,3]"))
    check(
        read_scontrol(
            "".join(f"SwitchName={s} Level=0 LinkSpeed=1 Nodes={n}\n" for s, n in lines), "f"
        )
    )
    switches = "".join(f"      - {{switch: {s}, nodes: '{n}'}}\n" for s, n in lines)
    check(read_slurm_yaml(f"- topology: t\n  tree:\n    switches:\n{switches}", "f"))


@pytest.mark.parametrize("word", [*WORDS, "", " "])
def test_in_labels(word: str) -> None:
    def node(name: str, *values: str) -> dict[str, object]:
        keys = ("network.topology.nvidia.com/spine", "network.topology.nvidia.com/leaf")
        return {"metadata": {"name": name, "labels": dict(zip(keys, values, strict=True))}}

    nodes = [node("n1", "s", "a"), node("n2", "s", "a"), node("m1", "s", word)]
    nodes += [node("n3", "s", "b"), node("n4", "s", "b"), node("m3", word, "a")]
    check(read_kubernetes(json.dumps({"items": nodes}), "f"))


def test_in_locations() -> None:
    hosts = "n1,/b/r/1\nn2,/b/r/2\nm1,/b/unknown/3\nn3,/b/q/4\nn4,/b/q/5\nm3,/no-topology/r/6\n"
    check(read_physical_hosts(hosts, "f"))


def test_a_mark_over_every_host_takes_nothing_away() -> None:
    """A root may be called so; and hosts that are all nowhere are under one switch."""
    root = "SwitchName=default Switches=a,b\nSwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\n"
    found, said = tree(read_slurm_conf(root, "f"))
    assert (found.hosts, found.tiers, found.left_out) == (("n1", "n2", "n3"), ("leaf",), {})
    assert "default is over everything" in said
    found, _ = tree(read_slurm_conf("SwitchName=no-topology Nodes=n[1-3]\n", "f"))
    assert (found.hosts, found.tiers) == (("n1", "n2", "n3"), ())


def test_a_host_that_also_has_a_place_keeps_it() -> None:
    text = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\nSwitchName=unknown Nodes=n2,m\n"
    found, _ = tree(read_slurm_conf(text, "f"))
    assert found.hosts == ("n1", "n2", "n3")
    assert found.left_out == {"m": ()}


@pytest.mark.parametrize(
    "name", ["leaf-unknown-1", "defaults", "nonesuch", "0", "s0", "n-a1", "rack"]
)
def test_names_that_only_look_alike(name: str) -> None:
    assert not is_nowhere(name)
