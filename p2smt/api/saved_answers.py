"""Answers of p2smt in files, read to be compared: what each asks, takes and is made of.

Three kinds: trainings (plan files with a ``training`` block, and what ``plan`` and ``estimate``
print as JSON), placements (plans of ``solve`` and what it prints), and redistributions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from p2smt.cluster.file_model import TopologyModel, build_topology
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.files.validation import validated
from p2smt.files.yaml_text import read_text
from p2smt.interop.trainers.answer_reader import (
    MARK,
    launch_of,
    printed_batch,
    printed_run,
    printed_strategy,
)
from p2smt.interop.tuners.advice import LibraryAdvice as LibraryAdvice
from p2smt.interop.tuners.advice import library_advice as library_advice
from p2smt.plans.file import MAX_PLAN_BYTES, REDISTRIBUTION
from p2smt.plans.training.file_model import TrainingBlock
from p2smt.training.efficiency import TrainingRun
from p2smt.training.iteration import estimate_range
from p2smt.training.measured.prediction_errors import iteration_range
from p2smt.training.plan_block import efficiency_in, run_of
from p2smt.training.present.priced import Launched
from p2smt.training.strategy import Batch, Strategy, strategy_text
from p2smt.units import format_bytes

_REMEDY = "give the file as p2smt wrote it"


class AnswerKind(Enum):
    """What an answer is of."""

    TRAINING = "a training"
    PLACEMENT = "a placement"
    REDISTRIBUTION = "a redistribution"


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """An answer in a file.

    ``asked``: what it answers, by name, in words; ``chosen``: the answer in words.  ``seconds``: of
    an iteration, or of all steps, with its range where that is known;
    ``work``: what is done in them (tokens of a training, else 1).  ``parts`` of the time in
    seconds; ``memory_bytes``: of a device.
    """

    path: str
    kind: AnswerKind
    asked: Mapping[str, str]
    chosen: str
    seconds: float
    range_s: tuple[float, float] | None
    parts: Mapping[str, float]
    memory_bytes: int
    status: str = ""
    work: int = 1

    @property
    def rate(self) -> float:
        """What is done in a second."""
        return self.work / self.seconds


@dataclass(frozen=True, slots=True)
class ComparedAnswers:
    """Two answers of a kind.

    ``gain``: by how much more the second does in a second, as a part of what the first does;
    ``gain_range``: where errors of both have nothing in common, unless the answers are the same;
    None: a range is not known.
    ``unlike``: names of what they do not ask alike.
    """

    first: SavedAnswer
    second: SavedAnswer
    gain: float
    gain_range: tuple[float, float] | None
    unlike: tuple[str, ...] = ()

    @property
    def sure(self) -> bool:
        """Whether the sign of the gain is the same in all of its range."""
        return self.gain_range is not None and (self.gain_range[0] > 0 or self.gain_range[1] < 0)


def is_answer(path: str) -> bool:
    """Whether there is a file of that name that holds an answer of p2smt."""
    if not path.endswith(".json") or not os.path.isfile(path):
        return False
    text = read_text(path, "answer", MAX_PLAN_BYTES)
    return text.lstrip().startswith("{") and MARK in text


def compare_answers(first: str, second: str) -> ComparedAnswers:
    """Two answers of a kind, read from their files.

    Raises:
        InputError: one of them is none, lacks what is compared, or they are of different kinds.
    """
    one, other = read_saved(first), read_saved(second)
    if one.kind is not other.kind:
        rule = f"is of {one.kind.value}, and {other.path[:60]} of {other.kind.value}"
        raise InputError(one.path[:60], rule, "compare answers of a kind")
    for answer in (one, other):
        if answer.seconds == 0:
            raise InputError(answer.path[:60], "takes no time, so nothing can be a gain on it")
    within = None
    if (one.asked, one.chosen, one.seconds) == (other.asked, other.chosen, other.seconds):
        within = 0.0, 0.0
    elif one.range_s is not None and other.range_s is not None and one.range_s[0] > 0:
        per_work = other.work / one.work
        low, high = (per_work * one.range_s[end] / other.range_s[1 - end] - 1 for end in (0, 1))
        within = low, high
    names = dict.fromkeys([*one.asked, *other.asked])
    unlike = (name for name in names if one.asked.get(name) != other.asked.get(name))
    return ComparedAnswers(one, other, other.rate / one.rate - 1, within, tuple(unlike))


def read_saved(path: str) -> SavedAnswer:
    """The answer in a file.

    Raises:
        InputError: there is none that can be compared.
    """
    data = read_json(path, f"file {path[:200]!r}", _REMEDY, MAX_PLAN_BYTES)
    if not isinstance(data, dict) or "schema_version" not in data:
        raise InputError(path[:200], "is no answer: it has no schema_version", _REMEDY)
    if isinstance(data.get("training"), dict):
        return _planned(data, path)
    if "global_batch" in data:
        return _printed(data, path)
    if data.get("kind") == REDISTRIBUTION or "least_limit_bytes" in data:
        return _redistribution(data, path)
    if isinstance(plan := data.get("plan", data), dict) and {"requests", "matrix"} <= plan.keys():
        return _placement(plan, data, path)
    rule = "holds no plan, estimate, placement or redistribution: nothing was found, or it is of "
    raise InputError(path[:200], rule + "another command", "compare answers that have one")


# Trainings.


def _planned(data: Mapping[str, Any], path: str) -> SavedAnswer:
    """A plan file; its range is what the constants and links in it say."""
    block = validated(TrainingBlock, data["training"], f"{path}: training")
    run, said = run_of(block, path), block.prediction
    topology = build_topology(validated(TopologyModel, data.get("topology"), path), path)
    axes = {one.axis: one.seconds for one in said.communication}
    parts = {"compute": said.compute_s, "bubble": said.bubble_s, **axes}
    memory = said.memory
    return _trained(
        path,
        (run.model.name, topology.name, block.efficiency.name, run.batch, run.strategy),
        said.iteration_s,
        _range_of(data, block, topology, path),
        parts | {"optimizer": said.optimizer_s},
        memory.parameters + memory.gradients + memory.optimizer + memory.activations,
    )


def _range_of(
    data: Mapping[str, Any], block: TrainingBlock, topology: Topology, path: str
) -> tuple[float, float] | None:
    """The range of an iteration; None: the file does not say where its ranks lie."""
    launch = launch_of(data, path)
    where, experts = launch.matrices_on(topology)
    hosts = tuple(dict.fromkeys(host for host, _ in launch.places)) if where is None else None
    if hosts == ():
        return None
    launched = Launched(
        *(topology, efficiency_in(block, path), block.memory_bytes, hosts),
        placement=where,
        experts=experts,
        places=launch.places if hosts else (),
        expert_places=launch.expert_places if hosts else (),
    )
    found = launched.price(TrainingRun(launch.model, launch.batch, launch.strategy))
    within = iteration_range(found, estimate_range(found))
    longer = block.prediction.iteration_s / found.iteration_s
    return within.low_s * longer, within.high_s * longer


def _printed(data: Mapping[str, Any], path: str) -> SavedAnswer:
    """What `plan` or `estimate` printed."""
    run, parts = printed_run(data, path), printed_run(data, path).get("parts")
    asked = _name(data, "model"), str(data.get("topology")), _name(data, "efficiency")
    return _trained(
        path,
        (*asked, printed_batch(data, path), printed_strategy(run, path)),
        _number(run, "iteration_s", path),
        _ends(run, path),
        {key: _number(parts, key, path) for key in parts} if isinstance(parts, dict) else {},
        int(_number(run, "memory_bytes", path)),
        str(data.get("status", "")),
    )


def _trained(
    path: str,
    run: tuple[str, str, str, Batch, Strategy],
    seconds: float,
    range_s: tuple[float, float] | None,
    parts: Mapping[str, float],
    memory_bytes: int,
    status: str = "",
) -> SavedAnswer:
    model, cluster, efficiency, batch, strategy = run
    asked = {
        "model": model,
        "cluster": f"{strategy.devices:,} devices of {cluster}",
        "batch": f"{batch.sequences:,} x {batch.tokens:,} tokens",
        "efficiency": efficiency,
    }
    return SavedAnswer(
        *(path, AnswerKind.TRAINING, asked, strategy_text(strategy), seconds, range_s, parts),
        *(memory_bytes, status, batch.sequences * batch.tokens),
    )


# Placements and redistributions.


def _placement(plan: Mapping[str, Any], data: Mapping[str, Any], path: str) -> SavedAnswer:
    requests = _listed(plan, "requests", path)
    axes = ",".join(f"{one.get('name')}={one.get('size')}" for one in _listed(plan, "axes", path))
    words = [_request(one, path) for one in requests]
    times = [_number(one, "times", path) * _number(one, "seconds", path) for one in requests]
    matrix = plan["matrix"]
    return SavedAnswer(
        path,
        AnswerKind.PLACEMENT,
        {
            "cluster": _cluster(plan),
            "axes": axes,
            "requests": "; ".join(words),
            "objective": str(plan.get("objective")),
        },
        "a list of ranks" if matrix is None else json.dumps(matrix, separators=(",", ":")),
        _number(plan, "objective_s", path),
        _ends(data, path),
        dict(zip(words, times, strict=True)),
        int(_number(plan, "peak_bytes", path)),
        str(plan.get("status", "")),
    )


def _request(one: Mapping[str, Any], path: str) -> str:
    axes, times = one.get("axes"), int(_number(one, "times", path))
    along = ",".join(map(str, axes)) if isinstance(axes, list) else ""
    size = format_bytes(_number(one, "bytes", path))
    return f"{one.get('kind')} {along} {size}" + (f" x {times:,}" if times > 1 else "")


def _redistribution(data: Mapping[str, Any], path: str) -> SavedAnswer:
    """A plan file, or what `redistribute` printed: names of their keys differ."""
    steps = _listed(data, "steps", path)
    parts: dict[str, float] = {}
    for one in steps:
        kind = str(one.get("kind"))
        parts[kind] = parts.get(kind, 0.0) + _number(one, "seconds", path)
    ends = [data.get(key, data.get(other)) for key, other in (("from", "source"), ("to", "target"))]
    shape = "x".join(map(str, data.get("shape") or ()))
    mesh = data.get("mesh")
    if isinstance(mesh, list):
        mesh = ",".join(f"{one['name']}={one['size']}" for one in _listed(data, "mesh", path))
    return SavedAnswer(
        path,
        AnswerKind.REDISTRIBUTION,
        {
            "array": f"{shape} {data.get('dtype')}",
            "mesh": str(mesh),
            "types": " to ".join(map(str, ends)),
        },
        "; ".join(str(one.get("text")) for one in steps) or "nothing",
        _number(data, "objective_s", path),
        _ends(data, path),
        parts,
        int(_number(data, "peak_step_bytes", path)),
        str(data.get("status", "")),
    )


# Values of a file.


def _number(data: Mapping[str, Any], key: str, path: str) -> float:
    found = data.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or found < 0:
        raise InputError(
            f"{path[:60]}: {key}", "is no number: nothing was found, or it is cut", _REMEDY
        )
    return found


def _ends(data: Mapping[str, Any], path: str) -> tuple[float, float] | None:
    found = data.get("range_s")
    if found is None:
        return None
    if not isinstance(found, list) or len(found) != 2:
        raise InputError(f"{path[:60]}: range_s", "must have two ends", _REMEDY)
    low, high = (_number({"range_s": one}, "range_s", path) for one in found)
    return low, high


def _listed(data: Mapping[str, Any], key: str, path: str) -> list[Mapping[str, Any]]:
    found = data.get(key)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InputError(f"{path[:60]}: {key}", "must be a list of what it has", _REMEDY)
    return found


def _cluster(plan: Mapping[str, Any]) -> str:
    ranks = plan.get("ranks")
    return f"{len(ranks) if isinstance(ranks, list) else 0:,} ranks of {_name(plan, 'topology')}"


def _name(data: Mapping[str, Any], key: str) -> str:
    found = data.get(key)
    return str(found.get("name")) if isinstance(found, dict) else ""
