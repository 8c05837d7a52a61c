"""What the keys of schemas mean, where their models do not say it key by key.

In this order: ``WORDS`` of that model's key; the clauses that name the key in the docstring of its
model, or of the class that the model stands for; what is said of the values of its list or of its
alternatives; ``WORDS`` of the key.  A key that refers to a model is described by that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from p2smt.cluster.link import Device, Link
from p2smt.cluster.topology import Topology
from p2smt.collectives.dispatch import Dispatch
from p2smt.plans.file_model import PlanModel, RequestModel
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.steps import MemoryLimit
from p2smt.training.efficiency import Efficiency, Framework, LayerConstants
from p2smt.training.strategy import Batch, Strategy
from p2smt.training.transformer import Experts, LatentAttention, Mamba, Transformer

STANDS_FOR: Mapping[str, type] = MappingProxyType(
    {
        "BatchBlock": Batch,
        "DeviceModel": Device,
        "DispatchModel": Dispatch,
        "EfficiencyBlock": Efficiency,
        "ExpertsModel": Experts,
        "FrameworkBlock": Framework,
        "LatentModel": LatentAttention,
        "LayersBlock": LayerConstants,
        "LinkModel": Link,
        "MambaModel": Mamba,
        "MemoryModel": MemoryLimit,
        "OldPlanModel": PlanModel,
        "OldRequestModel": RequestModel,
        "RedistributionModel": RedistributionPlan,
        "StrategyBlock": Strategy,
        "TopologyModel": Topology,
        "TransformerModel": Transformer,
    }
)
"""The class whose docstring says what the keys of a model mean, by the model's name."""


