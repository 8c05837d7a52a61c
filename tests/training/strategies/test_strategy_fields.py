"""Every list of the fields of a strategy names the same ones: a new field has to be in all."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from p2smt.plans.training.file_model import StrategyBlock
from p2smt.training.formulas.stages import _DTYPES, _WHOLE, MixtureColumns, StrategyColumns
from p2smt.training.search.known import DEGREES, SWITCHES, UNCOUNTED
from p2smt.training.search.question import MIXTURE_SEARCHED, SEARCHED, SpaceLimits
from p2smt.training.strategy import (
    AXES,
    KEYS,
    MIXTURE_FIELDS,
    Recompute,
    Strategy,
    field_of,
    key_of,
)
from p2smt.training.validity import FIELDS, RULES
from tests.training.search.test_plan import cluster
from tests.training.search.test_plan_answers import SMALL, started

GIVEN = {"flash", "dtype", "split", "dropout", *MIXTURE_FIELDS}
"""Fields that a search of dense models does not choose."""
IN_OTHERS = {"modules", "recompute_layers", "mtp_chunk"}
"""Fields without a key: of recompute=moe_act+layernorm, recompute=full:7 and split=4/3m/0."""
OTHERS = {"recompute"}
"""Those of which any value may go with any others."""


def names(kind: type) -> list[str]:
    return [field.name for field in fields(kind)]


def vars_of(strategy: Strategy) -> dict[str, Any]:
    return {name: getattr(strategy, name) for name in names(Strategy)}


def once(listed: tuple[str, ...]) -> set[str]:
    """The names of a list, none of which is in it twice."""
    assert len(set(listed)) == len(listed)
    return set(listed)


def test_what_is_searched_is_all_but_what_is_given() -> None:
    assert once(SEARCHED) == set(names(Strategy)) - GIVEN
    assert set(AXES) < set(SEARCHED)


def test_lists_of_searched_fields_hold_all_of_them() -> None:
    moved = {"dispatcher", "overlap"}  # how tokens move counts for no distance
    assert once((*DEGREES, *SWITCHES)) == {*SEARCHED, *MIXTURE_SEARCHED} - moved
    counted = once((*DEGREES, *SWITCHES, *UNCOUNTED))
    assert counted == {one.name for one in fields(Strategy)} - {"split", *IN_OTHERS}
    assert once(FIELDS) == set(SEARCHED) - OTHERS
    assert {name for rule in RULES for name in rule.fields} <= set(FIELDS)


def test_equally_fast_strategies_are_told_apart_by_every_field() -> None:
    question = replace(SMALL, topology=cluster((2, 4), (1e8, 1e10)), space=SpaceLimits(cp=2))
    bounds_table, _ = started(question)
    columns = bounds_table.candidates.columns
    assert all(len(np.unique(getattr(columns, name))) > 1 for name in SEARCHED)
    plainness = bounds_table._plainness(bounds_table.candidates.work.memory_bytes)
    assert len({plainness(row) for row in range(len(columns))}) == len(columns)


def test_columns_texts_and_files_have_every_field() -> None:
    *own, mixture, sequences = names(StrategyColumns)
    assert (mixture, sequences) == ("mixture", "sequences")  # the latter of a range of batches
    dense = [{"splits": "split"}.get(name, name) for name in own]
    assert [*dense, *MIXTURE_FIELDS] == names(Strategy)
    assert once(tuple(names(MixtureColumns))) == set(MIXTURE_FIELDS)
    assert once(tuple(_DTYPES)) == set(dense) - {"recompute", "split"}
    whole = {name for name in dense if type(getattr(Strategy(), name)) is int}
    assert once(_WHOLE) == whole
    assert once(tuple(field_of(key, key) for key in KEYS)) == set(names(Strategy)) - IN_OTHERS
    assert [key_of(field_of(key, key)) for key in KEYS] == list(KEYS)
    assert list(StrategyBlock.model_fields) == names(Strategy)


def test_columns_keep_every_field() -> None:
    """No value is the default, but of what is computed again the one or the other."""
    other = Strategy(2, 3, 4, 5, 6, 7, True, 3, Recompute.FULL, False, "mxfp8", (1, *[2] * 17))
    other = replace(other, dropout=True, fp8_params=False, ep=8, etp=9, dispatcher="flex")
    other = replace(other, overlap=True, graphs="partial", fp8_attention=True, recompute_layers=7)
    other = replace(other, dp_replicate=2, shared_overlap=True, mtp_chunk=18)
    other = replace(other, imbalance=1.5, optimizer_bytes=8, offload=0.25)
    modules = replace(other, recompute=Recompute.NONE, recompute_layers=0)
    modules = replace(modules, modules=("moe", "moe_act"))
    plain = Strategy()
    given = {**vars_of(other), "modules": modules.modules}
    assert all(given[name] != value for name, value in vars_of(plain).items())
    columns = StrategyColumns.of((plain, other, modules))
    assert [columns.strategy(row) for row in range(3)] == [plain, other, modules]
    assert columns.take(np.array([2])).strategy(0) == modules
