"""What a topology says for use under a library: fabrics, efficiencies, hops, calls, and nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from p2smt.cluster.error_class import Basis, ErrorClass
from p2smt.cluster.library.model import Library
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective
from p2smt.errors import InputError

PIECE = Piece("simple", 14e-6, 25e9)
SWITCH = Link(LinkKind.SWITCH, (PIECE,))


def cluster(*fabrics: str) -> Topology:
    levels = (Level(f"l{j}", 2, replace(SWITCH, fabric=f)) for j, f in enumerate(fabrics))
    return Topology("t", tuple(levels))


@pytest.mark.parametrize(
    ("fabrics", "level"),
    [
        (("infiniband", "nvlink4"), 0),
        (("infiniband", "infiniband", "nvlink4"), 1),
        (("infiniband", "pcie", "nvlink2"), 0),
        (("ethernet", "ethernet"), 1),
        (("nvlink4",), -1),
        (("pcie", "nvlink2"), -1),
        (("",), -1),
        (("", ""), 0),
        (("", "", ""), 0),
        (("", "nvlink4"), -1),
    ],
)
def test_nodes_are_what_the_innermost_network_joins(fabrics: tuple[str, ...], level: int) -> None:
    assert cluster(*fabrics).node_level == level


def test_devices_under_a_node() -> None:
    found = cluster("infiniband", "nvlink4")
    assert found.devices_under(found.node_level) == 2
    alone = cluster("nvlink4", "nvlink4")
    assert alone.devices_under(alone.node_level) == alone.devices == 4


def test_an_efficiency_is_that_of_the_first_name_that_has_one() -> None:
    link = replace(SWITCH, efficiency=(("any", 0.8), ("nvls", 0.7)))
    assert link.efficiency_of("nvls") == 0.7
    assert link.efficiency_of("ring") == 0.8
    assert link.efficiency_of("nvls-tree", "nvls") == 0.7
    assert SWITCH.efficiency_of("ring") == 1.0


def test_a_hop_is_that_of_the_protocol_or_of_any() -> None:
    link = replace(SWITCH, hops=(("ll", 1e-6), ("any", 3e-6)))
    assert (link.hop_of("ll"), link.hop_of("simple")) == (1e-6, 3e-6)
    assert replace(SWITCH, hops=(("ll", 1e-6),)).hop_of("simple") is None


MEASURED = replace(SWITCH, measured=((Collective.REDUCE, (PIECE,)),), fabric="efa")


def test_nominal_keeps_the_hardware_alone() -> None:
    link = replace(MEASURED, efficiency=(("any", 0.8),), hops=(("ll", 1e-6),))
    found = Topology(
        "t",
        (Level("node", 2, link),),
        library=library_of("nccl-2.20"),
        best=True,
        calls=(("send", 1e-6),),
        calibrated=True,
    )
    level = Level("node", 2, replace(SWITCH, fabric="efa"))
    assert found.nominal() == Topology("t", (level,))
    assert not found.nominal().fitted


@pytest.mark.parametrize(
    "found",
    [
        Topology("t", (Level("node", 2, MEASURED),)),
        Topology("t", (Level("node", 2, replace(SWITCH, hops=(("ll", 1e-6),))),)),
        Topology("t", (Level("node", 2, SWITCH),), calls=(("send", 1e-6),)),
        Topology("t", (Level("node", 2, SWITCH),), calibrated=True),
    ],
)
def test_what_was_measured_here_is_known_as_fitted(found: Topology) -> None:
    assert found.fitted


def test_published_efficiencies_are_not_fitted() -> None:
    link = replace(SWITCH, efficiency=(("any", 0.8),))
    assert not Topology("t", (Level("node", 2, link),), library=library_of("gloo")).fitted


def test_constants_fitted_under_a_library_are_not_another_ones() -> None:
    """What algorithms reach of a link stays, as a preset's does; what operations do is Gloo's."""
    parts = (("ring", 0.8), ("reduce-scatter", 0.4))
    link = replace(SWITCH, efficiency=parts, hops=(("ring-simple", 1e-3),))
    calls = (("send", 1e-6),)
    found = Topology(
        "t", (Level("node", 2, link),), library=library_of("gloo"), calls=calls, calibrated=True
    )
    other = found.under("rccl")
    assert (other.calls, other.levels[0].link.hops) == ((), ())
    assert other.levels[0].link.efficiency == (("ring", 0.8),)
    assert found.under("gloo") == found
    assert found.under("none").calls == calls
    by_hand = replace(found, calibrated=False)
    assert by_hand.under("rccl") == replace(by_hand, library=library_of("rccl"))


def test_what_presets_say_of_all_to_all_stays_as_what_algorithms_reach_does() -> None:
    """NCCL's constants are fitted by algorithm: an all-to-all's is no collective's of its own."""
    parts = (("any", 0.9), ("all-to-all", 0.448), ("send", 0.8))
    link = replace(SWITCH, efficiency=parts, hops=(("ring-simple", 1e-3),))
    found = Topology(
        "t", (Level("node", 2, link),), library=library_of("nccl-2.30"), calibrated=True
    )
    other = found.under("nccl-2.12").levels[0].link
    assert (other.efficiency, other.hops) == (parts, ())
    by_operation = replace(link, hops=(("all-to-all-simple", 1e-3),))
    gloo = replace(found, library=library_of("gloo"), levels=(Level("node", 2, by_operation),))
    assert gloo.under("nccl-2.12").levels[0].link.efficiency == (("any", 0.9),)


