"""The cost model against published measurements that it has not seen.

    python -m experiments.placement_448x.measure.published

Calibrates links, without a library, on some tables (or half the sizes of one), predicts another,
and writes ``published.json``: median and worst of abs(predicted / measured - 1).  The algorithms of
the fit are not chosen by the tables that are predicted: every choice is listed, and the one of
least cross-validated error on the calibration's own rows is marked.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.placement_448x.store import HERE, header, rounded, write
from experiments.tables.tables import Published, tables
from p2smt.calibration.build import Calibration, calibrate
from p2smt.calibration.predict import Predictor
from p2smt.calibration.samples import Sample
from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Collective
from p2smt.programs.program import Grouping

RESULTS = HERE / "published.json"
LARGE = 2**20
ALGORITHMS: tuple[tuple[Algorithm, ...], ...] = (
    (Algorithm.RING,),
    (Algorithm.TREE,),
    (Algorithm.RING, Algorithm.TREE),
)


@dataclass(frozen=True, slots=True)
class Experiment:
    """Calibrate ``topology`` on some tables, predict another.

    ``halves``: both are the same table, calibrated on every second size.
    """

    topology: str
    seen: tuple[str, ...]
    predicted: str
    note: str
    halves: bool = False


H100_2, H100_4 = "dell-xe9680-h100-8xNDR400-2x8", "dell-xe9680-h100-8xNDR400-4x8"
P5_1, P5_2 = "aws-p5-1x8", "aws-p5-2x8"
A100_1, P4DE_2 = "a100-node-1x8", "aws-p4de-2x8"

EXPERIMENTS = (
    Experiment("dgx-h100:2", (H100_2,), H100_4, "other node count; inside of a node nominal"),
    Experiment("dgx-h100:4", (H100_4,), H100_2, "other node count; inside of a node nominal"),
    Experiment(
        "dgx-h100:2", (P5_1, H100_2), H100_4, "other node count; inside of a node from another H100"
    ),
    Experiment("aws-p5:2", (P5_1,), P5_2, "network nominal, never seen"),
    Experiment("aws-p4d:2", (A100_1,), P4DE_2, "network nominal, never seen"),
    Experiment("dgx-h100:2", (H100_2,), H100_2, "other sizes", halves=True),
    Experiment("dgx-h100:4", (H100_4,), H100_4, "other sizes", halves=True),
    Experiment("aws-p5:2", (P5_1,), P5_1, "other sizes", halves=True),
    Experiment("aws-p5:2", (P5_2,), P5_2, "other sizes", halves=True),
    Experiment("aws-p4d:2", (P4DE_2,), P4DE_2, "other sizes", halves=True),
)


def samples_of(table: Published) -> list[Sample]:
    """The rows of an all-reduce, in place too, as measurements of a topology of nodes and GPUs."""
    inside = table.nodes == 1
    where = Grouping(1, 2) if inside else Grouping(0, 2)
    entities = None if inside else table.nodes
    return [
        Sample(Collective.ALL_REDUCE, where, size, seconds, outermost=entities)
        for size, seconds in sorted((*table.rows, *table.in_place), key=lambda row: row[0])
    ]


def split(one: Experiment, known: dict[str, Published]) -> tuple[list[Sample], list[Sample]]:
    """Measurements to calibrate on, and those to predict."""
    seen = [sample for name in one.seen for sample in samples_of(known[name])]
    asked = samples_of(known[one.predicted])
    if not one.halves:
        return seen, asked
    sizes = sorted({sample.payload_bytes for sample in seen})
    even = set(sizes[::2])
    return (
        [sample for sample in seen if sample.payload_bytes in even],
        [sample for sample in asked if sample.payload_bytes not in even],
    )


def errors(topology: Topology, samples: Sequence[Sample]) -> list[float]:
    """Predicted over measured time, minus one."""
    times = Predictor.of(topology, samples).seconds(topology)
    return [float(s) / one.seconds - 1 for s, one in zip(times, samples, strict=True)]


def held_out(found: Calibration) -> float:
    """Mean cross-validated error of the calibration's own rows, with the pieces it chose."""
    fits = [level.link for level in found.levels if level.link is not None]
    rows = [e for fit in fits for e in fit.held_out_errors if e != float("inf")]
    return statistics.fmean(rows)


def measure(topology: Topology, samples: Sequence[Sample], spikes: set[int]) -> dict[str, Any]:
    """The errors of a topology, over all rows, large ones, and those that do not spike."""
    off = [abs(e) for e in errors(topology, samples)]
    large = [e for e, s in zip(off, samples, strict=True) if s.payload_bytes >= LARGE]
    clean = [e for e, s in zip(off, samples, strict=True) if s.payload_bytes not in spikes]
    return {
        "median": rounded(statistics.median(off), 4),
        "worst": rounded(max(off), 4),
        "median_of_large": rounded(statistics.median(large), 4),
        "worst_of_large": rounded(max(large), 4),
        "worst_without_spikes": rounded(max(clean), 4),
    }


def result(one: Experiment, known: dict[str, Published]) -> dict[str, Any]:
    """One experiment with each choice of algorithms, and with the nominal preset."""
    start = load_topology(one.topology).nominal()
    seen, asked = split(one, known)
    spikes = known[one.predicted].spikes()
    fitted = {choice: calibrate(start, seen, choice) for choice in ALGORITHMS}
    kept = min(ALGORITHMS, key=lambda choice: held_out(fitted[choice]))
    return {
        "topology": one.topology,
        "seen": list(one.seen),
        "predicted": one.predicted,
        "note": one.note,
        "seen_rows": len(seen),
        "predicted_rows": len(asked),
        "spikes": sorted(spikes),
        "nominal": measure(start, asked, spikes),
        "chosen": "+".join(a.value for a in kept),
        "points": [
            [s.payload_bytes, s.seconds, rounded((1 + error) * s.seconds, 4)]
            for s, error in zip(asked, errors(fitted[kept].topology, asked), strict=True)
        ],
        "fits": {
            "+".join(a.value for a in choice): {
                "held_out": rounded(held_out(found), 4),
                **measure(found.topology, asked, spikes),
            }
            for choice, found in fitted.items()
        },
    }


def main() -> None:
    """Run every experiment."""
    known = tables()
    results = [result(one, known) for one in EXPERIMENTS]
    write(RESULTS, {"header": header(0), "experiments": results})


if __name__ == "__main__":
    main()
