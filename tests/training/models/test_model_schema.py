"""The schema of model files refuses what their reader refuses, but for how sizes divide."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.training.model_file import dump_transformer, model_from_data, read_model
from p2smt.training.model_names import model_names
from tests.refusals import found_or_refusal
from tests.schemas.mutations import mutants
from tests.schemas.tools import complaints

ACROSS_KEYS = ("must divide",)
"""What the schema leaves out, as its comment says."""
MODELS = [dump_transformer(read_model(name)) for name in ("gpt-3-175b", "qwen-3-8b")]


@pytest.mark.parametrize("name", model_names())
def test_presets_fit_their_schema(name: str) -> None:
    assert complaints("model", dump_transformer(read_model(name))) == []


@given(st.sampled_from(MODELS).flatmap(mutants))
def test_models(data: dict[str, Any]) -> None:
    found = complaints("model", data)
    _, said = found_or_refusal(model_from_data, data, "it")
    assert bool(said) == bool(found) or any(reason in said for reason in ACROSS_KEYS), (said, found)
