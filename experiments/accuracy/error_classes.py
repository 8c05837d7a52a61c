"""Relative errors by library, system, operation and size: ``p2smt/cost/accuracy.yaml``.

What :mod:`p2smt.cost.accuracy` reads, so that an answer can say that nobody would measure
its gain.  The error of a class is the one that four of five predictions keep to: of tables that the
constants were fitted to, or, where that is larger, of tables that were left out of a fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from experiments.accuracy.hold_out import LARGER, SMALLER, HeldOut
from experiments.accuracy.summary import Result
from experiments.accuracy.systems import has_profile, topology_of
from experiments.tables.tables import Published
from p2smt.calibration.tables import error_classes
from p2smt.cluster.error_class import SHARE
from p2smt.cluster.error_model import dump_error_class
from p2smt.cost.accuracy import most_in_node, outermost_crossed, system_name

HEAD = f"""\
# Written by make accuracy: errors of predictions by library, system, operation and payload, over
# the published tables of experiments/tables.  {SHARE:.0%} of their cells, outliers included, keep
# to abs(predicted / measured - 1) of their class: in sample or, if that is more, left out of a
# fit.
"""

Cells = list[tuple[int, float]]


def yaml_text(results: Sequence[Result], unseen: Sequence[HeldOut]) -> str:
    """The file's text."""
    left_out = {one.predicted: one.cells for one in unseen if one.what in (LARGER, SMALLER)}
    seen: dict[str, dict[tuple[str, str], Cells]] = defaultdict(lambda: defaultdict(list))
    again: dict[tuple[str, str, str], Cells] = defaultdict(list)
    for one in results:
        if one.library and not has_profile(one.table):
            system, operation = system_of(one.table), one.table.collective
            seen[one.library][system, operation] += [(c.size_bytes, c.error) for c in one.cells]
            again[one.library, system, operation] += left_out.get(one.table.name, ())
    parts = [HEAD]
    for library in sorted(seen):
        lines = [f"{library}:\n"]
        for system in sorted({system for system, _ in seen[library]}):
            lines.append(f"  {system}:\n")
            for operation in sorted(o for s, o in seen[library] if s == system):
                cells = seen[library][system, operation]
                lines += _rows(operation, cells, again[library, system, operation])
        parts.append("".join(lines))
    return "\n".join(parts)


def _rows(operation: str, seen: Cells, unseen: Cells) -> list[str]:
    """The classes of an operation, a line each."""
    found = [dump_error_class(one) for one in error_classes(operation, seen, unseen)]
    texts = [", ".join(f"{key}: {value}" for key, value in one.items()) for one in found]
    return [f"    - {{{text}}}\n" for text in texts]


def system_of(table: Published) -> str:
    """What a table was measured on, as a topology says it."""
    topology = topology_of(table)
    ranks = np.arange(table.ranks)[np.newaxis]
    level = outermost_crossed(topology, ranks)
    if level is None:
        raise ValueError(f"{table.name}: one rank alone")
    return system_name(topology, level, most_in_node(topology, ranks))
