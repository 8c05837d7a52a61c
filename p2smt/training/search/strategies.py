"""Every strategy of a question, as columns: degrees first, then what goes with them.

A switch that has nothing to do is against the rules, so no two strategies are the same in all but
name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from p2smt.parallelism.matrices import divisors
from p2smt.parallelism.placement import IntArray
from p2smt.training.formulas.stages import StrategyColumns, countings
from p2smt.training.search.choices import Choices, axis_tuples, least_values
from p2smt.training.search.contradiction import contradiction
from p2smt.training.search.question import SEARCHED, PlanQuestion
from p2smt.training.strategy import AXES
from p2smt.training.validity import obey


def space_of(question: PlanQuestion, choices: Choices) -> StrategyColumns:
    """Every valid strategy of a question: in order of the axis sizes, then of the other fields.

    Raises:
        InputError: there is none; names the rules that exclude all.
    """
    tuples = axis_tuples(question, choices)
    least = least_values(choices, tuples)
    kept = obey(question.model, question.batch, least, question.topology.devices)
    if not kept.any():
        raise contradiction(question, choices)
    blocks = [_block(question, choices, tuples[at]) for at in np.flatnonzero(kept).tolist()]
    values = {
        name: np.concatenate([block[at] for block in blocks]) for at, name in enumerate(SEARCHED)
    }
    kept = obey(question.model, question.batch, values, question.topology.devices)
    return _columns(question, {name: column[kept] for name, column in values.items()})


def _columns(question: PlanQuestion, values: Mapping[str, IntArray]) -> StrategyColumns:
    many = len(values["tp"])
    columns = StrategyColumns(
        tp=values["tp"],
        pp=values["pp"],
        dp=values["dp"],
        cp=values["cp"],
        vpp=values["vpp"],
        micro_batch=values["micro_batch"],
        sequence_parallel=values["sequence_parallel"] > 0,
        zero=values["zero"],
        recompute=values["recompute"],
        flash=np.full(many, question.flash),
        dtype=np.full(many, question.dtype),
    )
    given = {"optimizer_bytes": question.optimizer_bytes, "imbalance": question.imbalance}
    return columns.given(given)


def _block(question: PlanQuestion, choices: Choices, sizes: Sequence[int]) -> tuple[IntArray, ...]:
    """The columns of all strategies with these axis sizes, before the rules."""
    degrees = dict(zip(AXES, sizes, strict=True))
    model, most = question.model, question.batch.sequences // degrees["dp"]
    counted = countings(model.layers, model.mtp)
    chunks = {n // degrees["pp"] for count in counted for n in divisors(count)}
    vpp = [n for n in sorted(chunks) if n > 0 and choices.allow("vpp", n)]
    micro = [n for n in divisors(most) if choices.allow("micro_batch", n)]
    given = {name: [value] for name, value in degrees.items()}
    given |= {"vpp": vpp, "micro_batch": micro}
    given |= {name: list(choices.choices[name]) for name in ("sequence_parallel", "zero")}
    given["recompute"] = list(choices.choices["recompute"])
    grid = np.meshgrid(*(np.array(given[name]) for name in SEARCHED), indexing="ij")
    return tuple(axis.ravel().astype(np.int64) for axis in grid)
