"""The restrictions of a problem in words, as plans record them."""

from __future__ import annotations

from p2smt.pipeline import chunk_counts
from p2smt.problem import FixedEntry
from p2smt.request import Problem


def restrictions(problem: Problem) -> tuple[str, ...]:
    """What an answer was restricted to: rules, entries, program length, forms and steps."""
    axes, levels = problem.axis_names, problem.topology.names
    found = []
    for rule in problem.rules:
        axis, level = axes[rule.axis], levels[rule.level]
        if isinstance(rule, FixedEntry):
            found.append(f"{axis}={level}:{rule.value}")
        else:
            found.append(f"{axis} {'within' if rule.inside else 'across'} {level}")
    found.append(f"programs of at most {problem.max_length} instructions")
    found += [f"no {form}" for form in sorted(form.value for form in problem.forbidden_forms)]
    found += [f"at most {n} steps across {level}" for level, n in problem.step_limits]
    if problem.pipeline != 1:
        counts = " or ".join(map(str, chunk_counts(problem.pipeline, steps=2)))
        found.append(f"programs of several steps in {counts} chunks")
    return tuple(found)
