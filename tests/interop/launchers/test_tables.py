"""Tables of ranks and lists of hosts say what the plan says, read back by other code."""

from __future__ import annotations

import csv

from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.hostlist import parse_hostlist
from p2smt.interop.launchers import write_csv, write_hostlist
from p2smt.interop.places import PlacedPlan
from tests.interop.launchers.plans import clusters, placed_plans

# Names as Kubernetes and clouds give them, too.
ODD = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,12}", fullmatch=True)


@given(placed_plans(clusters(ODD)))
def test_a_row_for_each_rank(plan: PlacedPlan) -> None:
    rows = list(csv.DictReader(write_csv(plan, "f").text.splitlines()))
    found = [(int(row["rank"]), row["host"], int(row["local_rank"])) for row in rows]
    assert found == [(place.rank, place.host, place.local_rank) for place in plan.places]


@given(placed_plans(clusters(ODD)))
def test_hosts_come_by_their_first_rank(plan: PlacedPlan) -> None:
    text = write_hostlist(plan, "f").text
    assert text.count("\n") == 1
    expected = list(dict.fromkeys(place.host for place in plan.places))
    assert list(parse_hostlist(text.strip())) == expected
