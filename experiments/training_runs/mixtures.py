"""Fits efficiencies by kinds of layers to published runs, and writes their page and files.

python -m experiments.training_runs.mixtures
"""

from __future__ import annotations

import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.testbed.script import ended
from experiments.testbed.written import results
from experiments.training_runs.shipped import FOLDER
from experiments.training_runs.store import HERE
from p2smt.errors import InputError
from p2smt.training.efficiencies.file import dump_efficiency
from p2smt.training.measured.fit_kinds import CORE, KindFit, fit_by_kinds, one_utilisation
from p2smt.training.measured.mixtures import dense_or_mixture, read_mixtures
from p2smt.training.strategy import strategy_text

RUNS, RESULTS, PAGE = HERE / "mixtures.csv", HERE / "mixtures.json", HERE / "mixtures.md"
KINDS = ("MoE", "dense", "Mamba")
MOST_WRONG = 25
DIGITS = 4
SHIPPED = ("megatron-bridge-", "automodel-")
"""Beginnings of the names of efficiencies that come with p2smt."""


def study() -> dict[str, Any]:
    """All results: the constants, and every run with its predictions."""
    read = read_mixtures(str(RUNS))
    known = [run for run in read.runs if run.hardware in CORE]
    unknown = [(run.name, f"no preset of {run.hardware}") for run in read.runs if run not in known]
    found = fit_by_kinds(known)
    return {
        "refused": Counter(why for _, why in (*read.refused, *unknown)),
        "sets": [_set(one) for one in found],
        "runs": [row for one in found for row in _runs(one)],
    }


def _set(one: KindFit) -> dict[str, Any]:
    assert one.efficiency.layers
    return {
        "name": one.efficiency.name,
        "text": dump_efficiency(one.efficiency, (f"experiments/training_runs/{RUNS.name}",)),
        "fraction": one.efficiency.fraction,
        "low": dict(one.efficiency.layers.low),
        "runs": len(one.runs),
        "models": len({run.group for run in one.runs}),
        "fitted": _rounded(statistics.fmean(map(abs, one.errors(left_out=False)))),
        "left_out": _rounded(one.efficiency.error),
    }


def _runs(one: KindFit) -> Iterable[dict[str, Any]]:
    kinds = [dense_or_mixture(run) for run in one.runs]
    plain: dict[int, float] = {}
    for kind in KINDS:
        rows = [at for at, mine in enumerate(kinds) if mine == kind]
        if rows:
            errors = one_utilisation([one.runs[at] for at in rows])
            plain |= dict(zip(rows, errors, strict=True))
    both = zip(one.errors(left_out=False), one.errors(), strict=True)
    for at, (run, (fitted, left_out)) in enumerate(zip(one.runs, both, strict=True)):
        yield {
            "id": run.name,
            "set": one.efficiency.name,
            "kind": kinds[at],
            "model": run.group,
            "strategy": strategy_text(run.training.strategy),
            "measured_s": run.step_s,
            "fitted": _rounded(fitted),
            "left_out": _rounded(left_out),
            "one_utilisation": _rounded(plain[at]),
        }


def _rounded(value: float) -> float:
    return results.rounded(value, DIGITS)


def page(data: Mapping[str, Any]) -> str:
    """The page of the study."""
    runs = data["runs"]
    wrong = sorted(runs, key=lambda one: -abs(one["left_out"]))[:MOST_WRONG]
    return TEXT.format(
        runs=len(runs),
        kinds=_table(_kinds(runs), ("kind", "runs", *COLUMNS)),
        sets=_table(map(_set_row, data["sets"]), ("efficiency", "runs", "models", *SETS)),
        models=_table(_models(runs), ("model", "runs", *COLUMNS)),
        wrong=_table(map(_wrong_row, wrong), WRONG),
        refused="\n".join(f"* {many}: {why}" for why, many in data["refused"].items()),
    )


COLUMNS = ("fitted: mean (median)", "model left out: mean (median)", "one utilisation: mean")
SETS = ("part of the peak", "fitted: mean", "model left out: mean")
WRONG = ("run", "efficiency", "model", "strategy", "measured", "model left out", "fitted")


def _kinds(runs: Sequence[Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    for kind in KINDS:
        yield (kind, *_errors([one for one in runs if one["kind"] == kind]))
    yield ("all", *_errors(runs))


def _models(runs: Sequence[Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    for model in sorted({one["model"] for one in runs}):
        yield (model, *_errors([one for one in runs if one["model"] == model]))


def _errors(runs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    def of(key: str, how: Callable[[Iterable[float]], float]) -> str:
        return f"{how([abs(one[key]) for one in runs]):.1%}"

    mean, median = statistics.fmean, statistics.median
    pairs = [f"{of(key, mean)} ({of(key, median)})" for key in ("fitted", "left_out")]
    return (str(len(runs)), *pairs, of("one_utilisation", mean))


def _set_row(one: Mapping[str, Any]) -> tuple[str, ...]:
    parts = {"16 bits": one["fraction"], **one["low"]}
    text = ", ".join(f"{name} {part:.2f}" for name, part in parts.items())
    numbers = (str(one["runs"]), str(one["models"]), text)
    return (f"`{one['name']}`", *numbers, f"{one['fitted']:.1%}", f"{one['left_out']:.1%}")


def _wrong_row(one: Mapping[str, Any]) -> tuple[str, ...]:
    named = (one["id"], one["set"], one["model"], f"`{one['strategy']}`")
    errors = (f"{one['left_out']:+.0%}", f"{one['fitted']:+.0%}")
    return (*named, f"{one['measured_s']:g} s", *errors)


def _table(rows: Iterable[Sequence[str]], head: Sequence[str]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TEXT = """# Mixtures of experts, hybrids and low precision beside measured runs

Written by `make training-runs` from [mixtures.csv](mixtures.csv): {runs} published runs, a source
and a licence in each row; [mixtures.json](mixtures.json) has every one with its predictions. No
number here has another origin.

One part of the peak is fitted for each framework, device and precision; the other constants are
common to all runs ([efficiency.py](../../p2smt/training/efficiency.py)). *Model left out*: by the
constants of the runs of other models of the same set, in the same precision where there are any.
*One utilisation*: the model's operations at one part of the peak, fitted to the runs of each set
and kind themselves.

{kinds}

{sets}

A part of 1.00 says that the runs of the set took no longer than the other constants allow: it
measures what these leave out, not the products.

## By model

{models}

## Where the model is wrong

{wrong}

* `deepseek-v3` in NeMo 2 on GB200 ran with unfused latent attention, 2.6 times slower than later
  releases on the same racks.
* `gpt-oss-120b`: the release 26.06.01 took 1.6 times as long as the ones before and after it;
  runs with one all-to-all over 64 GPUs of eight nodes are predicted far too slow.
* `nemotron-3-super` and `-ultra` with automodel: kernels and transports differ from run to run.

## Rows that are set aside

{refused}
"""


def main(arguments: Sequence[str]) -> None:
    """Write the results, the page and the efficiencies.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    data = study()
    results.write(RESULTS, data)
    PAGE.write_text(page(data), encoding="utf-8")
    for path, text in shipped(data).items():
        path.write_text(text, encoding="utf-8")


def shipped(data: Mapping[str, Any]) -> dict[Path, str]:
    """The text of each file of an efficiency that comes with p2smt."""
    chosen = [one for one in data["sets"] if one["name"].startswith(SHIPPED)]
    return {FOLDER / f"{one['name']}.yaml": one["text"] for one in chosen}


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
