"""Strategies, frameworks and efficiencies made in Python have values that mean something."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from p2smt.errors import InputError
from p2smt.training.efficiency import Efficiency, Framework
from p2smt.training.strategy import Recompute, Strategy

FRAMEWORK = Framework("some", True, 0.5, True, True, 4)
EFFICIENCY = Efficiency("one", "h100", FRAMEWORK, 0.5, 1e-3, 3, 0.02)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        *((key, (0, -1, 2.5, True, "2", nan)) for key in ("tp", "pp", "dp", "cp", "vpp", "ep")),
        ("etp", (0, 1.0)),
        ("micro_batch", (0, 1.0)),
        ("zero", (1.5, -1, 4, True)),
        ("sequence_parallel", (1, "yes", None)),
        ("flash", (0, "no")),
        ("recompute", ("none", 0)),
        ("dtype", ("xx", "fp4", "")),
        ("dispatcher", ("deepep", "")),
        ("overlap", (1, "yes")),
        ("graphs", ("some", True)),
        ("fp8_attention", (1, None)),
        ("split", ((1.5, 2), (True,), ("3",))),
    ],
)
def test_strategies_are_checked(field: str, values: tuple[Any, ...]) -> None:
    for value in values:
        with pytest.raises(InputError, match=f"^strategy {field}="):
            replace(Strategy(), **{field: value})


@pytest.mark.parametrize("modules", [("attention",), ("moe", "moe"), ("",)])
def test_modules_are_checked(modules: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"^strategy recompute="):
        Strategy(modules=modules)


def test_modules_are_none_of_what_is_computed_again_whole() -> None:
    for kind in (Recompute.SELECTIVE, Recompute.FULL):
        with pytest.raises(InputError, match=f"^strategy recompute={kind.value}"):
            Strategy(recompute=kind, modules=("moe",))


@pytest.mark.parametrize(
    ("field", "values", "good"),
    [
        ("pp_hidden", (-0.1, 1.1, nan), (0.0, 1.0)),
        ("attention", (0.0, -1.0, 1.1, nan, inf), (0.1, 1.0)),
        ("gradient_bytes", (0, -4, 9, 2.5), (1, 8)),
        ("gradient_bytes_fp16", (0, 9), (2, 4)),
    ],
)
def test_frameworks_are_checked(field: str, values: tuple[Any, ...], good: tuple[Any, ...]) -> None:
    for value in values:
        with pytest.raises(InputError, match=f"^framework some: {field} "):
            replace(FRAMEWORK, **{field: value})
    for value in good:
        assert getattr(replace(FRAMEWORK, **{field: value}), field) == value


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("fraction", (0.0, 1.1, -1.0, nan)),
        ("layer_s", (-1.0, nan, inf)),
        ("runs", (-1,)),
        ("error", (-0.1, nan, inf)),
    ],
)
def test_efficiencies_are_checked(field: str, values: tuple[Any, ...]) -> None:
    for value in values:
        with pytest.raises(InputError, match=r"^efficiency one: "):
            replace(EFFICIENCY, **{field: value})
