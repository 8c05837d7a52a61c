"""The tables of the study: ``results_table`` for docs/studies.md, and one per cluster.

python -m experiments.programs_on_testbed.table
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def results() -> list[dict[str, Any]]:
    """The committed results, one per cluster."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*.json"))]


def cluster_name(found: dict[str, Any]) -> str:
    """Such as ``2 nodes x 8 ranks, 200 Mbit/s``."""
    cluster = found["cluster"]
    racks = f"{cluster['racks']} racks x " if cluster["racks"] > 1 else ""
    rates = f"{cluster['uplink_mbit_per_s']:g} Mbit/s"
    if cluster["rack_mbit_per_s"]:
        rates += f", racks {cluster['rack_mbit_per_s']:g} Mbit/s"
    nodes, ranks = cluster["nodes_per_rack"], cluster["ranks_per_node"]
    return f"{racks}{nodes} nodes x {ranks} ranks, {rates}"


def results_table() -> Iterator[str]:
    """One line per cluster: the fastest program against one all-reduce."""
    yield "| cluster | one all-reduce | fastest program | time | speedup | step error, median |"
    yield "|---|---|---|---|---|---|"
    for found in results():
        yield (
            f"| {cluster_name(found)} | {found['baseline_s']:.3g} s | {found['best']} "
            f"| {found['best_s']:.3g} s | {found['speedup']:.2f}x "
            f"| {100 * found['step_error_median']:.0f} % |"
        )


def programs_table(found: dict[str, Any]) -> Iterator[str]:
    """The fastest programs of one cluster, predicted beside measured."""
    yield f"{cluster_name(found)}, {found['payload_bytes'] / 2**20:g} MiB per rank:"
    yield ""
    yield "| measured | predicted | place predicted | program |"
    yield "|---|---|---|---|"
    every = sorted(found["every_once"], key=lambda program: float(program["predicted_s"]))
    places = {program["program"]: place for place, program in enumerate(every, start=1)}
    for program in found["fastest"]:
        name = program["program"]
        yield _row(program, f"{places[name]} of {len(places)}", name)
    for program in found["pipelined"]:
        yield _row(program, "", f"{program['program']}, in {program['chunks']} chunks")


def _row(program: dict[str, Any], place: str, name: str) -> str:
    measured, predicted = program["measured_s"], program["predicted_s"]
    return f"| {measured:.3g} s | {predicted:.3g} s | {place} | {name} |"


if __name__ == "__main__":
    print("\n".join(results_table()))
    for one in results():
        print("\n" + "\n".join(programs_table(one)))
