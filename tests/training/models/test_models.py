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
from p2smt.training.model_file import dump_transformer, model_from_data, read_model
from p2smt.training.model_names import known_as, model_names, model_text
from p2smt.training.transformer import (
    Attention,
    Experts,
    LatentAttention,
    LayerKind,
    LayerRun,
    Mamba,
    Mlp,
    Transformer,
)
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


def experts_of(data: Draws) -> Experts:
    groups = data.draw(st.integers(0, 4))
    count = max(groups, 1) * data.draw(st.integers(1, 64))
    top = data.draw(st.integers(1, groups)) if groups else 0
    active, width = data.draw(st.integers(1, count)), data.draw(st.integers(1, 10**4))
    shared, latent = data.draw(st.integers(0, 99)), data.draw(st.integers(0, 99))
    return Experts(count, active, width, shared, latent, groups, top)


def some_kinds(data: Draws) -> list[LayerKind]:
    kinds = st.builds(LayerKind, st.sampled_from(Attention), st.sampled_from(Mlp))
    return data.draw(st.lists(kinds, min_size=1, max_size=12))


@given(draws())
def test_models_read_back(data: Draws) -> None:
    kv_heads = data.draw(st.integers(1, 64))
    kinds = data.draw(st.sampled_from([[], some_kinds(data)]))
    has = {kind.attention for kind in kinds} | {kind.mlp for kind in kinds}
    mixed = Mlp.EXPERTS in has if kinds else data.draw(st.booleans())
    model = Transformer(
        data.draw(st.text("ab-1", min_size=1)),
        layers=len(kinds) or data.draw(SIZES),
        hidden=data.draw(SIZES),
        heads=kv_heads * data.draw(st.integers(1, 64)),
        kv_heads=kv_heads,
        ffn=data.draw(SIZES),
        gated=data.draw(st.booleans()),
        vocab=data.draw(SIZES),
        head_size=data.draw(SIZES),
        tied=data.draw(st.booleans()),
        sources=data.draw(st.lists(st.text("xyz", min_size=1), max_size=2).map(tuple)),
        experts=experts_of(data) if mixed else None,
        mla=LatentAttention(*(data.draw(st.integers(1, 999)) for _ in range(5)))
        if data.draw(st.booleans())
        else None,
        mamba=Mamba(8, 64, 2, 128) if Attention.MAMBA in has else None,
        window=data.draw(st.integers(1, 9999)) if Attention.WINDOW in has else 0,
        chunked=data.draw(st.booleans()),
        order=LayerRun.of(kinds),
        mtp=data.draw(st.integers(0, 3)),
    )
    text = dump_yaml(dump_transformer(model))
    assert model_from_data(load_yaml(text, "yaml"), "yaml") == model
    assert model_from_data(json.loads(json.dumps(dump_transformer(model))), "json") == model


KINDS = st.builds(LayerKind, st.sampled_from(Attention), st.just(Mlp.DENSE))


@given(st.lists(KINDS, min_size=1, max_size=4), st.integers(1, 9), st.lists(KINDS, max_size=4))
def test_runs_have_the_layers_that_they_are_made_of(
    period: list[LayerKind], times: int, rest: list[LayerKind]
) -> None:
    kinds = period * times + rest
    runs = LayerRun.of(kinds)
    assert [kind for run in runs for _ in range(run.repeat) for kind in run.kinds] == kinds
    assert sum(run.layers for run in runs) == len(kinds)


