"""DeepSpeed's rules on its configuration as they stand in its sources, written anew.

deepspeedai/DeepSpeed, commit edaa7221267243c7be7fb49c5d5f5c4fb97b4641; files below ``deepspeed/``.
``cf`` is ``runtime/config.py``, ``pe`` ``runtime/pipe/engine.py``, ``pm``
``runtime/pipe/module.py``, ``en`` ``runtime/engine.py``.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from p2smt.training.strategy import Recompute
from p2smt.training.transformer import Transformer
from tests.interop.trainers.started import Started, require

KEYS = {
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "bf16",
    "fp16",
    "zero_optimization",
    "tensor_parallel",
}


def start(text: str, notes: Sequence[str], ranks: int, model: Transformer) -> Started:
    """What DeepSpeed would run on so many ranks.

    notes: say how the model is made: the arguments of ``PipelineModule``, or checkpointed layers.

    Raises:
        Refused: it would not.
    """
    config: dict[str, Any] = json.loads(text)
    require(set(config) <= KEYS, "keys that nothing reads")
    pipeline = _pipeline_module(notes)
    tp = int(config.get("tensor_parallel", {}).get("autotp_size", 0)) or 1
    pp = int(pipeline["num_stages"]) if pipeline else 1
    require(not pipeline or model.mtp == 0, "no strategy: MTP is no item of the list of layers")
    require(ranks % (tp * pp) == 0, "pm 166-168; utils/groups.py")
    dp = ranks // (tp * pp)
    micro_batch, steps = _counts(config)
    # cf 708-727: without an mpu the world is all ranks, AutoTP's too; a pipeline brings one
    world = dp if pipeline else ranks
    if "train_batch_size" in config:
        require(config["train_batch_size"] == micro_batch * steps * world, "cf 937-940")
    zero = int(config.get("zero_optimization", {}).get("stage", 0))
    require(0 <= zero <= 3, "cf 1024-1027")
    require(not pipeline or zero < 2, "pe 76-77")
    require(not pipeline or tp == 1, "__init__.py 242: a pipeline is its own mpu, AutoTP another")
    require(tp <= model.kv_heads, "en 759-768: ranks beyond hold no attention")
    return Started(
        degrees=(pp, dp, 1, tp),
        chunks=_chunks(pipeline, pp, model.layers),
        micro_batch=micro_batch,
        micro_batches=steps,
        batch=(micro_batch * steps * dp, None),
        sequence_parallel=False,
        zero=zero if dp > 1 else 0,
        recompute=_recompute(pipeline, notes),
        flash=None,
        dtype=_dtype(config),
        sizes=None,
        dropout=None,
    )


def _counts(config: Mapping[str, Any]) -> tuple[int, int]:
    """Sequences of a micro-batch, and micro-batches; cf 925-935, 1018-1022."""
    keys = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    require(all(key in config for key in keys), "left to arithmetic")
    micro_batch, steps = (int(config[key]) for key in keys)
    require(micro_batch > 0 and steps > 0, "cf 931-935")
    return micro_batch, steps


def _pipeline_module(notes: Sequence[str]) -> dict[str, Any]:
    """The arguments of ``PipelineModule`` after the layers, as the note has them."""
    for note in notes:
        found = re.search(r"PipelineModule\(.*\)$", note)
        if found:
            call = ast.parse(found[0], mode="eval").body
            assert isinstance(call, ast.Call)
            assert ast.unparse(call.args[0]) == "[embedding, *layers, logits]"
            return {str(key.arg): ast.literal_eval(key.value) for key in call.keywords}
    return {}


def _chunks(pipeline: Mapping[str, Any], pp: int, layers: int) -> tuple[int, ...]:
    """Layers of the stages; embedding and logits are items of the list, too (pm 396-421)."""
    if not pipeline:
        return (layers,)
    if pipeline["partition_method"] == "uniform":  # runtime/utils.py 606-624
        each, more = divmod(layers + 2, pp)
        require(each > 0, "stages without anything")
        counts = [each + (stage < more) for stage in range(pp)]
        return (counts[0] - 1, *counts[1:-1], counts[-1] - 1)
    require(pipeline["partition_method"].startswith("type:"), "pm 418-421")
    require(layers % pp == 0, "balanced, but how is not said")
    return (layers // pp,) * pp


def _recompute(pipeline: Mapping[str, Any], notes: Sequence[str]) -> Recompute:
    """pm 222-233: each so many items of the list are computed again."""
    interval = pipeline.get("activation_checkpoint_interval", 0)
    require(interval in (0, 1), "no strategy: several layers are kept as one")
    called = any("every layer called by deepspeed.checkpointing.checkpoint" in n for n in notes)
    return Recompute.FULL if interval == 1 or called else Recompute.NONE


def _dtype(config: Mapping[str, Any]) -> str:
    on = [name for name in ("bf16", "fp16") if config.get(name, {}).get("enabled", False)]
    require(len(on) <= 1, "cf 827-828")
    return on[0] if on else "fp32"
