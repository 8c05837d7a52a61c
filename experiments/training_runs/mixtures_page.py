"""The page of the study of mixtures, hybrids and low precision."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
MOST_WRONG = 20
A_SET = 10
"""Runs from which a set of one GPU, framework, precision and kind has a line of its own."""
NEAR_PARAMETERS, NEAR_FLOPS = 0.001, 0.003
KINDS = ("MoE", "dense", "Mamba", "all")
ERRORS = (
    *("fitted", "part_left_out", "left_out", "device_left_out"),
    *("one_utilisation", "one_utilisation_left_out"),
)
HEAD = (
    "runs",
    "fitted",
    "part left out",
    "model left out",
    "device left out",
    "one utilisation, fitted",
    "the same, model left out",
)


def page(data: Mapping[str, Any]) -> str:
    """The page of the results."""
    runs = data["runs"]
    wrong = sorted(runs, key=lambda one: -abs(one["left_out"]))[:MOST_WRONG]
    return TEXT.format(
        runs=len(runs),
        kinds=_grouped(runs, ("kind",)),
        gpus=_grouped(runs, ("gpu",)),
        frameworks=_grouped(runs, ("framework",)),
        precisions=_grouped(runs, ("precision",)),
        models=_grouped(runs, ("model",)),
        sets=_grouped(runs, ("gpu", "framework", "precision", "kind"), A_SET),
        efficiencies=_table(map(_set_row, data["sets"]), SETS),
        rankings=_table(map(_ranking_row, data["rankings"]), RANKINGS),
        apart=_grouped(data["apart"], ("set",)),
        aparts=len(data["apart"]),
        wrong=_table(map(_wrong_row, wrong), WRONG),
        parameters=_table(map(_parameter_row, data["parameters"]), PARAMETERS),
        many_flops=len(data["flops"]),
        flops=_table(map(_flop_row, data["flops"]), FLOPS),
        refused="\n".join(f"* {many}: {why}" for why, many in data["refused"].items()),
    )


def _grouped(runs: Sequence[Row], by: Sequence[str], least: int = 1) -> str:
    """Errors of runs that are alike in some columns, and of all."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for one in runs:
        found.setdefault(tuple(one[name] for name in by), []).append(one)
    order = sorted(found, key=lambda key: (*(KINDS.index(one) for one in key if one in KINDS), key))
    rows = [(*key, *_errors(found[key])) for key in order if len(found[key]) >= least]
    return _table((*rows, ("all", *[""] * (len(by) - 1), *_errors(runs))), (*by, *HEAD))


def _errors(runs: Sequence[Row]) -> tuple[str, ...]:
    return (str(len(runs)), *(_both([abs(one[name]) for one in runs]) for name in ERRORS))


def _both(errors: Sequence[float]) -> str:
    return f"{statistics.fmean(errors):.1%} ({statistics.median(errors):.1%})"


SETS = ("efficiency", "runs", "models", "part of the peak", "core", "fitted", "model left out")
RANKINGS = (
    *("model, GPU, framework, precision", "layouts", "slowest over fastest"),
    *("Kendall's tau", "regret", "regret, best of three"),
)
WRONG = ("run", "efficiency", "model", "strategy", "measured", "model left out", "fitted")
PARAMETERS = ("model", "parameters", "public", "active", "public", "off")
FLOPS = ("model", "tokens", "framework", "release", "runs", "GFLOP a token", "off")


def _set_row(one: Row) -> tuple[str, ...]:
    numbers = (str(one["runs"]), str(one["models"]), f"{one['fraction']:.2f}", f"{one['core']:.2f}")
    return (f"`{one['name']}`", *numbers, f"{one['fitted']:.1%}", f"{one['left_out']:.1%}")


def _ranking_row(one: Row) -> tuple[str, ...]:
    parts = (f"{one[name]:.1%}" for name in ("regret", "regret_top"))
    return (one["set"], str(one["layouts"]), f"{one['spread']:.0%}", f"{one['tau']:+.2f}", *parts)


