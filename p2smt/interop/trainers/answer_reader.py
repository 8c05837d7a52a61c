"""Answers of p2smt: the run of a plan file, and of what ``plan`` and ``estimate`` print as JSON.

A plan file has the run in its ``training`` block; an output has the strategy as text, sizes of the
model and matrices.  Layers of a mixture stand in no output, so its model is found by its name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from p2smt.errors import InputError
from p2smt.files.json_text import parse_json
from p2smt.files.validation import validated
from p2smt.files.yaml_text import read_text
from p2smt.interop.trainers.launch import Launch, check_ranks, missing
from p2smt.parallelism.placement import Matrix
from p2smt.plans.file import MAX_PLAN_BYTES
from p2smt.plans.problem import located
from p2smt.plans.training.file_model import ExpertRanksBlock, PlacementBlock, TrainingBlock
from p2smt.search.allocation.cell_grids import CellGrid
from p2smt.training.model_file import dump_transformer, model_from_data, read_model
from p2smt.training.plan_block import run_of
from p2smt.training.strategy import AXES, MAX_BATCH, Batch, Strategy, parse_strategy
from p2smt.training.transformer import DENSE_KEYS, Transformer
from p2smt.units import parse_count

MARK = '"schema_version"'
"""A key that answers of p2smt have."""
_REMEDY = "give a file that `p2smt plan -o` wrote, or what plan or estimate print with --json"


def read_answer(
    text: str,
    settings: Mapping[str, str],
    source: str,
    *,
    model: Transformer | None = None,
    devices: int | None = None,
) -> Launch:
    """The run of an answer, with the matrices that it lies on; of `plan --json` the one to run.

    Args:
        text: the JSON.
        settings: nothing is left open but the sequence length that is given to other files.
        source: names the file in errors.
        model: what is trained, where the answer does not say.
        devices: how many there are.

    Raises:
        InputError: it is no answer of ``plan`` or ``estimate``, or for other devices.
    """
    if others := [name for name in settings if name != "seq"]:
        rule = "tells what a file leaves open, and an answer of p2smt leaves nothing"
        raise InputError(f"--set {others[0][:40]}", rule, "drop it")
    found = launch_of(parse_json(text, source, _REMEDY), source, model)
    check_ranks(source, found.strategy.devices, devices)
    return found


def launch_of(data: Mapping[str, Any], source: str, model: Transformer | None = None) -> Launch:
    """The run of an answer's data; the rest as :func:`read_answer`."""
    if isinstance(data.get("training"), dict):
        return _of_plan(data, source, model)
    if isinstance(data.get("model"), dict) and "global_batch" in data:
        return _of_output(data, source, model)
    raise InputError(source, "is an answer that says nothing of a training", _REMEDY)


def model_of_answer(path: str) -> Transformer | None:
    """The model of an answer in a JSON file; None: there is no such file, or it is no answer.

    Raises:
        InputError: it is one that says none.
    """
    if not os.path.isfile(path) or MARK not in (text := read_text(path, "model", MAX_PLAN_BYTES)):
        return None
    return read_answer(text, {}, path).model


# A plan file.


def _of_plan(data: Mapping[str, Any], source: str, named: Transformer | None) -> Launch:
    block = validated(TrainingBlock, data["training"], f"{source}: training")
    run = run_of(block, source)
    if named is not None:
        _check_model(source, dump_transformer(run.model), named)
    where: Matrix | None = None
    experts: Matrix | None = None
    if isinstance(block.placement, PlacementBlock):
        where, experts = (
            _rows(one) for one in (block.placement.attention, block.placement.experts)
        )
    elif isinstance(data.get("matrix"), list):
        where = _all_rows(data, source)
    return Launch(
        *("p2smt", run.model, run.batch, run.strategy, run.strategy.devices, AXES),
        placement=where,
        experts=experts,
        places=_of_ranks(data, run.strategy.devices),
        expert_places=_of_experts(data, block, run.strategy.devices),
    )


def _of_ranks(data: Mapping[str, Any], many: int) -> tuple[tuple[str, int], ...]:
    """Host and device there of each rank, of a plan on hosts; else nothing."""
    ranks, hosts = data.get("ranks"), data.get("hosts")
    if not (isinstance(ranks, list) and isinstance(hosts, list) and len(ranks) == len(hosts)):
        return ()
    numbers = all(type(rank) is int and rank >= 0 for rank in ranks)
    names = all(isinstance(host, str) for host in hosts)
    if not (numbers and names) or len(ranks) != many:
        return ()
    each = many // len(set(hosts))
    return tuple((host, rank % each) for host, rank in zip(hosts, ranks, strict=True))


def _of_experts(
    data: Mapping[str, Any], block: TrainingBlock, many: int
) -> tuple[tuple[str, int], ...]:
    """The same of each rank of experts, where the plan lists them."""
    found = _of_ranks(data, many)
    if not isinstance(block.placement, ExpertRanksBlock) or not found:
        return ()
    place = dict(zip(data["ranks"], found, strict=True))
    return tuple(place[one] for one in block.placement.expert_ranks if one in place)


