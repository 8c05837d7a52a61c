"""Predicts every published run and writes ``results.json``.

python -m experiments.training_runs.study
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from experiments.testbed.script import ended
from experiments.testbed.written import results
from experiments.training_runs import fitting, launches, memory, placements, ranking
from experiments.training_runs.store import RESULTS, SMALL, runs
from p2smt.errors import InputError
from p2smt.training.efficiency import Efficiency
from p2smt.training.measured.efficiency_fit import EfficiencyFit, errors_of, step_s


def study() -> dict[str, Any]:
    """All results."""
    read = runs()
    found = fitting.fitted(read.counted)
    megatron = fitting.of_name(found, "megatron-a100").efficiency
    ranked, chance = ranking.ranking_rows(read.counted, megatron)
    small = [run for run in read.counted if run.group.startswith(SMALL)]
    return {
        "runs": len(read.runs),
        "counted": len(read.counted),
        "refused": [list(one) for one in read.refused],
        "table_5": fitting.table_5(found),
        "carried": fitting.carried(read.runs, found),
        "small": fitting.errors(errors_of(small, megatron, step_s)),
        "sets": fitting.set_rows(found),
        "groups": fitting.group_rows(found),
        "each": fitting.run_rows(found),
        "transfers": fitting.transfer_rows(found),
        "uncounted": fitting.uncounted_rows(read.runs, found),
        "launches": launches.launch_rows(read.runs),
        "ranking": ranked,
        "chance": chance,
        "sweep": ranking.sweep_rows(read.counted, megatron),
        "memory": memory.memory_rows(read.runs),
        "placements": placements.placement_rows(read.counted, _efficiencies(found)),
    }


def _efficiencies(found: Sequence[EfficiencyFit]) -> dict[tuple[str, str], Efficiency]:
    """By framework and family; not those of small models and of fetches that wait."""
    named = ("megatron-a100", "nemo-h100", "fsdp-a100", "fsdp-h100")
    chosen = [fitting.of_name(found, name).efficiency for name in named]
    return {(one.framework.name, one.device): one for one in chosen}


def main(arguments: Sequence[str]) -> None:
    """Write the results.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    results.write(RESULTS, study())


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
