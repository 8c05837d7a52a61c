"""Every strategy of a question, as columns: degrees first, then what goes with them.

A switch that has nothing to do is against the rules, or is left as it is by default, so no two
strategies are the same in all but name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from p2smt.errors import InputError
from p2smt.parallelism.matrices import divisors
from p2smt.parallelism.placement import IntArray
from p2smt.training.formulas.stages import (
    RECOMPUTES,
    MixtureColumns,
    StrategyColumns,
    countings,
)
from p2smt.training.search.choices import Choices, axis_tuples, least_values
from p2smt.training.search.contradiction import (
    contradiction,
    copies_contradiction,
    switch_contradiction,
)
from p2smt.training.search.question import COPIES, SEARCHED, Again, PlanQuestion
from p2smt.training.strategy import AXES, DISPATCHERS, MODULES, Recompute
from p2smt.training.validity import obey, obey_copies, obey_switch_rules

SearchedColumns = dict[str, IntArray]
"""Values of searched fields by name; of ``recompute`` indices into the choices."""


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
    values = {name: column[kept] for name, column in values.items()}
    if question.model.experts:
        values = _of_mixtures(question, choices, values)
    values = _obeying(question, choices, values)
    if COPIES in question.searched:
        values = _with_copies(question, choices, values)
    return _columns(question, choices, values)


def _with_copies(
    question: PlanQuestion, choices: Choices, values: SearchedColumns
) -> SearchedColumns:
    """All of them with the copies of shards that they can have.

    Raises:
        InputError: none can have those that are fixed.
    """
    devices = question.topology.devices
    usable = [n for n in divisors(devices) if choices.allow(COPIES, n)]
    usable = usable or list(choices.choices[COPIES])
    found = _crossed(values, {COPIES: np.array(usable, dtype=np.int64)})
    kept = obey_copies(question.model, found)
    if not kept.any():
        raise copies_contradiction(question, usable)
    return {name: column[kept] for name, column in found.items()}


def _columns(
    question: PlanQuestion, choices: Choices, values: Mapping[str, IntArray]
) -> StrategyColumns:
    many = len(values["tp"])
    kinds = [one if isinstance(one, Recompute) else Recompute.NONE for one in choices.again]
    columns = StrategyColumns(
        tp=values["tp"],
        pp=values["pp"],
        dp=values["dp"],
        cp=values["cp"],
        vpp=values["vpp"],
        micro_batch=values["micro_batch"],
        sequence_parallel=values["sequence_parallel"] > 0,
        zero=values["zero"],
        recompute=np.array([RECOMPUTES.index(kind) for kind in kinds])[values["recompute"]],
        flash=np.full(many, question.flash),
        dtype=np.full(many, question.dtype),
        dropout=np.full(many, question.dropout),
        mixture=_mixture(question, choices, values),
    )
    given = {"optimizer_bytes": question.optimizer_bytes, "imbalance": question.imbalance}
    return columns.given(given)


def _mixture(
    question: PlanQuestion, choices: Choices, values: Mapping[str, IntArray]
) -> MixtureColumns | None:
    """What strategies have besides; None where all have the defaults, as of a dense model."""
    given = question.graphs != "none" or question.fp8_attention
    one_by_one = any(not isinstance(again, Recompute) for again in choices.again)
    if not (question.model.experts or given or one_by_one or question.copied):
        return None
    many, ones = len(values["tp"]), np.ones(len(values["tp"]), dtype=np.int64)
    modules = np.array([[name in _modules(again) for name in MODULES] for again in choices.again])
    return replace(
        MixtureColumns.none(many),
        ep=values.get("ep", ones),
        etp=values.get("etp", ones),
        dispatcher=np.array(DISPATCHERS)[values.get("dispatcher", ones - 1)],
        overlap=values.get("overlap", ones - 1) > 0,
        graphs=np.full(many, question.graphs),
        fp8_attention=np.full(many, question.fp8_attention),
        modules=modules[values["recompute"]],
        dp_replicate=values.get(COPIES, ones),
    )


def _modules(again: Again) -> tuple[str, ...]:
    return () if isinstance(again, Recompute) else again


def _block(question: PlanQuestion, choices: Choices, sizes: Sequence[int]) -> tuple[IntArray, ...]:
    """The columns of all strategies with these axis sizes, before the rules.

    Of a mixture what is computed again is not told yet.
    """
    degrees = dict(zip(AXES, sizes, strict=True))
    most = question.batch.sequences // degrees["dp"]
    micro = [n for n in divisors(most) if choices.allow("micro_batch", n)]
    return _with_sizes(question, choices, degrees, micro)


def _with_sizes(
    question: PlanQuestion, choices: Choices, degrees: Mapping[str, int], micro: list[int]
) -> tuple[IntArray, ...]:
    """The same with these sizes of a micro-batch."""
    model = question.model
    counted = countings(model.layers, model.mtp)
    chunks = {n // degrees["pp"] for count in counted for n in divisors(count)}
    vpp = [n for n in sorted(chunks) if n > 0 and choices.allow("vpp", n)]
    given: dict[str, Sequence[int]] = {name: [value] for name, value in degrees.items()}
    given |= {"vpp": vpp, "micro_batch": micro}
    given |= {name: list(choices.choices[name]) for name in ("sequence_parallel", "zero")}
    given["recompute"] = [0] if model.experts else list(choices.choices["recompute"])
    return tuple(_grid([given[name] for name in SEARCHED]))


def _grid(values: Sequence[Sequence[int]]) -> list[IntArray]:
    """All combinations of some values, a column for each."""
    grid = np.meshgrid(*(np.array(one, dtype=np.int64) for one in values), indexing="ij")
    return [axis.ravel() for axis in grid]


# Batches of a range: of each strategy the largest that it can have, and smaller ones where these
# need less memory.


def space_between(
    question: PlanQuestion, choices: Choices, least: int, most: int
) -> StrategyColumns | None:
    """Every valid strategy of a question with its batches from ``least`` to ``most`` sequences.

    The time of a sequence falls with the number of micro-batches, so of each only the largest
    batch counts, and those with so few micro-batches that they need less memory.  None: there is
    none.
    """
    tuples = [one for one in axis_tuples(question, choices) if one[AXES.index("dp")] <= most]
    if not tuples:
        return None
    first = least_values(choices, tuples)
    first["sequences"] = first["dp"] * first["micro_batch"] * first["pp"]  # any that divides
    devices = question.topology.devices
    kept = obey(question.model, question.batch, first, devices)
    blocks = []
    for at in np.flatnonzero(kept).tolist():
        degrees = dict(zip(AXES, tuples[at], strict=True))
        sizes = range(1, min(most // degrees["dp"], choices.most("micro_batch")) + 1)
        micro = [n for n in sizes if choices.allow("micro_batch", n)]
        blocks.append(_with_sizes(question, choices, degrees, micro))
    if not blocks:
        return None
    values = {
        name: np.concatenate([block[at] for block in blocks]) for at, name in enumerate(SEARCHED)
    }
    values["sequences"] = values["dp"] * values["micro_batch"] * values["pp"]
    kept = obey(question.model, question.batch, values, devices)
    values = {name: one[kept] for name, one in values.items()}
    try:
        if question.model.experts:
            values = _of_mixtures(question, choices, values)
        values = _obeying(question, choices, values)
    except InputError:  # of so many hosts the rules leave none
        return None
    values = _with_batches(values, least, most)
    if not len(values["tp"]):
        return None
    return replace(_columns(question, choices, values), sequences=values["sequences"])


def _with_batches(values: SearchedColumns, least: int, most: int) -> SearchedColumns:
    """Each row with its batches."""
    each = values["dp"] * values["micro_batch"]
    step = np.where(values["vpp"] > 1, values["pp"], 1)
    largest = most // (each * step) * step  # micro-batches
    held = (2 + values["vpp"]) * values["pp"] // values["vpp"]  # from so many on memory is the same
    rows, counts = [], []
    for row, (one, by, top, few) in enumerate(
        zip(each.tolist(), step.tolist(), largest.tolist(), held.tolist(), strict=True)
    ):
        lowest = -(-least // (one * by)) * by
        if not 0 < lowest <= top:
            continue
        found = {*range(lowest, min(top, few) + 1, by), top}
        rows += [row] * len(found)
        counts += sorted(found)
    at = np.array(rows, dtype=np.int64)
    found_values = {name: column[at] for name, column in values.items()}
    sequences = each[at] * np.array(counts, dtype=np.int64)
    return found_values | {"sequences": sequences}


# Mixtures: degrees of experts for each of those strategies, then the switches.


def _of_mixtures(
    question: PlanQuestion, choices: Choices, values: SearchedColumns
) -> SearchedColumns:
    """All strategies with these degrees of attention, but some that break rules.

    Raises:
        InputError: the rules leave none, whatever the switches.
    """
    degrees = _expert_degrees(question, choices)
    switches = {
        name: np.array(choices.choices[name]) for name in ("recompute", "dispatcher", "overlap")
    }
    found = _crossed(values, dict(zip(("ep", "etp"), _grid(degrees), strict=True)))
    least = {name: np.zeros(len(found["tp"]), dtype=np.int64) for name in ("recompute", "overlap")}
    least["dispatcher"] = np.full(len(found["tp"]), switches["dispatcher"].max())
    if 0 in switches["overlap"]:
        kept = _obeying(question, choices, found | least)
        found = {name: kept[name] for name in found}
    again, flex, overlap = _grid([one.tolist() for one in switches.values()])
    found = _crossed(found, {"recompute": again, "dispatcher": flex, "overlap": overlap})
    idle = (found["ep"] == 1) & (found["dispatcher"] != switches["dispatcher"][0])
    return {name: column[~idle] for name, column in found.items()}


def _expert_degrees(question: PlanQuestion, choices: Choices) -> tuple[list[int], list[int]]:
    """Values of ep and etp that divide what they must; where none of those asked for does, all
    that are asked for."""
    experts = question.model.experts
    assert experts
    found = []
    for name, whole in (("ep", experts.count), ("etp", experts.width)):
        usable = [n for n in divisors(whole) if choices.allow(name, n)]
        found.append(usable or list(choices.choices.get(name, (1,))))
    return found[0], found[1]


def _crossed(values: SearchedColumns, others: SearchedColumns) -> SearchedColumns:
    """Every row of the one with every row of the others."""
    many, times = len(values["tp"]), len(next(iter(others.values())))
    kept = {name: np.repeat(column, times) for name, column in values.items() if name not in others}
    return kept | {name: np.tile(column, many) for name, column in others.items()}


def _obeying(question: PlanQuestion, choices: Choices, values: SearchedColumns) -> SearchedColumns:
    """Those strategies that obey the rules on what goes with their degrees.

    Raises:
        InputError: none does.
    """
    told = _rule_values(question, choices, values)
    kept = obey_switch_rules(question.model, question.batch, told)
    if not kept.any():
        raise switch_contradiction(question, choices, told)
    return {name: column[kept] for name, column in values.items()}


def _rule_values(
    question: PlanQuestion, choices: Choices, values: SearchedColumns
) -> SearchedColumns:
    """The values that these rules read."""
    full = np.array([again is Recompute.FULL for again in choices.again], dtype=np.int64)
    moe = np.array(["moe" in _modules(again) for again in choices.again], dtype=np.int64)
    again = values["recompute"]
    graphs = {"partial": question.graphs == "partial", "captured": question.graphs == "full"}
    same = {name: np.full(len(again), int(value)) for name, value in graphs.items()}
    return values | {"full": full[again], "moe": moe[again], **same}