@pytest.mark.parametrize(
    ("link", "calls"),
    [
        (SWITCH, (("send", 1e-6),)),
        (replace(SWITCH, hops=(("ring-simple", 1e-3),)), ()),
        (replace(SWITCH, efficiency=(("reduce-scatter", 0.4),)), ()),
    ],
)
def test_constants_of_a_library_that_is_no_longer_named_are_not_another_ones(
    link: Link, calls: tuple[tuple[str, float], ...]
) -> None:
    """By way of ``none`` they come from a library as well, whichever it was."""
    level = Level("node", 2, link)
    found = Topology("t", (level,), library=library_of("nccl-2.20"), calls=calls, calibrated=True)
    by_way = found.under("none")
    assert by_way.fitted_for_other("rccl")
    other = by_way.under("rccl")
    assert (other.library_name, other.calls, other.levels) == (
        "rccl",
        (),
        (Level("node", 2, SWITCH),),
    )
    by_hand = replace(by_way, calibrated=False)
    assert by_hand.under("rccl") == replace(by_hand, library=library_of("rccl"))


def test_links_fitted_without_a_library_are_any_ones() -> None:
    found = replace(cluster("efa"), calibrated=True)
    assert found.under("rccl") == replace(found, library=library_of("rccl"))


def test_under_another_library() -> None:
    found = cluster("efa").under("rccl")
    assert (found.library_name, found.under("none"), found.under("")) == (
        "rccl",
        cluster("efa"),
        cluster("efa"),
    )
    assert found.cheapest() == replace(found, best=True)


SEND = ErrorClass("send", 0.1, Basis.IN_SAMPLE)
BAD: dict[str, Callable[[], object]] = {
    "errors of 'gpu'": lambda: Topology("t", (Level("node", 2, SWITCH),), errors=(("gpu", SEND),)),
    "error -0.1": lambda: replace(SEND, error=-0.1),
    "error nan": lambda: replace(SEND, error=float("nan")),
    "operation 'allreduce'": lambda: replace(SEND, operation="allreduce"),
    "an error from 0 bytes": lambda: replace(SEND, least_bytes=0),
    "an error from 8 to 7 bytes": lambda: replace(SEND, least_bytes=8, most_bytes=7),
    "library 'NCCL'": lambda: cluster("efa").under("NCCL"),
    "library 'none'": lambda: replace(cluster("efa"), library=Library.only_named("none")),
    "calls ['allreduce']": lambda: replace(cluster("efa"), calls=(("allreduce", 1e-6),)),
    "calls ['send', 'send']": lambda: replace(cluster("efa"), calls=(("send", 1e-6),) * 2),
    "call -1.0 s of send": lambda: replace(cluster("efa"), calls=(("send", -1.0),)),
    "call nan s of send": lambda: replace(cluster("efa"), calls=(("send", float("nan")),)),
    "fabric 'nvlink'": lambda: replace(SWITCH, fabric="nvlink"),
    "efficiency 0 of ring": lambda: replace(SWITCH, efficiency=(("ring", 0),)),
    "efficiency 1.06 of any": lambda: replace(SWITCH, efficiency=(("any", 1.06),)),
    "efficiency nan of any": lambda: replace(SWITCH, efficiency=(("any", float("nan")),)),
    "efficiency of 'Ring'": lambda: replace(SWITCH, efficiency=(("Ring", 0.5),)),
    "efficiency": lambda: replace(SWITCH, efficiency=(("ring", 0.5),) * 2),
    "hop -1.0 s of ll": lambda: replace(SWITCH, hops=(("ll", -1.0),)),
    "hop nan s of ll": lambda: replace(SWITCH, hops=(("ll", float("nan")),)),
    "hops": lambda: replace(SWITCH, hops=(("ll", 1.0),) * 2),
}


@pytest.mark.parametrize("given", BAD)
def test_each_rule_is_tripped(given: str) -> None:
    with pytest.raises(InputError) as caught:
        BAD[given]()
    assert caught.value.given == given
