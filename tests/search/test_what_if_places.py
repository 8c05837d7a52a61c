"""Where ranks lie under a change of the cluster: by hosts, not by numbers of devices."""

from __future__ import annotations

from p2smt.cluster.allocation import allocated
from p2smt.cluster.file import parse_topology
from p2smt.parallelism.rank_list import RankList
from p2smt.plans.solution import Alternative
from p2smt.result import Status
from tests.cli.tools import RACKS


def test_equal_numbers_of_devices_are_other_hosts_on_other_choices_of_them() -> None:
    whole = parse_topology(RACKS, "racks")
    each = whole.devices_under(whole.node_level)
    one = Alternative(None, (), 1.0, Status.FEASIBLE, RankList(tuple(range(each)), (each,)))
    first, second = (allocated(whole, [name]) for name in ("n1", "n2"))
    assert one.devices_by_host(first) == tuple(("n1", n) for n in range(each))
    assert one.devices_by_host(second) == tuple(("n2", n) for n in range(each))
    assert one.devices_by_host(first) != one.devices_by_host(second)
