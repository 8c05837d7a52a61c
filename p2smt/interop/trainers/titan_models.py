"""The models that TorchTitan has configurations for, told by their sizes.

Source: ``torchtitan/models/{llama3,qwen3}/config_registry.py`` and ``__init__.py``; those that
compute in bf16.  ``llama3_405b`` computes in float8, so it is none of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.workload.transformer import Transformer

TitanSizes = tuple[int, int, int, int, int, int, int, bool]
"""Layers, hidden, heads, kv_heads, ffn, vocab, head_size, whether tied."""
_LLAMA, _QWEN = 131072, 40960


@dataclass(frozen=True, slots=True)
class TitanModel:
    """A configuration: what ``--module`` and ``--config`` name, and its longest sequence."""

    module: str
    config: str
    most_tokens: int


_MODELS: dict[TitanSizes, TitanModel] = {
    (32, 4096, 32, 8, 14336, 128256, 128, False): TitanModel("llama3", "llama3_8b", _LLAMA),
    (80, 8192, 64, 8, 28672, 128256, 128, False): TitanModel("llama3", "llama3_70b", _LLAMA),
    (28, 1024, 16, 8, 3072, 151936, 128, True): TitanModel("qwen3", "qwen3_0_6b", _QWEN),
    (28, 2048, 16, 8, 6144, 151936, 128, True): TitanModel("qwen3", "qwen3_1_7b", _QWEN),
    (40, 5120, 40, 8, 17408, 151936, 128, False): TitanModel("qwen3", "qwen3_14b", _QWEN),
    (64, 5120, 64, 8, 25600, 151936, 128, False): TitanModel("qwen3", "qwen3_32b", _QWEN),
}


def titan_model(model: Transformer) -> TitanModel | None:
    """The configuration that has these sizes, if there is one."""
    sizes = (model.layers, model.hidden, model.heads, model.kv_heads, model.ffn, model.vocab)
    return _MODELS.get((*sizes, model.head_size, model.tied))
