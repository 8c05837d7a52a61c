"""Where programs and placements gain, over every preset: writes ``results.json``.

    python -m experiments.gains.study [PRESET ..]

With presets, only prints what is found for them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from experiments.gains import groups, layouts
from experiments.gains.asking import LIMITS, Programs
from experiments.gains.clusters import clusters
from experiments.gains.store import RESULTS
from experiments.gains.training import RUNS, TrainingRun
from experiments.testbed.script import ended
from experiments.testbed.written.results import write
from p2smt import __version__
from p2smt.cluster.file import preset_names
from p2smt.errors import InputError
from p2smt.report.progress import counted


def group_rows(presets: Sequence[str], programs: Programs) -> Iterator[list[Any]]:
    """Programs on the default layout of each cluster."""
    for preset in counted(presets, "programs, by preset"):
        for cluster in clusters(preset):
            yield from groups.rows(cluster, programs)


def layout_rows(presets: Sequence[str], programs: Programs) -> Iterator[list[Any]]:
    """Placements of training steps."""
    for cluster in counted(list(layouts.layout_clusters()), "layouts, by cluster"):
        if cluster.preset in presets:
            yield from layouts.rows(cluster, programs)


def training_entry(run: TrainingRun, programs: Programs) -> dict[str, Any]:
    """A published run."""
    ask = run.ask()
    return {
        "name": run.name,
        "source": run.source,
        "assumed": run.assumed,
        "spec": run.cluster,
        "axes": ask.axes,
        "requests": [str(request) for request in ask.requests],
        **layouts.answer(ask, programs),
        "command": ask.command(),
    }


def main(arguments: Sequence[str]) -> None:
    """Compute, and write unless presets are named.

    Raises:
        InputError: an argument is no preset.
    """
    if unknown := set(arguments) - set(preset_names()):
        raise InputError(f"presets {sorted(unknown)}", "are not among those of p2smt")
    presets, programs = arguments or preset_names(), Programs()
    runs = [] if arguments else RUNS
    found = {
        "header": {"p2smt": __version__, "time_limit_s": LIMITS.time_limit_s, "seed": LIMITS.seed},
        "groups_columns": groups.COLUMNS,
        "groups": list(group_rows(presets, programs)),
        "layouts_columns": layouts.COLUMNS,
        "layouts": list(layout_rows(presets, programs)),
        "training": [training_entry(run, programs) for run in counted(runs, "runs")],
    }
    if not arguments:
        write(RESULTS, found)
        return
    for row in (*found["groups"], *found["layouts"]):
        sys.stdout.write(f"{row}\n")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
