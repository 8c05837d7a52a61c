"""Models by name and from files: sizes as published, and one clear line for what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.files.yaml_text import dump_yaml, load_yaml
from p2smt.training.model_file import (
    dump_transformer,
    model_from_data,
    model_names,
    model_text,
    read_model,
)
from p2smt.training.transformer import Transformer
from tests.strategies.draws import Draws, draws

SMALL = """\
name: small
layers: 4
hidden: 64
heads: 8
kv_heads: 2
ffn: 256
gated: true
vocab: 1000
"""
# Of every measured run: name, layers, hidden, heads, kv_heads, ffn, gated, vocab.
MEASURED = [
    ("gpt-7.5b", 36, 4096, 32, 32, 16384, False, 51200),
    ("gpt-76b", 60, 10240, 80, 80, 40960, False, 51200),
    ("gpt-145b", 80, 12288, 96, 96, 49152, False, 51200),
    ("gpt-310b", 96, 16384, 128, 128, 65536, False, 51200),
    ("gpt-530b", 105, 20480, 128, 128, 81920, False, 51200),
    ("gpt-1t", 128, 25600, 160, 160, 102400, False, 51200),
    ("gpt-3-175b", 96, 12288, 96, 96, 49152, False, 51200),
    ("turing-530b", 105, 20480, 128, 128, 81920, False, 51200),
    ("megatron-22b", 48, 6144, 64, 64, 24576, False, 51200),
    ("megatron-1t", 128, 25600, 160, 160, 102400, False, 51200),
    ("megatron-1.7b", 24, 2048, 16, 16, 8192, False, 131072),
    ("megatron-7.1b", 30, 4096, 32, 32, 16384, False, 131072),
    ("megatron-119b", 92, 10240, 80, 80, 40960, False, 131072),
    ("megatron-177b", 96, 12288, 96, 96, 49152, False, 131072),
    ("megatron-314b", 96, 16384, 128, 128, 65536, False, 131072),
    ("megatron-462b", 112, 18432, 144, 144, 73728, False, 131072),
    ("llama-3-405b", 126, 16384, 128, 8, 53248, True, 128256),
    ("llama-3-8b", 32, 4096, 32, 8, 14336, True, 128256),
    ("llama-3-70b", 80, 8192, 64, 8, 28672, True, 128256),
    ("llama-3-405b-7-layers", 7, 16384, 128, 8, 53248, True, 128256),
    ("llama-3-405b-21-layers", 21, 16384, 128, 8, 53248, True, 128256),
    ("llama-3-405b-42-layers", 42, 16384, 128, 8, 53248, True, 128256),
    ("nemotron-4-15b", 32, 6144, 48, 8, 24576, False, 256000),
    ("mpt-30b", 48, 7168, 64, 64, 28672, False, 50368),
    ("mpt-13b", 40, 5120, 40, 40, 20480, False, 50368),
    ("mpt-7b", 32, 4096, 32, 32, 16384, False, 50368),
    ("mpt-3b", 32, 2560, 20, 20, 10240, False, 50368),
    ("mpt-1b", 24, 2048, 16, 16, 8192, False, 50368),
    ("gpt-30x3072", 30, 3072, 32, 32, 12288, False, 51200),
    ("gpt-24x1024", 24, 1024, 16, 16, 4096, False, 51200),
    ("gpt-16x1024", 16, 1024, 16, 16, 4096, False, 51200),
    ("gpt-20x1024", 20, 1024, 16, 16, 4096, False, 51200),
    ("gpt-24x2048", 24, 2048, 16, 16, 8192, False, 51200),
    ("gpt-16x2048", 16, 2048, 16, 16, 8192, False, 51200),
    ("gpt-20x2048", 20, 2048, 16, 16, 8192, False, 51200),
    ("gpt-12x2048", 12, 2048, 16, 16, 8192, False, 51200),
]
# Billions of parameters: as published, in a paper or on a model card.
PUBLISHED = {
    "gpt-3-175b": 174.6,
    "gpt-7.5b": 7.5,
    "gpt-76b": 76.1,
    "gpt-145b": 145.6,
    "gpt-310b": 310.1,
    "gpt-530b": 529.6,
    "gpt-1t": 1008.0,
    "turing-530b": 529.6,
    "megatron-22b": 22.0,
    "megatron-1t": 1008.0,
    "megatron-7.1b": 7.1,
    "megatron-119b": 119,
    "megatron-177b": 177,
    "megatron-314b": 314,
    "megatron-462b": 462,
    "llama-2-7b": 6.7,
    "llama-2-13b": 13.0,
    "llama-2-70b": 69.0,
    "llama-3-8b": 8.0,
    "llama-3-70b": 70.6,
    "llama-3-405b": 405.9,
    "qwen-2.5-7b": 7.6,
    "qwen-2.5-32b": 32.8,
    "qwen-2.5-72b": 72.7,
    "qwen-3-8b": 8.2,
    "qwen-3-32b": 32.8,
    "nemotron-4-15b": 15.6,
    "nemotron-4-340b": 341,
    "mpt-7b": 6.65,
    "mpt-30b": 30.0,
}


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: str(row[0]))
def test_every_measured_model_has_a_name(
    row: tuple[str, int, int, int, int, int, bool, int],
) -> None:
    model = read_model(str(row[0]))
    sizes = (model.layers, model.hidden, model.heads, model.kv_heads, model.ffn)
    assert (model.name, *sizes, model.gated, model.vocab) == row
    assert model.query_width == model.hidden


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_as_many_as_published(name: str) -> None:
    """Norms and biases, which are left out, are less than one in two hundred."""
    assert read_model(name).parameters / 1e9 == pytest.approx(PUBLISHED[name], rel=0.006)


def test_heads_may_be_wider_than_the_hidden_size() -> None:
    model = read_model("qwen-3-32b")
    assert (model.hidden, model.query_width, model.key_width) == (5120, 8192, 1024)


@pytest.mark.parametrize("name", model_names())
def test_presets_have_their_own_name_and_sources(name: str) -> None:
    model = read_model(name)
    assert model.name == name
    assert model.sources
    assert all(source.startswith("https://") for source in model.sources)
    assert model_from_data(dump_transformer(model), "data") == model


@pytest.mark.parametrize("name", model_names())
def test_a_vocabulary_that_is_padded_says_so(name: str) -> None:
    """The comment tells how many tokens there are, or that there are fewer."""
    (line,) = [line for line in model_text(name).splitlines() if line.startswith("vocab:")]
    padded = read_model(name).vocab in (51_200, 50_368, 151_936, 152_064)
    assert ("#" in line) == padded


SIZES = st.integers(1, 10**6)


@given(draws())
def test_models_read_back(data: Draws) -> None:
    kv_heads = data.draw(st.integers(1, 64))
    model = Transformer(
        data.draw(st.text("ab-1", min_size=1)),
        *(data.draw(SIZES), data.draw(SIZES), kv_heads * data.draw(st.integers(1, 64)), kv_heads),
        *(data.draw(SIZES), data.draw(st.booleans()), data.draw(SIZES), data.draw(SIZES)),
        tied=data.draw(st.booleans()),
        sources=data.draw(st.lists(st.text("xyz", min_size=1), max_size=2).map(tuple)),
    )
    text = dump_yaml(dump_transformer(model))
    assert model_from_data(load_yaml(text, "yaml"), "yaml") == model
    assert model_from_data(json.loads(json.dumps(dump_transformer(model))), "json") == model


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL)
    model = read_model(str(path))
    assert model == Transformer("small", 4, 64, 8, 2, 256, True, 1000, 8)
    path.write_text(SMALL.replace("kv_heads: 2\n", "") + "head_size: 32\ntied: true\n")
    assert read_model(str(path)) == replace(model, kv_heads=8, head_size=32, tied=True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("layers: 4\n", "", "layers: this key is missing"),
        ("layers: 4", "layer: 4", "unknown key 'layer'.*did you mean 'layers'"),
        ("layers: 4", "layers: 0", "layers 0: must be 1 to"),
        ("layers: 4", "layers: four", "layers 'four': must be a whole number"),
        ("vocab: 1000", "vocab: 99999999", "vocab 99999999: must be 1 to"),
        ("kv_heads: 2", "kv_heads: 3", "8 heads, 3 kv_heads: kv_heads must divide heads"),
        ("heads: 8", "heads: 6", "hidden 64, 6 heads: heads must divide hidden.*add head_size"),
        ("heads: 8", "heads: 0", "hidden 64, 0 heads"),
        ("gated: true", "gated: 2", "gated 2: must be true or false"),
        ("name: small", "name: ''", "name '': must not be empty"),
        ("vocab: 1000", "vocab: 1000\nexperts: 8", "key experts: a mixture of experts"),
        ("name: small", "model_type: llama", "key model_type: is a key of a config.json"),
        (SMALL, "[1, 2]", "must be a mapping"),
        (SMALL, "", "is empty"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    path = tmp_path / "bad.yaml"
    path.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        read_model(str(path))
    assert "\n" not in str(caught.value)
    assert "bad.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lama-3-70b", "is neither a known model nor a file; did you mean llama-3-70b,"),
        ("Llama-3-70B", "did you mean llama-3-70b"),
        ("qwen", "did you mean .*qwen-3-8b"),
        ("zzzz", "the models are gpt-12x2048, .*, turing-530b"),
        ("x" * 400, "the models are"),
        ("deepseek-v3", "is a mixture of experts"),
        ("mixtral-8x7b", "is a mixture of experts"),
        ("qwen-3-30b-a3b", "is a mixture of experts"),
        ("no/such/file", "cannot be read"),
        ("missing.yaml", "cannot be read"),
    ],
)
def test_an_unknown_name_lists_near_ones(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_model(name)


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        read_model(str(tmp_path))


def test_there_is_no_text_of_an_unknown_model() -> None:
    with pytest.raises(InputError, match="neither a known model"):
        model_text("../../pyproject")
