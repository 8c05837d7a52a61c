"""Who sends where a level has more latency than one outside it: against every choice."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.resharding.step_prices import SenderChoice, quick_levels
from tests.oracles.senders import choices, seconds_of
from tests.resharding.cost.inverted import inverted
from tests.tiers import examples_of

SIZES = ((2, 2), (2, 3), (3, 2), (2, 4), (4, 2), (2, 2, 2))


@pytest.mark.parametrize("seed", range(examples_of(60)))
def test_no_choice_of_senders_is_faster(seed: int) -> None:
    shuffle = Random(seed)
    sizes = shuffle.choice(SIZES)
    topology = inverted(shuffle, sizes)
    count = topology.devices
    copies = shuffle.choice([n for n in (1, 2, 3, 4) if count % n == 0])
    held = shuffle.sample([i // copies for i in range(count)], count)
    taken, payload = shuffle.sample(held, count), shuffle.choice([8, 1000, 100_000, 10**6])
    choice = SenderChoice(topology, np.arange(count))
    assert choice.matters
    found = choice.fastest(np.array(held), np.array(taken), payload)
    assert [held[source] for source in found.sources] == taken
    assert sorted(found.sources) == list(range(count))
    assert found.time.seconds == seconds_of(topology, found.sources, payload)
    best = min(seconds_of(topology, one, payload) for one in choices(held, taken))
    assert found.time.seconds == pytest.approx(best, rel=1e-12)
    assert found.least_s <= best * (1 + 1e-12)


def test_a_holder_further_away_may_answer_sooner() -> None:
    """Devices 0 and 2 hold block 0, of nodes 0 and 1; it goes to 1 and 3."""
    far, near = Piece("simple", 1.0, 4.0), Piece("simple", 9.0, 4.0)
    link = Link(LinkKind.SWITCH, (far,)), Link(LinkKind.SWITCH, (near,))
    topology = Topology("t", (Level("node", 2, link[0]), Level("gpu", 2, link[1])))
    found = SenderChoice(topology, np.arange(4)).fastest(
        np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0]), 4
    )
    assert found.sources.tolist() == [3, 2, 1, 0]
    assert found.time.seconds == found.least_s == 1.0 + 2 * 4 / 4


@pytest.mark.parametrize("latencies", [(3.0, 1.0, 1.0), (0.0, 0.0, 0.0), (2.0, 2.0, 1.0)])
def test_levels_whose_latency_never_rises_inwards_need_no_choice(
    latencies: tuple[float, ...],
) -> None:
    links = [Link(LinkKind.SWITCH, (Piece("simple", seconds, 1.0),)) for seconds in latencies]
    levels = tuple(Level(f"l{j}", 2, link) for j, link in enumerate(links))
    assert quick_levels(Topology("t", levels)) == ()


def test_limits_are_those_that_lack_a_level_further_in() -> None:
    links = [Link(LinkKind.SWITCH, (Piece("simple", s, 1.0),)) for s in (2.0, 3.0, 1.0, 5.0)]
    levels = tuple(Level(f"l{j}", 2, link) for j, link in enumerate(links))
    assert set(quick_levels(Topology("t", levels))) == {
        frozenset({0, 2}),
        frozenset({2}),
        frozenset({0, 1, 2}),
    }


@pytest.mark.parametrize("preset", ["azure-ndv4", "dgx1-v100", "gb200-nvl72", "tpu-v5p", "mi300x"])
def test_no_preset_needs_it(preset: str) -> None:
    topology = load_topology(preset)
    assert quick_levels(topology) == quick_levels(topology.nominal()) == ()
