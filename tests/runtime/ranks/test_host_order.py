"""Ranks must be numbered host by host: predictions and calibrations rely on it."""

from __future__ import annotations

import pytest

from p2smt.errors import InputError
from p2smt.runtime.payload import RankReport
from p2smt.runtime.ranks.on_ranks import in_host_order


def reports(hosts: str) -> list[RankReport]:
    return [RankReport(rank, [], {"host": host}) for rank, host in enumerate(hosts)]


@pytest.mark.parametrize("hosts", ["a", "aaaa", "aabb", "bac"])
def test_hosts_in_blocks(hosts: str) -> None:
    assert in_host_order(reports(hosts)) == reports(hosts)


@pytest.mark.parametrize("hosts", ["aba", "abab"])
def test_cyclic_numbering_is_refused(hosts: str) -> None:
    with pytest.raises(InputError, match="ranks 0, 2 on host a: ranks must be numbered"):
        in_host_order(reports(hosts))
