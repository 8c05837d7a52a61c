"""Fair rates: worked cases, and what defines them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import TooLarge
from p2smt.schedules.cost.event_run import FAIR_WORK, MOST_WORK, Sharing
from p2smt.schedules.cost.links import DirectedLink, Route
from tests.strategies.draws import shuffles


def sharing(
    bandwidths: list[float],
    users: list[list[int]],
    *,
    fair_work: int = FAIR_WORK,
    most_work: int = MOST_WORK,
) -> Sharing:
    """Transfers of 100 bytes, each over the links named, that begin at time 0."""
    links = [DirectedLink("l", k, "", "out", bandwidth) for k, bandwidth in enumerate(bandwidths)]
    found = Sharing(links, fair_work=fair_work, most_work=most_work)
    for number, used in enumerate(users):
        narrowest = min(bandwidths[k] for k in used)
        found.begin(number, Route(tuple(used), 0.0, narrowest), 100.0, 0.0)
    return found


def rates(found: Sharing, now: float = 0.0) -> list[float]:
    list(found.settle(now))
    return [transfer.rate for _, transfer in sorted(found.transfers.items())]


@pytest.mark.parametrize(
    ("bandwidths", "users", "expected"),
    [
        ([10.0], [[0]], [10.0]),
        ([10.0], [[0], [0]], [5.0, 5.0]),
        ([10.0, 4.0], [[0], [0, 1]], [6.0, 4.0]),
        # A line of two links: one transfer over both, one over each.
        ([10.0, 10.0], [[0, 1], [0], [1]], [5.0, 5.0, 5.0]),
        ([10.0, 4.0], [[0, 1], [0], [1]], [2.0, 8.0, 2.0]),
        # What one link cannot use is given to others twice over.
        ([12.0, 9.0, 2.0], [[0, 1], [0], [1, 2], [1]], [3.5, 8.5, 2.0, 3.5]),
    ],
)
def test_worked_rates(
    bandwidths: list[float], users: list[list[int]], expected: list[float]
) -> None:
    assert rates(sharing(bandwidths, users)) == pytest.approx(expected)


def test_ends_are_foretold_and_moved() -> None:
    found = sharing([10.0], [[0], [0]])
    assert [end.time_s for end in found.settle(0.0)] == [20.0, 20.0]
    found.end(0)
    (moved,) = found.settle(4.0)  # 20 of 100 bytes at 5 bytes/s, 80 at 10
    assert moved.time_s == pytest.approx(12.0)
    assert (moved.transfer, moved.version, found.transfers[1].version) == (1, 2, 2)
    assert list(found.settle(5.0)) == [], "nothing has changed"
    assert found.loads == {0: 200.0}


systems = st.lists(st.floats(1.0, 100.0), min_size=1, max_size=5).flatmap(
    lambda bandwidths: st.tuples(
        st.just(bandwidths),
        st.lists(
            st.lists(st.integers(0, len(bandwidths) - 1), min_size=1, max_size=3, unique=True),
            min_size=1,
            max_size=8,
        ),
    )
)


@given(systems)
def test_rates_are_max_min_fair(system: tuple[list[float], list[list[int]]]) -> None:
    """No link is overfull, and each transfer has a full link on which none is faster."""
    bandwidths, users = system
    found = rates(sharing(bandwidths, users))
    used = [sum(r for r, u in zip(found, users, strict=True) if k in u) for k in range(5)]
    assert all(sum_ <= b * (1 + 1e-9) for sum_, b in zip(used, bandwidths, strict=False))
    for rate, mine in zip(found, users, strict=True):
        full = [k for k in mine if used[k] >= bandwidths[k] * (1 - 1e-9)]
        fastest = [max(r for r, u in zip(found, users, strict=True) if k in u) for k in full]
        assert any(rate >= best * (1 - 1e-9) for best in fastest)


@given(systems, shuffles())
def test_sharing_anew_in_part_is_sharing_anew_in_full(
    system: tuple[list[float], list[list[int]]], random: Random
) -> None:
    bandwidths, users = system
    found = sharing(bandwidths, users)
    rates(found)
    gone = random.randrange(len(users))
    found.end(gone)
    left = [used for number, used in enumerate(users) if number != gone]
    assert rates(found) == pytest.approx(rates(sharing(bandwidths, left)))


@given(systems)
def test_rough_rates_never_overfill_a_link(system: tuple[list[float], list[list[int]]]) -> None:
    bandwidths, users = system
    found = sharing(bandwidths, users, fair_work=-1)
    rough = rates(found)
    assert found.rough
    for k, bandwidth in enumerate(bandwidths):
        used = sum(r for r, u in zip(rough, users, strict=True) if k in u)
        assert used <= bandwidth * (1 + 1e-9)


def test_rough_rates_are_equal_parts() -> None:
    assert rates(sharing([10.0, 4.0], [[0], [0, 1]], fair_work=-1)) == [5.0, 4.0]


def test_too_much_work() -> None:
    found = sharing([10.0], [[0], [0]], most_work=1)
    rates(found)
    found.end(0)
    with pytest.raises(TooLarge, match="1 transfers"):
        rates(found)
