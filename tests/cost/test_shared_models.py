"""Models that scenes share, and loads that levels keep, are those of each scene by itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.collectives.names import Collective
from p2smt.cost.bounds import regular_model, step_model
from p2smt.cost.loads import footprint as loads
from p2smt.cost.loads.footprint import digits_of, regular_footprint
from p2smt.cost.loads.level_use import Footprint
from p2smt.cost.step_time import StepCostModel
from p2smt.programs.program import Grouping, groupings
from tests.search.solve.test_solve_limits import cluster
from tests.strategies.topologies import Case, cases
from tests.tiers import examples_of

OPERATIONS = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.BROADCAST)


def seconds(model: StepCostModel) -> list[float]:
    return [model.time(payload).seconds for payload in (0.0, 1.0, 1e6)]


@settings(max_examples=examples_of(60))
@given(cases(), st.sampled_from(["", "nccl-2.20"]))
def test_a_shared_model_is_that_of_the_scene_alone(case: Case, library: str) -> None:
    """Every grouping, masters too: digits where no group acts change nothing."""
    topology = case.topology.under(library)
    digits = digits_of(case.placement, case.axes)
    for grouping in groupings(sum(map(bool, digits))):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loads, "_KEPT", 0)  # every level anew
            alone: Footprint = regular_footprint(topology, digits, grouping)
        assert regular_footprint(topology, digits, grouping) == alone
        for operation in OPERATIONS:
            shared = regular_model(topology, digits, grouping, operation)
            assert seconds(shared) == seconds(step_model(topology, alone, operation))


def test_scenes_share_a_step_that_their_groups_have_in_common() -> None:
    """An all-reduce of four in a node, whatever lies on the level outside."""
    topology = cluster(("node", 4, 1e9), ("gpu", 8, 1e10))
    inside = ((4, 2),)
    alone = regular_model(topology, ((), inside), Grouping(0, 1), Collective.ALL_REDUCE)
    for outside in (((2, 1),), ((4, 1),)):
        step = regular_model(topology, (outside, inside), Grouping(1, 2), Collective.ALL_REDUCE)
        assert step is alone