# Billions of parameters of all layers, and of those that a token meets, by the models' makers or
# their configurations; norms and biases are less than one in a thousand.
MIXTURES = {
    "deepseek-v3": (671.026, 37.552),
    "deepseek-v2": (235.741, 21.376),
    "deepseek-v2-lite": (15.706, 2.661),
    "kimi-k2": (1026.408, 32.861),
    "qwen3-235b-a22b": (235.094, 22.191),
    "qwen3-30b-a3b": (30.532, 3.353),
    "mixtral-8x7b": (46.703, 12.880),
    "mixtral-8x22b": (140.630, 39.161),
    "gpt-oss-120b": (116.829, 5.710),
    "gpt-oss-20b": (20.915, 4.186),
    "llama-4-scout": (107.770, 17.173),
    "llama-4-maverick": (400.712, 17.185),
    "granite-3.0-1b-a400m": (1.335, 0.429),
    "granite-3.0-3b-a800m": (3.299, 0.883),
    "olmoe-1b-7b": (6.919, 1.282),
    "phi-3.5-moe": (41.873, 6.640),
    "grok-1": (315.684, 83.756),
    "qwen1.5-moe-a2.7b": (14.316, 2.689),
    "qwen2-57b-a14b": (57.409, 14.249),
    "dbrx": (131.597, 36.470),
    "glm-4.5": (352.796, 33.631),
    "glm-4.5-air": (106.852, 13.423),
    "minimax-m2": (228.689, 11.030),
    "nemotron-3-nano": (31.578, 3.579),
    "nemotron-3-super": (120.669, 12.768),
    "nemotron-3-ultra": (549.309, 56.054),
    "gemma-2-9b": (9.24, 9.24),
    "gemma-3-27b": (27.01, 27.01),
    "mistral-7b-v0.1": (7.242, 7.242),
    "phi-4": (14.66, 14.66),
    "llama-3.2-1b": (1.236, 1.236),
    "llama-3.2-3b": (3.213, 3.213),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_have_as_many_parameters_as_published(name: str) -> None:
    model, (whole, active) = read_model(name), MIXTURES[name]
    assert model.parameters / 1e9 == pytest.approx(whole, rel=0.001)
    assert model.active_parameters / 1e9 == pytest.approx(active, rel=0.001)


@pytest.mark.parametrize(
    ("name", "tokens", "billions"),
    [  # published TFLOP/s over published tokens/s
        ("deepseek-v3", 4096, 259.99),
        ("kimi-k2", 4096, 204.48),
        ("qwen3-30b-a3b", 4096, 23.01),
        ("llama-3-70b", 8192, 449.22),
        ("gpt-oss-120b", 4096, 32.63),
    ],
)
def test_operations_of_a_token_are_those_that_frameworks_count(
    name: str, tokens: int, billions: float
) -> None:
    assert read_model(name).token_flops(tokens) / 1e9 == pytest.approx(billions, rel=0.001)


@given(st.integers(1, 40), st.integers(1, 12), st.booleans())
def test_windows_and_chunks_see_what_a_mask_lets_them(
    tokens: int, window: int, chunked: bool
) -> None:
    """Pairs of a token and one that it may attend to, its own counted half as frameworks do."""
    order = (LayerRun(1, (LayerKind(Attention.WINDOW),)),)
    model = Transformer(
        *("m", 1, 8, 1, 1, 8, True, 8, 8), window=window, chunked=chunked, order=order
    )
    met = 0.0
    for one in range(tokens):
        first = one // window * window if chunked else max(0, one - window + 1)
        met += one - first + 0.5
    full = replace(model, window=0, chunked=False, order=())
    core = model.token_flops(tokens) - full.token_flops(tokens) + 3 * 4 * 8 * tokens / 2
    exact = 3 * 4 * 8 * met / tokens
    # a sliding window is counted as continuous: half a token of each row that is cut is left out
    cut = 0 if chunked else max(0, tokens - window) / 2 / tokens * 3 * 4 * 8
    assert core == pytest.approx(exact + cut)


def test_a_window_no_shorter_than_the_sequence_is_none() -> None:
    windowed, plain = read_model("mistral-7b-v0.1"), read_model("mistral-7b-v0.3")
    same = replace(plain, name=windowed.name, vocab=windowed.vocab, sources=windowed.sources)
    assert windowed.seen(4096) == same
    assert windowed.seen(4097) == windowed
    scout = read_model("llama-4-scout").seen(8192)
    assert scout.order == ()
    maverick = read_model("llama-4-maverick").seen(8192)
    assert {kind.attention for kind in maverick.kinds()} == {Attention.FULL}
    assert maverick.kinds()[LayerKind(mlp=Mlp.DENSE)] == 24


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("llama-3.1-405b", "llama-3-405b"),
        ("meta-llama/Llama-3.1-405B", "llama-3-405b"),
        ("Meta-Llama-3-70B-Instruct", "llama-3-70b"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"),
        ("deepseek_v3", "deepseek-v3"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b"),
        ("qwen-3-235b-a22b", "qwen3-235b-a22b"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b-v0.1"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron-3-nano"),
        ("moonshotai/Kimi-K2-Instruct-0905", "kimi-k2"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("zai-org/GLM-4.5-Air-FP8", "glm-4.5-air"),
        ("Llama-3.3-70B-Instruct", "llama-3-70b"),
        ("phi4", "phi-4"),
    ],
)
def test_models_are_found_by_usual_writings(written: str, name: str) -> None:
    assert known_as(written) == name
    assert read_model(written) == read_model(name)


@pytest.mark.parametrize("name", model_names())
def test_no_two_names_are_written_alike(name: str) -> None:
    assert known_as(name) == name


def test_a_file_is_no_known_name_and_is_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text("{}")
    with pytest.raises(InputError, match="is a file, not the name of a known model") as error:
        known_as("config.json")
    assert "-m config.json" in error.value.remedy
