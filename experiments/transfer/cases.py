"""The twelve cases: a trainer's layout, a receiver's, and where the receiver's devices are.

Nodes are of eight devices, and receivers start behind the sources (1 to 8) or at device 0 (9 to
12).  Vocabularies are not padded beyond the parts of tp, stages whose layers do not divide are one
layer longer at first, experts have etp = 1, and the corrections that balance routers are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.interop.weights.table import layout_of
from p2smt.transfer.layouts import WeightLayout

NODE = 8
_QWEN_STAGES = "layout=Et*24|t*24|t*23|t*23L"
_DEEPSEEK_STAGES = "layout=Et*8|(t*8|)*4t*7|t*7|t*7L"
_LLAMA_405B_STAGES = "layout=Et*8|(t*8|)*13t*7|t*7L"
_ROUTER_BIAS = "e_score_correction_bias"


@dataclass(frozen=True, slots=True)
class TransferCase:
    """A case: a model, both layouts as ``transfer`` takes them, and the receiver's first device."""

    number: int
    model: str
    source: str
    target: str
    first: int

    def layouts(self) -> tuple[WeightLayout, WeightLayout]:
        """Both layouts, each on a mesh of its own."""
        source, target = (_plain(layout_of(one, self.model)) for one in (self.source, self.target))
        return source, target


def _plain(layout: WeightLayout) -> WeightLayout:
    """Without the corrections of routers."""
    names = [name for name in layout.tensors if not name.endswith(_ROUTER_BIAS)]
    if len(names) == len(layout.tensors):
        return layout
    tensors = {name: layout.tensors[name] for name in names}
    return WeightLayout(layout.devices, tensors, {name: layout.shards[name] for name in names})


_LLAMA = "megatron:tp=8,pp=4,dp=2,pad=1"
_QWEN = f"megatron:tp=4,pp=4,dp=4,ep=8,etp=1,pad=1,{_QWEN_STAGES}"
_DEEPSEEK = f"megatron:tp=1,pp=8,dp=16,ep=16,pad=1,{_DEEPSEEK_STAGES}"
_DEEPSEEK_512 = f"megatron:tp=4,pp=8,dp=16,ep=32,etp=1,pad=1,{_DEEPSEEK_STAGES}"
_LLAMA_405B = f"megatron:tp=8,pp=16,dp=8,pad=1,{_LLAMA_405B_STAGES}"
CASES: tuple[TransferCase, ...] = (
    TransferCase(1, "llama-3-70b", _LLAMA, "vllm:tp=8,engines=8", 64),
    TransferCase(2, "llama-3-70b", _LLAMA, "vllm:tp=4,engines=16", 64),
    TransferCase(3, "llama-3-70b", _LLAMA, "vllm:tp=2,engines=32", 64),
    TransferCase(4, "qwen3-235b-a22b", _QWEN, "vllm:tp=16,engines=4", 64),
    TransferCase(5, "qwen3-235b-a22b", _QWEN, "vllm:tp=4,ep=4,engines=16", 64),
    TransferCase(6, "deepseek-v3", _DEEPSEEK, "vllm:tp=8,engines=16", 128),
    TransferCase(7, "deepseek-v3", _DEEPSEEK_512, "vllm:tp=8,ep=8,engines=32", 512),
    TransferCase(8, "llama-3-405b", _LLAMA_405B, "vllm:tp=8,engines=128", 1024),
    TransferCase(9, "llama-3-70b", "fsdp:dp=32", "fsdp:dp=24", 0),
    TransferCase(10, "llama-3-70b", "hsdp:dp=16,replicas=2", "hsdp:dp=12,replicas=2", 0),
    TransferCase(
        11,
        "llama-3-70b",
        "dtensor:a=8,b=4:Shard(0),Shard(1)",
        "jax:a=4,b=2,c=4:P(('b','c'),'a')",
        0,
    ),
    TransferCase(12, "llama-3-70b", "megatron:tp=8,pp=4,pad=1", "megatron:tp=4,pp=2,dp=3,pad=1", 0),
)
