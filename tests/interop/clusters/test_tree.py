"""What holds hosts as a tree: what is refused, what is left out, and what is filled in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.interop.clusters.facts import BLOCK_TIERS, Holder, OutsideFacts
from p2smt.interop.clusters.switch_tree import HostTree, tree_of


def made(*holders: Holder, loose: tuple[str, ...] = ()) -> tuple[HostTree, str]:
    """The tree of some holders, and what is said of it."""
    tree, lost = tree_of(OutsideFacts(holders, loose), "f")
    return tree, "\n".join(lost)


def test_a_host_under_two_switches_is_left_out() -> None:
    tree, lost = made(Holder("a", (), ("x", "y")), Holder("b", (), ("y", "z")))
    assert (tree.hosts, tree.left_out) == (("x", "z"), {"y": ("a", "b")})
    assert "host y is under a and b: it is left out" in lost


def test_many_of_them_are_said_shortly() -> None:
    hosts = tuple(f"n{i}" for i in range(1000))
    tree, lost = made(Holder("a", (), hosts), Holder("b", (), (*hosts, "m")))
    assert tuple(tree.left_out) == hosts
    assert "n3, n4, n5 and 994 more are under several switches too" in lost
    assert len(lost) < 1000


def test_several_roots_get_one_over_them() -> None:
    tree, lost = made(Holder("a", (), ("x",)), Holder("b", (), ("y",)))
    assert (tree.tiers, tree.paths) == (("leaf",), (("a",), ("b",)))
    assert "nothing is over a, b: one switch joins them" in lost


def test_what_is_over_everything_is_no_level() -> None:
    tree, lost = made(
        Holder("r", ("m",)),
        Holder("m", ("a", "b")),
        Holder("a", (), ("x",)),
        Holder(
            "b",
            (),
            (
                "y",
                "z",
            ),
        ),
    )
    assert (tree.tiers, tree.paths) == (("leaf",), (("a",), ("b",), ("b",)))
    assert "r, m are over everything" in lost
    only, _ = made(Holder("a", (), ("x", "y")))
    assert (only.tiers, only.paths) == ((), ((), ()))


def test_missing_switches_pass_everything_through() -> None:
    tree, lost = made(
        Holder("r", ("a", "s")), Holder("s", ("b", "c")), Holder("a", (), ("x",)),
        Holder("b", (), ("y",)), Holder("c", (), ("z",)),
    )  # fmt: skip
    assert tree.tiers == ("spine", "leaf")
    assert tree.paths == (("a-as-spine", "a"), ("s", "b"), ("s", "c"))
    assert "a have fewer switches over them" in lost


def test_levels_are_named_from_the_nodes_outwards() -> None:
    names = "tuvwx"
    chains = [
        Holder(f"{side}{name}", (f"{side}{under}",))
        for side in "ab"
        for name, under in pairwise(names)
    ]
    ends = [Holder(f"{side}{names[-1]}", (), (side,)) for side in "ab"]
    tree, _ = made(*chains, *ends)
    assert tree.tiers == ("tier5", "tier4", "core", "spine", "leaf")
    blocks, _ = tree_of(OutsideFacts(tuple(ends), tiers=BLOCK_TIERS), "f")
    assert blocks.tiers == ("block",)


def test_a_switch_under_two_keeps_the_first() -> None:
    tree, lost = made(
        Holder("s", ("a", "b")), Holder("t", ("b", "c")),
        *(Holder(name, (), (f"n{name}",)) for name in "abc"),
    )  # fmt: skip
    assert dict(zip(tree.hosts, tree.paths, strict=True))["nb"] == ("s", "b")
    assert "b is under s and t: s is taken" in lost


def test_hosts_that_nothing_holds() -> None:
    tree, lost = made(Holder("a", (), ("x",)), loose=("y", "x", "y"))
    assert (tree.hosts, tree.left_out) == (("x",), {"y": ()})
    assert "nothing says where y is" in lost
    flat, _ = made(loose=("x", "y"))
    assert (flat.tiers, flat.hosts, flat.paths, flat.left_out) == ((), ("x", "y"), ((), ()), {})


@pytest.mark.parametrize(
    ("holders", "message"),
    [
        ((Holder("a", (), ("x",), 1), Holder("a", (), ("y",), 7)), "line 7: 'a': is named twice"),
        ((Holder("s", ("a",), (), 3),), "f, line 3: 'a' under 's': is described nowhere"),
        ((Holder("a", (), ("x", "y", "x")),), "host 'x': is named twice under a"),
        ((Holder("a", ("b",), ("x",)), Holder("b")), "'a': has switches and hosts under it"),
        ((Holder("a", ("a",)),), "f: a > a: form a cycle"),
        ((Holder("a", ("b",)), Holder("b", ("a",)), Holder("c", (), ("x",))), "a > b > a: form a"),
        ((Holder("a"), Holder("b")), "leaves no host in one certain place"),
        ((Holder("a", (), ("x",)), Holder("b", (), ("x",))), "leaves no host in one certain place"),
        ((Holder("", (), ("x",)),), "a switch with an odd name, or without"),
        ((Holder("a\n", (), ("x",)),), "a switch with an odd name, or without"),
        (
            (Holder("a", (), ("x",)), Holder("a-as-spine", ("b",)), Holder("b", (), ("y",))),
            "'a-as-spine': has the name of one that is filled in",
        ),
        (
            (*(Holder(f"s{i}", (f"s{i + 1}",)) for i in range(30)), Holder("s30", (), ("x",))),
            "'s30': has more than 19 switches over it",
        ),
    ],
)  # fmt: skip
def test_what_is_no_tree(holders: tuple[Holder, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(*holders)


def test_a_long_chain_takes_no_longer_than_it_is() -> None:
    chain = [Holder(f"s{i}", (f"s{i + 1}",)) for i in range(50_000)]
    with pytest.raises(InputError, match="has more than 19 switches"):
        made(*chain, Holder("s50000", (), ("x",)))
    with pytest.raises(InputError, match=r"form a cycle"):
        made(*chain, Holder("s50000", ("s0",)))


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=12))
def test_hosts_stay_under_what_holds_them(drawn: list[list[int]]) -> None:
    """Each host has its path, without what is over all, and padded at the leaf."""
    depth = max(map(len, drawn))
    paths = {f"n{i}": tuple("/".join(map(str, path[:j])) for j in range(1, len(path) + 1))
             for i, path in enumerate(drawn)}  # fmt: skip
    inner = {path[j - 1] for path in paths.values() for j in range(1, len(path))}
    holders = [
        Holder(
            name,
            tuple(sorted({b for p in paths.values() for a, b in pairwise(p) if a == name})),
            tuple(host for host, path in paths.items() if path[-1] == name),
        )
        for name in sorted({name for path in paths.values() for name in path})
    ]  # fmt: skip
    if any(path[-1] in inner for path in paths.values()):
        with pytest.raises(InputError, match="has switches and hosts under it"):
            made(*holders)
        return
    tree, _ = made(*holders)
    for host, path in zip(tree.hosts, tree.paths, strict=True):
        real = tuple(name for name in path if "-as-" not in name)
        assert real == paths[host][len(paths[host]) - len(real) :]
        assert len(path) == len(tree.tiers) <= depth
    assert sorted(tree.hosts) == sorted(paths)
    tops = {path[0] for path in tree.paths if path}
    assert len(tops) != 1