def with_descriptions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema, each of its properties with a description."""
    parts = {str(schema.get("title", "")): schema, **schema.get("$defs", {})}
    named = {name: _described(name, part) for name, part in parts.items()}
    own = named.pop(str(schema.get("title", "")))
    return own | ({"$defs": named} if "$defs" in schema else {})


def _described(name: str, part: Mapping[str, Any]) -> dict[str, Any]:
    if "properties" not in part:
        return dict(part)
    model = str(part.get("description", ""))
    told = {
        key: value | {"description": words}
        for key, value in part["properties"].items()
        if (words := description_of(name, key, value, model))
    }
    return {**part, "properties": {**part["properties"], **told}}


def description_of(name: str, key: str, value: Mapping[str, Any], model: str) -> str:
    """What a key of a model of that name means; ``model``: the model's own description.

    Empty: the key refers to a model, which says it.
    """
    if "description" in value:
        return str(value["description"])
    if special := WORDS.get(f"{name}.{key}"):
        return special
    stands_for = STANDS_FOR.get(name)
    for text in (model, (stands_for and stands_for.__doc__) or ""):
        if said := _clauses(text, key):
            return said
    general = "" if _refers(value) else WORDS.get(key, "")
    return next(_inside(value), "") or general


def _clauses(text: str, key: str) -> str:
    """The line or the clauses of a docstring that name a key, as one text."""
    line = re.search(rf"^ *{key}: (.*?)(?=^ *[\w, ]+: |^ *$|\Z)", text, re.M | re.S)
    if line:
        return f"{' '.join(line[1].split()).rstrip('.')}."
    clauses = re.split(r"(?<=[.;])\s+", " ".join(text.split()))
    said = "; ".join(one.rstrip(".;") for one in clauses if f"``{key}``" in one)
    told = re.sub(rf"^``{key}``: |``|:\w+:|`~?(?:[\w]+\.)*(\w+)`", r"\1", said)
    return f"{told[:1].upper()}{told[1:]}." if told else ""


def _refers(value: Mapping[str, Any]) -> bool:
    """Whether it, or what its list or object holds, is a model of its own."""
    return "$ref" in value or any(map(_refers, _inner(value)))


def _inside(value: Mapping[str, Any]) -> Iterator[str]:
    """What is said of the values of a list or an object, or of alternatives."""
    for one in _inner(value):
        if "description" in one:
            yield str(one["description"])
        yield from _inside(one)


def _inner(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    inner = [value.get("items"), value.get("additionalProperties")]
    inner += [*value.get("patternProperties", {}).values()]
    inner += [one for several in ("anyOf", "oneOf") for one in value.get(several, ())]
    yield from (one for one in inner if isinstance(one, Mapping))


WORDS: Mapping[str, str] = MappingProxyType(
    {
        "activations": "Bytes of activations on the fullest stage.",
        "algorithm": "The algorithm that runs it.",
        "approximate": (
            "Whether the time is an estimate, as the schedule is too large to be simulated whole."
        ),
        "assumed": "Levels whose bandwidth nobody stated.",
        "at_least": "The least value.",
        "at_most": "The largest value; of a level's steps: how many.",
        "LayerKindModel.attention": (
            "What the attention of such layers sees, or that they have none."
        ),
        "LayerRunModel.attention": (
            "What the attention of these layers sees, or that they have none."
        ),
        "PlacementBlock.attention": (
            "The matrix of the axes of attention: a row an axis, a column a level."
        ),
        "axes": "The axes along which it goes.",
        "DigitModel.axis": "The axis that the digit is of.",
        "VisibleBlock.axis": "The axis, or axes, whose communication it is.",
        "axis": "The name of the axis.",
        "backend": "What moved the data.",
        "BlockModel.block": "The number of the block on its rank.",
        "block": "A thread block, numbered from 0 on its rank.",
        "bottleneck": "The level whose fullest link bounds the time; null: none does.",
        "bubble_s": "Seconds that a stage waits in the pipeline.",
        "busy_s": "Seconds that the level's busiest link is occupied in an iteration.",
        "bytes": "Payload of a device, in bytes.",
        "call_s": "Seconds of one call.",
        "LeastSetModel.calls": "Whether the cost of a call is one of the unknowns.",
        "certificate": "The file of the certificate.",
        "change": "What to change there, in words.",
        "checked": "What was checked, in words.",
        "chosen_protocol": "The protocol that the library chooses by itself.",
        "CollectiveModel.chunks": "Chunks of the smaller buffer.",
        "MeasuredRequest.chunks": "Into how many chunks it is cut.",
        "chunks": "Into how many chunks each request is cut, in their order.",
        "collective": "What is asked for, by name.",
        "command": "The command that found it; null: not known.",
        "compute_s": "Seconds of computing.",
        "counters": "What the search counted, by name.",
        "cuts": "At which factors axes may be cut.",
        "description": "What it is, for people.",
        "detail": "More about the answer, in words.",
        "details": "What else is to be known of it, in words.",
        "EfficiencyBlock.device": "The family of devices.",
        "FittedEfficiency.device": "The family of devices.",
        "device": "The device that it ran on.",
        "devices": "The device of each rank of the mesh.",
        "LinkModel.dims": "Sides of a torus.",
        "StateModel.dims": (
            "By dimension of the array, the digits that split it, the outermost first."
        ),
        "disagreements": "Verdicts that another answer of a solver contradicts, in words.",
        "dtype": "The type of the elements.",
        "ending": "Why no more steps were tried, in words.",
        "errors": "What went wrong on ranks, in words.",
        "expert_ranks": "The device of each rank over the axes of experts.",
        "PlacementBlock.experts": (
            "The matrix of the axes of experts: a row an axis, a column a level."
        ),
        "fabric": "The name of the fabric.",
        "fabrics": "Names of the fabrics that come with the package.",
        "factors": "Sizes of the levels that a group spans, the outermost first.",
        "fifo_depth": "Messages that a connection holds before its sender waits.",
        "file": "The file that was written.",
        "fits": "Whether a device's memory suffices.",
        "float_checked": (
            "Whether it ran on floating-point numbers, too, and their sums were near enough."
        ),
        "FileModel.form": "The format that it was converted from; decides nothing.",
        "format": "The format of the file.",
        "framework": "The framework whose constant it is.",
        "gated": "Whether an MLP has a second input matrix (SwiGLU).",
        "gradients": "Bytes of gradients on the fullest stage.",
        "group": "The group of runs that it belongs to.",
        "FittedEfficiency.groups": "Names of the groups of runs that it was fitted to.",
        "MambaModel.groups": "Groups of heads that share their projections of the state.",
        "head_size": "Elements of a head.",
        "heads": "How many heads there are.",
        "hidden_s": "Seconds that computing hides.",
        "host_attention_s": (
            "Seconds of launching the kernels of an attention, forward and backward."
        ),
        "host_expert_s": "The same, for each expert on a device besides.",
        "host_experts_s": "The same of a mixture.",
        "host_mamba_s": "The same of Mamba-2.",
        "host_mlp_s": "The same of a dense MLP.",
        "PlanModel.hosts": "The host of each rank; null: hosts have no names.",
        "SwitchModel.hosts": "Names of the hosts under it, as a host list.",
        "in_place": "Whether input and output share memory.",
        "input": "Chunks of the input buffer.",
        "instruction": "The instruction, or the kind of what is one fixed step.",
        "MaxLengthModel.instructions": "How many instructions a program may have.",
        "instructions": "The instructions in order.",
        "iteration_s": "Seconds of an iteration.",
        "journal_version": "The version of the journal's format.",
        "AlgorithmsModel.kind": "Which restriction it is.",
        "kind": "Which kind it is.",
        "latex": "The same as LaTeX.",
        "left_out": "Hosts that are in no certain place, as a host list.",
        "level": "The name of the level.",
        "levels": "The names of the levels, the outermost first.",
        "limit_bytes": "The cap of a device, in bytes.",
        "load_bytes": "Bytes over the fullest link of that level, in one direction.",
        "matrix": "A row an axis, a column a level.",
        "max_length": "How many instructions the longest program has.",
        "measured": "Whether a table measured it.",
        "memory_bytes": "Bytes that the fullest device needs.",
        "mesh": "The axes of the mesh with their sizes.",
        "message": "What is wrong, in words.",
        "mfu": "Model FLOP/s utilization: the part of all peaks that the model's operations use.",
        "min_fifo_depth": (
            "The least depth of connections at which no step waits for ever; null: not known."
        ),
        "mlp": "What follows the attention.",
        "model_flops": "Operations of the model in an iteration, without any that are repeated.",
        "name": "What it is called.",
        "not_checked": "What was not checked, in words.",
        "note": "What is to be said of it, in words.",
        "objective": "Whether times of requests add up, or the longest counts.",
        "objective_s": "Seconds that are minimized.",
        "operation": "The collective, or the send.",
        "optimizer": "Bytes of the optimizer's state on the fullest stage.",
        "optimizer_s": "Seconds of the optimizer's step.",
        "options": "The options that the search was continued with.",
        "BuffersModel.output": "Chunks of the output buffer.",
        "SynthesisFiles.output": "The file of the schedule.",
        "p2smt": "The version of p2smt.",
        "p2smt_schedule": "The version of the format.",
        "CheckedInstance.parameters": "The values of the file's parameters.",
        "parameters": "Bytes of parameters on the fullest stage.",
        "partial": "The digits over which it is still to be summed.",
        "PartitionPriceModel.parts": "The parts: ranks, numbered from 0.",
        "path": "The file that it was read from.",
        "peak_bytes": "The most bytes of a payload that a device holds at once.",
        "peak_step_bytes": "Input, output and pack buffer of the step that needs most.",
        "placement": "The matrix: a row an axis, a column a level.",
        "platform": "The machine and its system.",
        "point": "A number for each of the unknowns.",
        "LeastSetModel.ports": "How many devices each level joins by links of their own.",
        "price": "What the links of the level are worth, as a fraction.",
        "presets": "Names of the topologies that come with the package.",
        "program": "The instructions, parted by semicolons; null: a single collective.",
        "programs": "Programs, their instructions parted by semicolons.",
        "FileModel.protocol": "The protocol, for people and for what is exported.",
        "protocol": "The protocol of the communication library.",
        "proved": "Whether no schedule in so many steps has a better rate.",
        "quantity": "What the constant says.",
        "BlockModel.rank": "The rank whose block it is; `each`: one on every rank.",
        "CutPriceModel.ranks": "The ranks inside the cut, from 0.",
        "PlanModel.ranks": "The device of each rank.",
        "ranks": "How many ranks there are.",
        "ranks_per_gpu": "How many ranks shared a GPU.",
        "recompute": "What the backward pass computes again.",
        "record": "Which kind of line it is.",
        "repeat": "Ranges by name, the last one changing fastest.",
        "LeastSetModel.request": "The kind of request.",
        "request": "The request, in words.",
        "requests": "By request, the seconds that its own busiest link is occupied.",
        "root": "The root's rank.",
        "rounds": "Rounds of all steps together.",
        "run": "Which run it is.",
        "schedule": "The name of the schedule.",
        "schema_version": "The version of this format.",
        "scratch": "Chunks of the scratch buffer.",
        "seconds": "Seconds that it takes.",
        "seed": "The seed of the random numbers.",
        "shape": "Elements of the array by dimension.",
        "shards": "The chunk with which each member of a group ends; null: all have the same.",
        "SplitPartModel.share": "The part of the payload, as a fraction.",
        "shares": "For each maximum that is excluded, the multipliers of its parts.",
        "size": "How many there are of it in one of the next outer level; of an axis: its degree.",
        "skeleton": "How the search goes through its parts.",
        "solver": "The solver.",
        "source": "Where it is from.",
        "ArrayStepModel.sources": (
            "The rank that each rank receives from, where the step is a permutation."
        ),
        "sources": "Where its numbers are from.",
        "space": "What was searched, in words.",
        "stage": "The pipeline stage that is the fullest, from 0.",
        "state": "Elements of a head's state.",
        "status": "How the search ended.",
        "steps": "How many steps it has.",
        "strategy": "The strategy, in words.",
        "summary": "What it is, in a line.",
        "svg": "The file of the picture.",
        "target_devices": "The device of each rank of the mesh that the array goes to.",
        "ArrayStepModel.text": "The step in words.",
        "CrossingProgram.text": "The cost as a formula.",
        "ExportOutput.text": "The text of the file.",
        "FormCellPart.text": "The cost as a formula.",
        "MemberPart.text": "The cost as a formula.",
        "PlacedProgramPart.text": "The cost as a formula.",
        "ProgramEntry.text": "The instructions as one text.",
        "RunArrayStep.text": "The step in words.",
        "SymbolicRequest.text": "The cost as a formula.",
        "TimedProgramEntry.text": "The instructions as one text.",
        "text": "The same in words.",
        "tied": "Whether embedding and logits are one matrix.",
        "time_limit_s": "Seconds of wall time that were allowed; null: no limit.",
        "times": "How often it is executed in an iteration.",
        "tokens_per_s": "Tokens that all devices train on in a second.",
        "top": "How many alternatives were asked for.",
        "topology": "The name of the topology.",
        "trainer": "The trainer's name.",
        "values": "The values, in words.",
        "verdict": "The outcome of the check.",
        "verified": "Whether every rank ended with the right result.",
        "versions": "Versions of what the search ran with, by name.",
        "violations": "What is wrong, in words.",
        "visible_s": "Seconds that nothing hides.",
        "vocab": "How many tokens the vocabulary has.",
        "warnings": "What is to be known of it, in words.",
        "weights": "A multiplier for each member that is named.",
        "ProfileModel.what": "What was measured, for people.",
        "what": "What is changed.",
        "when": "A condition; without it: always.",
        "why": "Why, in words.",
        "within": "The part of the best time within which strategies are listed.",
        "worker": "The process that did it.",
        "workers": "How many threads the solver had.",
    }
)
"""By key, or by model and key where a model means something else by it."""
