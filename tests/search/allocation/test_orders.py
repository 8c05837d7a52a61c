"""Orders of hosts that are known beforehand, and the grids that they fill."""

from __future__ import annotations

import numpy as np
import pytest

import p2smt
from p2smt.errors import InputError
from p2smt.search.allocation.cell_grids import baselines, grids, host_order
from tests.cluster.test_hosts import uneven

REQUESTS = (p2smt.reduce("dp=1GiB"), p2smt.send("pp=16MiB*8"))


def problem(axes: str = "pp=4,dp=4,tp=2", **more: object) -> p2smt.Problem:
    return p2smt.Problem(uneven(), p2smt.parse_axes(axes), REQUESTS, **more)  # type: ignore[arg-type]


def test_rank_r_lies_on_host_r_by_devices_of_a_node() -> None:
    names = ["m1", "n07", "n01", "n02", "m2", "n03", "n04", "n05"]
    ranks = host_order(problem("pp=2,dp=4,tp=2"), names)
    topology = uneven()
    assert [topology.host_of(d) for d in ranks.ravel().tolist()] == [n for n in names for _ in "01"]
    assert (ranks.ravel() % 2 == np.tile([0, 1], 8)).all()


def test_exchanged_axes_fill_the_grid_the_other_way() -> None:
    names = [f"n{i:02}" for i in range(1, 7)]
    ranks = host_order(problem("pp=2,dp=3,tp=2"), names, exchanged=True)
    found = [[uneven().host_of(d) for d in row] for row in ranks[:, :, 0].tolist()]
    assert found == [["n01", "n03", "n05"], ["n02", "n04", "n06"]]


def test_too_few_hosts_or_no_grid() -> None:
    with pytest.raises(InputError, match="need 16 hosts of 2 devices"):
        host_order(problem(), ["n01"])
    with pytest.raises(InputError, match="is not in uneven"):
        host_order(problem("dp=2,pp=1"), ["n99"])
    with pytest.raises(InputError, match="no block"):
        host_order(problem("pp=2,dp=3"), ["n01", "n02", "n03"], exchanged=True)


def test_baselines_have_names_and_costs() -> None:
    listed = uneven().hosts.names[::-1]  # type: ignore[union-attr]
    found = {order.name: order for order in baselines(problem(), listed)}
    assert list(found) == ["listed", "alphabetical", "sorted by leaf", "sorted, axes exchanged"]
    assert found["sorted by leaf"].objective_s < found["sorted, axes exchanged"].objective_s
    assert len(baselines(problem("pp=1,dp=16,tp=2"), listed)) == 3


def test_grids_split_the_axes_between_nodes_and_their_inside() -> None:
    found = grids(problem("pp=4,dp=4,tp=2"))
    assert [(g.inside, g.outer) for g in found] == [
        (((1,), (1,), (2,)), (4, 4, 1)),
        (((1,), (2,), (1,)), (4, 2, 2)),
        (((2,), (1,), (1,)), (2, 4, 2)),
    ]
    inside = p2smt.AxisRule(2, 2, inside=True)
    assert [g.outer for g in grids(problem(rules=(inside,)))] == [(4, 4, 1)]
    across = p2smt.AxisRule(2, 2, inside=False)
    assert [g.outer for g in grids(problem(rules=(across,)))] == [(4, 2, 2), (2, 4, 2)]
    fixed = p2smt.FixedEntry(1, 3, 2)
    assert [g.outer for g in grids(problem(rules=(fixed,)))] == [(4, 2, 2)]
    with pytest.raises(InputError, match="rules speak of nodes"):
        grids(problem(rules=(p2smt.AxisRule(2, 1, inside=True),)))


def test_every_grid_holds_each_device_once() -> None:
    for grid in grids(problem("pp=4,dp=4,tp=2")):
        slots = np.array(uneven().hosts.slots)  # type: ignore[union-attr]
        ranks = grid.ranks(slots)
        assert ranks.shape == (4, 4, 2)
        assert set(ranks.ravel().tolist()) == set(uneven().places)
