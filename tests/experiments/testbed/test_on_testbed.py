"""The executor across network namespaces: several machines' worth of real sockets."""

from __future__ import annotations

import pytest

from experiments.programs_on_testbed.study import by_time, pipelined_job, programs_job
from experiments.testbed.model import topology
from experiments.testbed.network import cluster, why_not
from experiments.testbed.ranks import fleet_of, run
from experiments.testbed.spec import regular

pytestmark = [pytest.mark.cluster, pytest.mark.exhaustive]


@pytest.fixture(autouse=True, scope="module")
def _allowed() -> None:
    if reason := why_not():
        pytest.skip(reason)


BEST = "reduce inside node; all-reduce master node in root; broadcast inside node"


def test_programs_run_across_nodes() -> None:
    """Every program of length <= 3 and a pipelined one; slow uplinks make the hierarchy pay."""
    spec = regular(nodes=2, uplink_bytes_per_s=25e6)
    nominal = topology(spec, 2)
    with cluster(spec) as nodes:
        fleet = fleet_of(nodes)
        checked = run(programs_job(nominal, 2**14 + 4), fleet, repeat=0)
        pipelined = run(pipelined_job(nominal, BEST, 2**20), fleet, repeat=1)
    assert len(checked.requests) == 24
    assert [error for request in checked.requests for error in request.errors] == []
    assert pipelined.verified
    assert len(by_time(pipelined)) == 3


def test_two_levels_of_shaped_links() -> None:
    spec = regular(nodes=2, racks=2, uplink_bytes_per_s=25e6, rack_bytes_per_s=12.5e6)
    nominal = topology(spec, 1)
    with cluster(spec) as nodes:
        checked = run(programs_job(nominal, 2**12 + 4), fleet_of(nodes), repeat=0)
    assert len(checked.requests) == 24
    assert checked.verified
