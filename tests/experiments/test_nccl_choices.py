"""The study of NCCL's choices: p2smt's are NCCL's, and its page says what it computes."""

from __future__ import annotations

import pytest

from experiments.nccl_choices.facts import GIVEN, MORE, SIZES, Chosen, Group, choices, estimates
from experiments.nccl_choices.study import (
    PAGE,
    choice_of,
    near_estimates,
    page,
    tally,
    time_of,
    topology_of,
    way_at,
)


def a_part(which: str) -> list[Chosen]:
    """One row of each system and collective, of different numbers of nodes and GPUs."""
    kinds: dict[tuple[str, str], list[Chosen]] = {}
    for row in choices(which):
        kinds.setdefault((row.group.system, row.group.collective), []).append(row)
    return [rows[(7 * i) % len(rows)] for i, rows in enumerate(kinds.values())]


@pytest.mark.parametrize("which", [GIVEN, MORE])
def test_choices_of_a_part_are_those_of_nccl(which: str) -> None:
    found = tally(a_part(which))
    assert found.total > 300
    assert found.same >= 0.995 * found.total
    assert found.near >= 0.95 * found.total
    assert found.loss <= 1.25


def test_a_group_is_a_cluster_of_its_own() -> None:
    part = topology_of(Group("gcp-a3-high", 4, 16, "all-reduce"))
    assert (part.sizes, part.levels[0].link.ports) == ((4, 4), 2)
    assert topology_of(Group("gb200-nvl72.4", 2, 8, "all-reduce")).sizes == (2, 4)
    assert topology_of(Group("dgx1-v100", 2, 8, "all-reduce")).sizes == (2, 1, 4)


def test_a_tally_counts_what_differs() -> None:
    (row,) = [one for one in choices() if one.group == Group("dgx-h100", 2, 16, "all-reduce")]
    choice = choice_of(row.group)
    assert way_at(choice, SIZES[0]) == row.ways[0]
    assert time_of(choice, "pat-simple", 8) is None
    other = "ring-simple" if row.ways[0] != "ring-simple" else "ring-ll"
    wrong = Chosen(row.group, (other, *row.ways[1:]), row.times_s)
    assert tally([wrong]).same == tally([row]).same - 1


@pytest.mark.evidence
def test_all_choices_and_times_are_those_of_nccl() -> None:
    for which, same in ((GIVEN, 0.995), (MORE, 0.985)):
        found, every = tally(choices(which)), near_estimates(estimates(which))
        assert found.same >= same * found.total
        assert found.near >= 0.95 * found.total
        assert found.loss <= 1.25
        assert every.near >= 0.95 * every.total


@pytest.mark.evidence
def test_the_page_says_what_is_computed() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make choices"