def _all_rows(data: Mapping[str, Any], source: str) -> Matrix | None:
    """The matrix with a row for each axis; a plan's lacks those along which nothing is spread."""
    rows = _matrix(data["matrix"], source)
    axes = data.get("axes")
    if not isinstance(axes, list) or len(axes) != len(rows):
        raise InputError(f"{source}: axes", "must be as many as rows of the matrix", _REMEDY)
    names = [axis.get("name") if isinstance(axis, dict) else None for axis in axes]
    if not set(names) <= set(AXES):
        return None
    named = dict(zip(names, rows, strict=True))
    return tuple(named.get(name, (1,) * len(rows[0])) for name in AXES)


# What is printed as JSON.


def _of_output(data: Mapping[str, Any], source: str, named: Transformer | None) -> Launch:
    run = printed_run(data, source)
    strategy, batch = printed_strategy(run, source), printed_batch(data, source)
    model = _model(data["model"], source) if named is None else named
    _check_model(source, data["model"], model)
    matrices = (run.get("matrix"), run.get("expert_matrix"))
    where, experts = (None if one is None else _matrix(one, source) for one in matrices)
    return Launch(
        *("p2smt", model, batch, strategy, strategy.devices, AXES),
        placement=where,
        experts=experts,
        places=_of_hosts(run, strategy, source),
    )


def _of_hosts(
    run: Mapping[str, Any], strategy: Strategy, source: str
) -> tuple[tuple[str, int], ...]:
    """The same of hosts in their order and a matrix inside each of them."""
    hosts = run.get("host_order")
    if not isinstance(hosts, list) or run.get("inside") is None:
        return ()
    inside = _matrix(run["inside"], source)
    outer = [size // prod(row) for size, row in zip(strategy.sizes, inside, strict=False)]
    if len(inside) != len(AXES) or prod(outer) != len(hosts):
        raise InputError(f"{source}: inside", "must be the axes by levels of a node", _REMEDY)
    grid = CellGrid(inside, tuple(outer))
    each = strategy.devices // len(hosts)
    devices = grid.ranks(np.arange(len(hosts))).ravel().tolist()
    return tuple((str(hosts[device // each]), device % each) for device in devices)


def printed_run(data: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """What is printed of one strategy: of a plan that to run, else the best.

    Raises:
        InputError: there is none.
    """
    run = data.get("recommended") or data.get("best") or data
    if not isinstance(run, dict) or not isinstance(run.get("strategy"), str):
        raise InputError(source, "has no strategy: nothing was found", _REMEDY)
    return run


def printed_strategy(run: Mapping[str, Any], source: str) -> Strategy:
    """The strategy in what is printed of it; raises InputError if it is none."""
    with located(source):
        return parse_strategy(run["strategy"])


def printed_batch(data: Mapping[str, Any], source: str) -> Batch:
    """The batch of what is printed, or of its best; raises InputError if it has none."""
    sequences = printed_run(data, source).get("global_batch", data.get("global_batch"))
    return Batch(
        parse_count(str(sequences), f"{source}: global_batch", MAX_BATCH),
        parse_count(str(data.get("sequence")), f"{source}: sequence", MAX_BATCH),
    )


def _model(data: Mapping[str, Any], source: str) -> Transformer:
    """The model of the output's sizes; what these do not say is known of models by name."""
    sizes = {key: data[key] for key in DENSE_KEYS if key in data}
    if data.get("kinds") is None:
        return model_from_data(sizes, f"{source}: model")
    try:
        known = read_model(str(data.get("name")))
    except InputError:
        raise missing(source, ["--model"]) from None
    alike = all(getattr(known, key) == value for key, value in sizes.items())
    if not alike or known.parameters != data.get("parameters"):
        raise missing(source, ["--model"])
    return known


def _check_model(source: str, said: Mapping[str, object], named: Transformer) -> None:
    for key in DENSE_KEYS[1:]:
        told = getattr(named, key)
        if said.get(key, told) != told:
            rule = f"has {key} {str(said[key])[:40]}, and {named.name} {told}"
            raise InputError(source, rule, "drop --model, or name the model that it trains")


# Matrices.


def _matrix(value: object, source: str) -> Matrix:
    rows = value if isinstance(value, list) else []
    plain = [
        row
        for row in rows
        if isinstance(row, list) and row and all(type(n) is int and n > 0 for n in row)
    ]
    if not plain or len(plain) < len(rows) or len({len(row) for row in plain}) > 1:
        raise InputError(f"{source}: matrix", "must have rows of whole numbers", _REMEDY)
    return _rows(plain)


def _rows(rows: Sequence[Sequence[int]]) -> Matrix:
    return tuple(map(tuple, rows))
