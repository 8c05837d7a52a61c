"""The clusters of the table on plans on hosts are those that a user gets of the same switches."""

from __future__ import annotations

from pathlib import Path

import pytest

import p2smt
from experiments.plan_hosts.bench import cluster
from tests.cli.tools import cli


@pytest.mark.parametrize("ratio", [2, 16])
def test_uplinks_are_those_of_an_import(ratio: int, tmp_path: Path) -> None:
    leaves = ["gpu[000-002]", "gpu[003-004]", "gpu005"]
    lines = [f"SwitchName=leaf{n} Nodes={hosts}" for n, hosts in enumerate(leaves)]
    conf = tmp_path / "topology.conf"
    conf.write_text("\n".join([*lines, "SwitchName=spine Switches=leaf[0-2]", ""]))
    file = tmp_path / "imported.yaml"
    words = ("--node", "dgx-h100", "--oversubscription", f"leaf={ratio}", "-o", str(file))
    assert cli("topology", "import", str(conf), *words).code == 0
    theirs, ours = p2smt.load_topology(str(file)), cluster((3, 2, 1), ratio)
    assert theirs.hosts is not None
    assert ours.hosts is not None
    assert ours.hosts.uplinks == theirs.hosts.uplinks
    assert len(ours.hosts.uplinks) == 2
    pairs = zip(ours.levels[0].link.pieces, theirs.levels[0].link.pieces, strict=True)
    assert all(a.bandwidth_bytes_per_s == b.bandwidth_bytes_per_s for a, b in pairs)