def _wrong_row(one: Row) -> tuple[str, ...]:
    named = (one["id"], one["set"], one["model"], f"`{one['strategy']}`")
    errors = (f"{one['left_out']:+.0%}", f"{one['fitted']:+.0%}")
    return (*named, f"{one['measured_s']:g} s", *errors)


def _parameter_row(one: Row) -> tuple[str, ...]:
    pairs = (f"{one[key]:.3f}" for part in ("total", "active") for key in _own(part))
    return (one["model"], *pairs, _off(one["off"], NEAR_PARAMETERS))


def _own(part: str) -> tuple[str, str]:
    return f"{part}_b", f"public_{part}_b"


def _flop_row(one: Row) -> tuple[str, ...]:
    numbers = (str(one["runs"]), f"{one['gflop']:.2f}", _off(one["off"], NEAR_FLOPS))
    return (one["model"], str(one["seq"]), one["framework"], one["release"], *numbers)


def _off(value: float, near: float) -> str:
    """Bold beyond what is near."""
    text = f"{value:+.2%}"
    return text if abs(value) <= near else f"**{text}**"


def _table(rows: Iterable[Sequence[str]], head: Sequence[str]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TEXT = """# Mixtures of experts, hybrids and low precision beside measured runs

Written by `make training-runs` from [mixtures.csv](mixtures.csv): {runs} published runs that
count, a source and a licence in each row; [mixtures.json](mixtures.json) has every one with its
predictions. No number here has another origin.

One part of the peak is fitted for each framework and device, and one of the core of attention for
each chip; the other constants, the *shape*, are common to all runs
([fit_kinds.py](fit_kinds.py)).
[docs/mixtures.md](../../docs/mixtures.md) says what each one is. Errors are means, medians in
brackets:

* *fitted*: by the constants of all runs;
* *part left out*: by the shape of all runs, and parts of the peak that no run of the model told;
* *model left out*: shape and parts by constants that no run of the model told, on no device and in
  no framework; what nothing else tells has the usual value;
* *device left out*: the same of a device, with what Megatron-Bridge reaches on the nearest one,
  which is what a device without runs gets;
* *one utilisation*: the model's operations at one part of the peak, for each GPU, framework,
  precision and kind of model: the best one of these runs themselves, and of those of other models.

{kinds}

## By GPU, framework and precision

{gpus}

{frameworks}

{precisions}

## By model

{models}

## Sets of ten or more

Of one GPU, framework, precision and kind.

{sets}

## Efficiencies

{efficiencies}

Errors of a set with runs of one model alone say how far the usual part of the peak is off.

## Which layout is the fastest

Runs of one model, GPU and framework in one precision that differ in strategy, batch or devices, by
seconds of a token on a device; predictions without the model. *Regret*: how much longer than the
fastest the predicted fastest took.

{rankings}

## Runs that no constant was fitted to

{aparts} dense runs are published without their recipe's flags: they are predicted as if they had
none, and take part in no fit.

{apart}

## Where the model is wrong

{wrong}

* `deepseek-v3` in NeMo 2 on GB200 ran with unfused latent attention, 2.6 times slower than later
  releases on the same racks.
* `gpt-oss-120b`: the release 26.06.01 took 1.6 times as long as the ones before and after it.
* `nemotron-3-*` with automodel: kernels and transports differ from run to run.
* Without `llama-3-70b` three runs of a dense model are left, all of one small one.

## Parameters of models

Billions, of all layers and of those that a token meets, beside public figures
([models.csv](models.csv)); *off*: the larger difference, bold beyond 0.1 %.

{parameters}

## Operations of a token

Forward and backward, beside published TFLOP/s over tokens/s, {many_flops} models and releases;
*off*: the largest difference of the runs, bold beyond 0.3 %, all for these reasons:

* `gpt-oss-120b` before 26.06: the framework counted other operations then;
* `nemotron-3-nano`: Megatron counts Mamba-2 with twice the hidden size where heads are narrower;
  `-super`, `-ultra`: attention in their layers of multi-token prediction is left out here;
* NeMo Automodel counts operations in its own way;
* four rows of `llama-3-70b` in 26.04.01, where published figures contradict each other;
* figures of three digits scatter by up to 0.9 %.

{flops}

## Rows that are set aside

{refused}
"""
