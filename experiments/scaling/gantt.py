"""Draws the cubes of a search by worker, from its journal.  Needs the ``plots`` extra.

python -m experiments.scaling.gantt JOURNAL FIGURE.svg
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from experiments.testbed.script import ended
from p2smt.errors import InputError
from p2smt.parallel_search.journal.file import read_journal
from p2smt.report.searches.gantt_plot import draw_gantt
from p2smt.report.searches.timeline import timeline_of


def main(arguments: Sequence[str]) -> None:
    """Draw a journal, and say what each worker lost.

    Raises:
        InputError: the arguments are not two, or the journal is none.
    """
    if len(arguments) != 2:
        raise InputError(f"{len(arguments)} arguments", "two are expected: a journal, a figure")
    journal, figure = arguments
    timeline = timeline_of(read_journal(journal))
    draw_gantt(timeline).savefig(figure)
    sys.stdout.write("worker: busy; lost to queueing, stale incumbents, idling (s)\n")
    for lost in timeline.lost():
        parts = (lost.busy_s, lost.queueing_s, lost.stale_s, lost.idling_s)
        sys.stdout.write(f"{lost.worker}: {'; '.join(f'{part:.2f}' for part in parts)}\n")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
