"""Public reports of training runs that ran out of memory, and of their neighbours that ran.

Columns of failed_runs.csv: ``source``; ``gpu``; ``capacity``, ``process``, ``allocated`` and
``reserved`` in GiB as PyTorch printed them at the failure, empty where it is not told;
``framework``; ``options`` (model by name, or LAYERSxHIDDENxHEADS of a GPT, GPUs, batch, tokens of a
sequence, strategy); ``status``: failed, ran, or why the report is not used.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from experiments.training_runs.mixture_file import read_mixtures
from experiments.training_runs.store import HERE, runs
from p2smt.cluster.file import load_topology
from p2smt.training.efficiencies.frameworks import framework, topology_of
from p2smt.training.efficiency import Framework, TrainingRun
from p2smt.training.formulas.quantities import quantities
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.model_file import read_model
from p2smt.training.pipeline import MEMORY
from p2smt.training.strategy import Batch, parse_strategy
from p2smt.training.transformer import Transformer

REPORTS, MIXTURES = HERE / "failed_runs.csv", HERE / "mixtures.csv"
USED = ("failed", "ran")
PRESETS = {
    "a100-40": "aws-p4d",
    "a100-80": "dgx-a100",
    "b200": "dgx-b200",
    "b300": "dgx-b300",
    "gb200": "gb200-nvl72",
    "h100": "dgx-h100",
    "v100-32": "aws-p3dn",
}
FRAMEWORKS = {"torchtitan": "fsdp", "transformers": "fsdp"}
"""Whose facts stand for those of frameworks that no run with a time is of."""
LARGER = "tt-"
"""Groups of runs on H100 of 96 GB (docs/ of pytorch/torchtitan@b5bcd76c6)."""
GPT_VOCAB = 50304
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a run failed, the bytes that are predicted of it, and those of its device."""

    report: str
    options: str
    failed: bool
    needed_bytes: float
    device_bytes: float

    @property
    def share(self) -> float:
        """Needed bytes over the device's."""
        return self.needed_bytes / self.device_bytes

    @property
    def seen(self) -> bool:
        """Whether the reserve is fitted to it: a half of the reports, by a hash of their names."""
        return hashlib.sha256(self.report.encode()).digest()[0] % 2 == 0


def reports() -> list[dict[str, str]]:
    """The rows of the file."""
    with REPORTS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def reported() -> Iterator[Outcome]:
    """The rows that are used."""
    for row in reports():
        if row["status"] in USED:
            run = _run(row["options"])
            name = row["framework"]
            facts = framework(FRAMEWORKS.get(name, name))
            needed = predicted_bytes(run, facts)
            failed = row["status"] == "failed"
            yield Outcome(row["source"], row["options"], failed, needed, _device_bytes(row))


def published() -> Iterator[Outcome]:
    """Runs with a published time: all ran, so all of them fitted.

    Left out are those whose recipe is not known, those that keep activations on the host, as the
    recipes of FSDP do, and those on devices with more memory than their name says.
    """
    mixtures = {run.name: run for run in read_mixtures(str(MIXTURES)).runs}
    with MIXTURES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            bridge = row["framework"] == "megatron-bridge"
            sharded = row["fsdp"] not in ("", "0") and row["kind"] == "dense"
            if row["offload"] or sharded or (bridge and not row["flags_from"]):
                mixtures.pop(row["id"], None)
    others = (run for run in runs().counted if not run.group.startswith(LARGER))
    for run in (*others, *mixtures.values()):
        device = topology_of(run.hardware, run.training.strategy.devices).known_device
        needed = predicted_bytes(run.training, framework(run.framework))
        report = f"{run.group} {run.framework} {run.hardware}"
        yield Outcome(report, run.name, False, needed, device.memory_bytes)


def predicted_bytes(run: TrainingRun, facts: Framework) -> float:
    """Bytes that a device of the fullest stage holds at its peak."""
    found = quantities(run.model, run.batch, StrategyColumns.of((run.strategy,)), facts)
    return float(np.sum([found.of_stage(name) for name in MEMORY], axis=0).max())


def _run(options: str) -> TrainingRun:
    given = dict(one.split("=", 1) for one in options.split(" "))
    strategy = parse_strategy(given["strategy"])
    batch = Batch(int(given["gbs"]), int(given["seq"]))
    return TrainingRun(_model(given["model"]), batch, strategy)


def _model(text: str) -> Transformer:
    sizes = text.split("x")
    if len(sizes) != 3 or not all(map(str.isdecimal, sizes)):
        return read_model(text)
    layers, hidden, heads = map(int, sizes)
    return Transformer(
        name=text,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        ffn=4 * hidden,
        gated=False,
        vocab=GPT_VOCAB,
        head_size=hidden // heads,
        tied=True,
    )


def _device_bytes(row: dict[str, str]) -> float:
    if row["gpu"] in PRESETS:
        return load_topology(f"{PRESETS[row['gpu']]}:1").known_device.memory_bytes
    return float(row["capacity"]) * GIB
