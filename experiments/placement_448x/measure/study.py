"""The measured study: placements and programs on a shaped test cluster, with real Gloo ranks.

    python -m experiments.placement_448x.measure.study --cluster 2x8 --uplink 50mbit \
        --payload 1MiB --repeat 5 --out experiments/placement_448x/measured_2x8.json

The cluster (:mod:`experiments.testbed`) is calibrated with payloads that no step of the study has;
then every program is checked once with a small payload, and timed (``pairs`` says which
and how often).  ``--large`` times the model's choice on groups over several nodes with a larger
payload too.  ``--placements-only`` times single all-reduces alone, and calibrates nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from experiments.placement_448x.measure.pairs import Pairs, pairs_of
from experiments.placement_448x.measure.run import (
    CHECKED_BYTES,
    Large,
    check,
    entries_data,
    large_pairs,
    time_pairs,
)
from experiments.placement_448x.measure.summary import summary
from experiments.placement_448x.store import header
from experiments.testbed.calibration import fit
from experiments.testbed.model import topology as nominal_topology
from experiments.testbed.network import cluster
from experiments.testbed.ranks import calibration_here, cluster_data, fleet_of
from experiments.testbed.script import ended
from experiments.testbed.spec import NetworkSpec, parse_rate, regular
from experiments.testbed.written.results import write
from p2smt.calibration.build import calibrated_yaml
from p2smt.units import parse_bytes

CLUSTERS = {"2x8": (1, 2, 8), "4x4": (1, 4, 4), "2x2x4": (2, 2, 4), "2x2": (1, 2, 2)}
"""Racks, nodes in each, ranks in each node; the last one is for trying the study out."""
PARTS = ((3, 64), (3, 32), (3, 16), (3, 8), (3, 4))
"""Calibration payloads as parts of the study's; steps work on a half, a quarter and so on."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a cluster is studied; ``large_bytes`` 0 and ``calibration_repeat`` 0 mean none."""

    payload_bytes: int
    repeat: int
    seed: int
    placements_only: bool
    calibration_repeat: int
    large_bytes: int


def study(spec: NetworkSpec, ranks_per_node: int, how: Settings) -> dict[str, Any]:
    """Calibrate a cluster, then check and time its pairs; times in seconds."""
    nominal, start = nominal_topology(spec, ranks_per_node), time.monotonic()
    sizes = calibration_bytes(how.payload_bytes)
    fitted, text, rows = nominal, "", list[list[Any]]()
    with cluster(spec) as nodes:
        fleet = fleet_of(nodes)
        if how.calibration_repeat:
            rows = calibration_here(nominal, fleet, how.calibration_repeat, sizes)
            calibrated = fit(nominal, rows)
            fitted = calibrated.topology
            text = calibrated_yaml(calibrated, date.today().isoformat())
        calibrated_s = time.monotonic() - start
        pairs = pairs_of(fitted, how.payload_bytes, how.placements_only)
        large = large_pairs(fitted, how.large_bytes) if how.large_bytes else Large(Pairs(), ())
        verified = check([*pairs.entries, *large.pairs.entries], fleet)
        times, large_times = time_pairs((pairs, large.pairs), how.repeat, how.seed, fleet)
    entries, cases = entries_data(pairs, times), pairs.as_data()
    return {
        "cluster": cluster_data(spec, ranks_per_node),
        "payload_bytes": how.payload_bytes,
        "repeat": how.repeat,
        "calibration_bytes": sizes if text else (),
        "calibration": rows,
        "verified": verified,
        "verified_with_bytes": CHECKED_BYTES,
        "summary": summary(entries, cases, bool(text)),
        "large_payload_bytes": how.large_bytes,
        "large_rows": large.rows,
        "large": entries_data(large.pairs, large_times),
        "wall_s": {"calibration": round(calibrated_s), "all": round(time.monotonic() - start)},
        "topology": text.split("\n"),
        "entries": entries,
        "cases": cases,
    }


def calibration_bytes(payload_bytes: int) -> tuple[int, ...]:
    """Payloads to calibrate with: three times a power of two below the study's."""
    return tuple(payload_bytes * over // under for over, under in PARTS)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cluster", choices=CLUSTERS, required=True)
    parser.add_argument("--uplink", default="50mbit", help="rate of a node's uplink")
    parser.add_argument("--rack-rate", help="rate of a rack's uplink; default: as --uplink")
    parser.add_argument("--payload", default="1MiB", help="bytes per rank")
    parser.add_argument("--repeat", type=int, default=5, help="rounds of timings")
    parser.add_argument("--calibration-repeat", type=int, default=5)
    parser.add_argument("--large", help="a larger payload for the model's choices")
    parser.add_argument("--placements-only", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    """Run the study of one cluster and write its JSON."""
    given = parsed(arguments)
    racks, nodes, ranks = CLUSTERS[given.cluster]
    uplink = parse_rate(given.uplink, "--uplink")
    rack = parse_rate(given.rack_rate, "--rack-rate") if given.rack_rate else uplink
    spec = regular(nodes, uplink, racks, rack if racks > 1 else None)
    how = Settings(
        parse_bytes(given.payload, "--payload"),
        given.repeat,
        given.seed,
        given.placements_only,
        0 if given.placements_only else given.calibration_repeat,
        parse_bytes(given.large, "--large") if given.large else 0,
    )
    about = header(given.seed)
    about["versions"]["torch"] = version("torch")
    found = {"header": about, **study(spec, ranks, how)}
    write(given.out, found)
    print(json.dumps(found["summary"], indent=1))
    if not found["verified"]:
        sys.exit("some program gave a wrong result")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
