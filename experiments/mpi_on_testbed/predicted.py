"""Which algorithm the cost model says is fastest at a size that it was not fitted to.

    python -m experiments.mpi_on_testbed.predicted

Of each MPI, collective and size: the model is fitted, as `p2smt calibrate` does it, to what
winners.py measured of that collective at all other sizes, and asked for the time of each algorithm
at this one; the answers go into winners.json, too.  A prediction is right where the algorithm's
times and those of the one with the least median overlap.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.mpi_on_testbed.study import NODES, PER_NODE, UPLINK_BYTES_PER_S
from experiments.mpi_on_testbed.winners import NAMES
from experiments.testbed.model import topology as testbed_topology
from experiments.testbed.script import ended
from experiments.testbed.spec import regular
from p2smt.calibration.effective import fit_constants
from p2smt.calibration.samples import Sample
from p2smt.cluster.topology import ANY_ALGORITHM, Topology
from p2smt.errors import InputError
from p2smt.interop.tuners.choices import Comm
from p2smt.interop.tuners.mpi_writers import MPI_OPERATIONS, nameable
from p2smt.interop.tuners.regions import CommScene, members_of
from p2smt.programs.program import Grouping

WINNERS = Path(__file__).with_name("winners.json")
LIBRARIES = {"openmpi": "openmpi-5", "mpich": "mpich-5"}
COMM = Comm(NODES, PER_NODE)
ByAlgorithm = Mapping[str, Mapping[str, Sequence[float]]]


@dataclass(frozen=True)
class Cell:
    """An MPI, a collective and a size: the fastest algorithm, and the one that should be."""

    mpi: str
    collective: str
    size_bytes: int
    fastest: str
    predicted: str
    fastest_s: Sequence[float]
    predicted_s: Sequence[float]

    @property
    def right(self) -> bool:
        """Whether the predicted one is the fastest as far as the spreads can tell."""
        return min(self.predicted_s) <= max(self.fastest_s)

    @property
    def regret(self) -> float:
        """How much longer the predicted one takes, as a part of the fastest one's median."""
        return statistics.median(self.predicted_s) / statistics.median(self.fastest_s) - 1


Names = dict[str, dict[str, str]]
"""By collective and bytes."""


def cells(data: Mapping[str, Any]) -> Iterator[Cell]:
    """Every cell of the study, from its times and predictions."""
    for mpi, collectives in data["predicted"].items():
        for collective, by_size in collectives.items():
            times = data["times"][mpi][collective]
            for size, predicted in by_size.items():
                medians = {name: statistics.median(of[size]) for name, of in times.items()}
                fastest = min(medians, key=lambda name: medians[name])
                found = (times[fastest][size], times[predicted][size])
                yield Cell(mpi, collective, int(size), fastest, predicted, *found)


def predictions(mpi: str, times: Mapping[str, ByAlgorithm]) -> Names:
    """What should be fastest of each collective and size, by a fit to its other sizes."""
    return {
        collective: {
            held: predicted_fastest(mpi, collective, by_algorithm, held)
            for held in next(iter(by_algorithm.values()))
        }
        for collective, by_algorithm in times.items()
    }


def predicted_fastest(mpi: str, collective: str, times: ByAlgorithm, held: str) -> str:
    """The same of one size, whose times are not looked at."""
    others = {
        name: {size: of for size, of in by_size.items() if size != held}
        for name, by_size in times.items()
    }
    priced = prices(fitted_to(mpi, collective, others), mpi, collective, int(held))
    return min(priced, key=lambda name: priced[name])


def nominal(mpi: str) -> Topology:
    """The test cluster with that MPI before anything is measured."""
    spec = regular(NODES, UPLINK_BYTES_PER_S)
    start = replace(testbed_topology(spec, PER_NODE), algorithms=ANY_ALGORITHM)
    return start.under(LIBRARIES[mpi])


def fitted_to(mpi: str, collective: str, times: ByAlgorithm) -> Topology:
    """The same fitted to times of a collective.

    Messages from peer to peer have no name of their own, and are left out.
    """
    start, named = nominal(mpi), NAMES[mpi][collective]
    samples = [
        Sample(
            MPI_OPERATIONS[collective],
            Grouping(0, len(start.levels)),
            int(size),
            statistics.median(seconds),
            ran=(algorithm,),
        )
        for name, by_size in times.items()
        if (algorithm := named[name]) is not None
        for size, seconds in by_size.items()
    ]
    return fit_constants(start, samples).topology


def prices(topology: Topology, mpi: str, collective: str, size_bytes: int) -> dict[str, float]:
    """Seconds of each algorithm, as the library calls it."""
    scene = CommScene.of(topology, members_of(topology, COMM), MPI_OPERATIONS[collective])
    ways = nameable(scene, NAMES[mpi][collective])
    return {name: scene.model.ways[i].seconds(size_bytes) for i, name in ways.items()}


def share_right(found: Sequence[Cell]) -> float:
    """The part of the cells that are right."""
    return sum(one.right for one in found) / len(found)


def mean_regret(found: Sequence[Cell]) -> float:
    """The mean regret of the cells."""
    return statistics.fmean(one.regret for one in found)


def main(arguments: Sequence[str]) -> None:
    """Renew the predictions.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    data = json.loads(WINNERS.read_text(encoding="utf-8"))
    data["predicted"] = {mpi: predictions(mpi, times) for mpi, times in data["times"].items()}
    WINNERS.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
