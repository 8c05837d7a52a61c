"""The ``training`` block of a plan file: written from an estimate, and read back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from p2smt.plans.problem import located
from p2smt.plans.training.file_model import (
    ATTENTION,
    EXPERTS,
    MemoryBlock,
    PredictionBlock,
    PricedBlock,
    TrainingBlock,
    VisibleBlock,
)
from p2smt.result import SAME
from p2smt.training.efficiency import Efficiency, Framework, LayerConstants, TrainingRun
from p2smt.training.model_file import build_transformer, dump_transformer
from p2smt.training.prediction import Prediction, RunEstimate
from p2smt.training.strategy import MIXTURE_FIELDS, Batch, Recompute, Strategy


def training_data(found: RunEstimate) -> dict[str, Any]:
    """The block as plain data, valid under :class:`TrainingBlock`."""
    return {
        "model": dump_transformer(replace(found.run.model, sources=())),
        "batch": asdict(found.run.batch),
        "strategy": _strategy(found.run.strategy),
        "efficiency": _constants(found.efficiency),
        "memory_bytes": found.capacity_bytes,
        "prediction": prediction_block(found.prediction).model_dump(),
        **_placement(found),
    }


def _placement(found: RunEstimate) -> dict[str, Any]:
    """Both matrices of a mixture, on hosts the ranks of its experts; nothing of other models, or
    where no matrix expresses them."""
    if found.run.model.experts is not None and (lie := found.on_hosts) is not None:
        return {"placement": {"expert_ranks": list(lie.of_experts(found.run.strategy).ranks)}}
    if found.run.model.experts is None or found.placement is None or found.experts is None:
        return {}
    both = {ATTENTION: found.placement, EXPERTS: found.experts}
    return {"placement": {name: [list(row) for row in one.matrix] for name, one in both.items()}}


def _strategy(strategy: Strategy) -> dict[str, Any]:
    """A strategy as plain data; of the fields of mixtures those that are not the defaults."""
    usual, found = asdict(Strategy()), asdict(strategy)
    left_out = {name for name in MIXTURE_FIELDS if found[name] == usual[name]}
    listed = {name: list(found[name]) for name in ("split", "modules")}
    found |= {"recompute": strategy.recompute.value, **listed}
    return {name: value for name, value in found.items() if name not in left_out}


def _constants(efficiency: Efficiency) -> dict[str, Any]:
    """An efficiency as plain data; without constants by kinds of layers where it has none."""
    found = asdict(efficiency)
    if efficiency.layers is None:
        del found["layers"]
    else:
        found["layers"]["low"] = dict(efficiency.layers.low)
    return found


def prediction_block(prediction: Prediction) -> PredictionBlock:
    """What was predicted, as a plan file has it."""
    time = prediction.time
    return PredictionBlock(
        iteration_s=time.iteration_s,
        compute_s=time.compute_s,
        bubble_s=time.bubble_s,
        optimizer_s=time.optimizer_s,
        communication=[VisibleBlock(axis=axis, seconds=s) for axis, s in time.communication_s],
        memory=MemoryBlock(**asdict(prediction.memory)),
        requests=[
            PricedBlock(
                name=one.request.name,
                call_s=one.call_s,
                visible_s=one.visible_s,
                hidden_s=one.hidden_s,
            )
            for one in prediction.requests
        ],
        model_flops=prediction.model_flops,
    )


def run_of(block: TrainingBlock, source: str) -> TrainingRun:
    """The run that a block tells of.

    Raises:
        InputError: sizes that make no model or strategy; names ``source``.
    """
    with located(f"{source}: training"):
        strategy = block.strategy.model_dump()
        strategy |= {
            "recompute": Recompute(strategy["recompute"]),
            "split": tuple(strategy["split"]),
            "modules": tuple(strategy["modules"]),
        }
        model = build_transformer(block.model, f"{source}: training")
        return TrainingRun(model, Batch(**block.batch.model_dump()), Strategy(**strategy))


def efficiency_in(block: TrainingBlock, source: str) -> Efficiency:
    """The constants in a block.

    Raises:
        InputError: they are none; names ``source``.
    """
    with located(f"{source}: training"):
        values = block.efficiency.model_dump()
        layers = values.pop("layers")
        if layers is not None:
            layers = LayerConstants(**layers | {"low": tuple(sorted(layers["low"].items()))})
        values["framework"] = Framework(**values["framework"])
        return Efficiency(**values, layers=layers)


def misstated(said: PredictionBlock, found: Prediction) -> Iterator[str]:
    """What a block says otherwise than the model of cost finds, number by number."""
    yield from _differ("", said.model_dump(), prediction_block(found).model_dump())


def _differ(where: str, said: Any, found: Any) -> Iterator[str]:
    match said, found:
        case dict(), dict():
            for key, value in found.items():
                yield from _differ(f"{where}.{key}" if where else key, said[key], value)
        case list(), list():
            if len(said) != len(found):
                yield f"training {where} has {len(said)} entries, the model of cost {len(found)}"
                return
            for number, (one, other) in enumerate(zip(said, found, strict=True)):
                yield from _differ(f"{where}[{number}]", one, other)
        case float(), float() | int():
            if abs(said - found) > SAME * max(abs(found), 1e-30):
                yield f"training {where} says {said}, the model of cost {found}"
        case _:
            if said != found:
                yield f"training {where} says {said}, the model of cost {found}"
