"""Parameters of models and operations of a token beside public figures, and rankings of layouts."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.testbed.written import results
from experiments.training_runs.store import HERE
from p2smt.errors import InputError
from p2smt.training.measured.efficiency_fit import kendall_tau, regret
from p2smt.training.measured.measured_runs import MeasuredRun
from p2smt.training.model_file import read_model

MODELS = HERE / "models.csv"
DIGITS = 4
LAYOUTS = 3
"""Different strategies of a model on a GPU from which a ranking says anything."""
TOP = 3


def parameter_rows() -> list[dict[str, Any]]:
    """Billions of parameters, and of those that a token meets, of every model in ``MODELS`` that
    is known by name; figures of the file are its makers' or follow from its configuration."""
    lines = csv.DictReader(MODELS.read_text(encoding="utf-8").splitlines())
    return [_parameters(line) for line in lines if _known(line["name"])]


def _known(name: str) -> bool:
    try:
        read_model(name)
    except InputError:
        return False
    return True


def _parameters(line: Mapping[str, str]) -> dict[str, Any]:
    model = read_model(line["name"])
    own = {"total": model.parameters / 1e9, "active": model.active_parameters / 1e9}
    public = {name: float(line[f"{name}_b"]) for name in own}
    worst = max((own[name] / public[name] - 1 for name in own), key=abs)
    return {
        "model": line["name"],
        **{f"{name}_b": round(value, 3) for name, value in own.items()},
        **{f"public_{name}_b": value for name, value in public.items()},
        "off": results.rounded(worst, DIGITS),
    }


def flop_rows(runs: Iterable[MeasuredRun], text: str) -> list[dict[str, Any]]:
    """Operations of a token where a run publishes TFLOP/s and tokens/s of a GPU, by release."""
    cells = {line["id"]: line for line in csv.DictReader(text.splitlines())}
    found: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for run in runs:
        line = cells[run.name]
        if line["tflops_gpu"] and line["tokens_s_gpu"]:
            training = run.training
            key = (line["model"], line["seq"], line["mtp"], line["framework"], line["release"])
            public = 1e3 * float(line["tflops_gpu"]) / float(line["tokens_s_gpu"])
            own = training.model.token_flops(training.batch.tokens) / 1e9
            found.setdefault(key, []).append((own, public))
    return [_flops(key, pairs) for key, pairs in sorted(found.items())]


def _flops(key: Sequence[str], pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    worst = max((own / public - 1 for own, public in pairs), key=abs)
    model, seq, _, name, release = key
    return {
        "model": model,
        "seq": int(seq),
        "framework": name,
        "release": release,
        "runs": len(pairs),
        "gflop": results.rounded(pairs[0][0], DIGITS + 1),
        "off": results.rounded(worst, DIGITS),
    }


def ranking_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How runs of one model, GPU and framework in one precision are ordered by seconds of a token
    on a device, measured and predicted without their model; one run of each strategy, the fastest.
    """
    sets: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: -float(row["token_s"])):
        key = tuple(str(row[name]) for name in ("model", "gpu", "framework", "precision"))
        sets.setdefault(key, {})[f"{row['devices']} {row['strategy']}"] = row
    several = {key: tuple(own.values()) for key, own in sets.items() if len(own) >= LAYOUTS}
    return [_ranking(key, own) for key, own in sorted(several.items())]


def _ranking(key: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    measured = [float(row["token_s"]) for row in rows]
    model = [one * (1 + float(row["left_out"])) for one, row in zip(measured, rows, strict=True)]
    return {
        "set": " ".join(key),
        "layouts": len(rows),
        "spread": results.rounded(max(measured) / min(measured) - 1, DIGITS),
        "tau": results.rounded(kendall_tau(measured, model), DIGITS),
        "regret": results.rounded(regret(measured, model), DIGITS),
        "regret_top": results.rounded(regret(measured, model, TOP), DIGITS),
    }
