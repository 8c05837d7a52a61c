"""What follows from counts for CP-SAT: C17 of :mod:`p2smt.encodings.redistribution.cpsat`."""

from __future__ import annotations

from ortools.sat.python import cp_model

from p2smt.encodings.redistribution.cpsat_vars import Vars
from p2smt.problems.redistribution import PARTIAL, Outlook, RedistributionProblem


def c17_outlook(
    model: cp_model.CpModel, problem: RedistributionProblem, v: Vars, outlook: Outlook
) -> None:
    """C17: the counts of a layer are a row; the sums of c before and after are at least its."""
    limit = problem.at_most
    rows = [row for row in outlook.rows if limit is None or row[-2] + row[-1] <= limit]
    most = max((max(row[-2:]) for row in rows), default=0)
    for t in range(problem.max_steps + 1):
        before = model.new_int_var(0, most, f"before{t}")
        after = model.new_int_var(0, most, f"after{t}")
        columns = _counts(model, v, outlook, t)
        model.add_allowed_assignments([*columns, before, after], rows)
        model.add(sum(v.ticks[:t]) >= before)
        model.add(sum(v.ticks[t:]) >= after)


def _counts(model: cp_model.CpModel, v: Vars, outlook: Outlook, t: int) -> list[cp_model.IntVar]:
    """The digits of each role in each bin."""
    found = []
    for role in outlook.roles:
        for bin_ in outlook.bins:
            count = model.new_int_var(0, len(role), "role")
            if bin_ == (PARTIAL[0],):
                model.add(count == sum(v.places[t][q][PARTIAL] for q in role))
            else:
                model.add(count == sum(v.lists[t][q][dim] for q in role for dim in bin_))
            found.append(count)
    return found
