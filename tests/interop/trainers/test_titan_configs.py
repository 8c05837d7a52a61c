"""TorchTitan's configuration in Python says what its options say."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from p2smt.interop.exported import Exported
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.training.model_file import read_model
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Experts, LatentAttention, LayerKind, LayerRun, Transformer
from tests.interop.trainers.cases import LLAMA_70B, ORACLE_OF, Run, easy_runs, same_run
from tests.interop.trainers.mixtures import ALIKE, EXPERTS, mixture_runs
from tests.interop.trainers.titan_rules import CONFIGURATIONS, OPTIONS
from tests.tiers import examples_of

MANY = settings(
    max_examples=examples_of(200),
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


class Section:
    """A section of a configuration, which has the fields of one and no others."""

    def __init__(self, name: str, **values: object) -> None:
        self.__dict__["name"] = name
        for field, value in values.items():
            setattr(self, field, value)

    def __setattr__(self, field: str, value: object) -> None:
        if f"{self.__dict__['name']}.{field}" not in OPTIONS:
            raise TypeError(field)
        self.__dict__[field] = value

    def options(self) -> list[str]:
        """The same as options."""
        name, *_ = self.__dict__.values()
        return [option(f"{name}.", *one) for one in self.__dict__.items() if one[0] != "name"]


def option(section: str, field: str, value: object) -> str:
    """A field as an option of the command line, as tyro makes it."""
    if isinstance(value, bool):
        return f"--{section}{field}" if value else f"--{section}no_{field}"
    return f"--{section}{field} {value}"


def modules(registry: Mapping[str, object]) -> dict[str, ModuleType]:
    """What the file imports of TorchTitan (its names at the commit of the rules)."""
    full = SimpleNamespace(Config=lambda: "full")
    names: dict[str, dict[str, object]] = {
        "torchtitan": {},
        "torchtitan.distributed": {},
        "torchtitan.config": {"ParallelismConfig": lambda **one: Section("parallelism", **one)},
        "torchtitan.distributed.activation_checkpoint": {"FullAC": full},
        "torchtitan.trainer": {"Trainer": SimpleNamespace(Config=object)},
    }
    for module, config in CONFIGURATIONS:
        made = names.setdefault(f"torchtitan.models.{module}.config_registry", {})
        made[config] = registry[config]
    found = {}
    for name, values in names.items():
        found[name] = ModuleType(name)
        found[name].__dict__.update(values)
    return found


def as_options(written: Exported) -> Exported:
    """The options that say the same as the configuration that the file makes."""
    made: list[str] = []

    def of(module: str, config: str) -> Any:
        def configuration() -> SimpleNamespace:
            made.extend([f"--module {module}", f"--config {config}"])
            return SimpleNamespace(training=Section("training"), activation_checkpoint="kept")

        return configuration

    registry = {config: of(module, config) for module, config in CONFIGURATIONS}
    scope: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, module in modules(registry).items():
            patch.setitem(sys.modules, name, module)
        exec(written.text, scope)
    if "def planned()" in written.text:
        config = scope["planned"]()
    else:
        config = scope["planned"](SimpleNamespace(training=Section("training")))
    kept = {None: "none", "full": "full"}[config.activation_checkpoint]
    lines = [*made, *config.training.options(), *config.parallelism.options()]
    return Exported("\n".join([*lines, f"activation-checkpoint:{kept}"]), written.notes)


def check_same(run: Run) -> None:
    if TORCHTITAN.lacks(*run):
        return
    found = ORACLE_OF["torchtitan"](
        run[0], run[2], as_options(TORCHTITAN.export(*run, python=True))
    )
    assert same_run(found, run)


@MANY
@given(run=easy_runs("torchtitan"))
def test_a_configuration_of_a_dense_model_starts_the_run(run: Run) -> None:
    check_same(run)


@MANY
@given(run=mixture_runs(likely="torchtitan"))
def test_a_configuration_of_a_mixture_starts_the_run(run: Run) -> None:
    check_same(run)


DEEPSEEK = Transformer(
    *("deepseek", 61, 7168, 128, 128, 18432, True, 129280, 192),
    experts=Experts(256, 8, 2048, 2048, groups=8, top_groups=4),
    mla=LatentAttention(512, 128, 64, 128, 1536),
    order=(LayerRun(3, (LayerKind(),)), LayerRun(58, (EXPERTS,))),
)
FULL = Strategy(dp=16, tp=4, sequence_parallel=True, zero=3, ep=8, recompute=Recompute.FULL)


KNOWN = {
    "llama-3-8b": "llama3_8b",
    "qwen3-30b-a3b": "qwen3_30b_a3b",
    "deepseek-v2-lite": "deepseek_v3_16b",
    "gpt-oss-20b": "gpt_oss_20b",
    "gpt-oss-120b": "gpt_oss_120b",
}


@pytest.mark.parametrize("name", KNOWN)
def test_models_of_ours_are_configurations_of_its(name: str) -> None:
    model = read_model(name)
    strategy = Strategy(dp=8, zero=3, ep=8 if model.experts else 1)
    run: Run = (model, Batch(16, 4096), strategy)
    written = TORCHTITAN.export(*run)
    assert f"--config {KNOWN[name]}" in written.text.splitlines()
    assert same_run(ORACLE_OF["torchtitan"](model, strategy, written), run)
    ringed = replace(strategy, dp=4, cp=2)
    known = "--config" in TORCHTITAN.export(model, Batch(16, 4096), ringed).text
    assert known == CONFIGURATIONS_OF[KNOWN[name]].flex


CONFIGURATIONS_OF = {config: known for (_, config), known in CONFIGURATIONS.items()}


@pytest.mark.parametrize(
    ("model", "given"),
    [(DEEPSEEK, ""), (LLAMA_70B, ""), (ALIKE, "config: Trainer.Config")],
)
def test_a_known_model_is_made_and_another_is_taken(model: Transformer, given: str) -> None:
    strategy = FULL if model.experts else Strategy(dp=2, zero=2)
    run: Run = (model, Batch(32, 4096), strategy)
    assert TORCHTITAN.lacks(*run) == ()
    check_same(run)
    text = TORCHTITAN.export(*run, python=True).text
    assert f"def planned({given}) -> Trainer.Config:" in text
    plain = TORCHTITAN.export(*run).text
    assert ("expert_parallel_degree 8" in plain) == (model.experts is not None)
    assert ("--config deepseek_v3_671b" in plain) == (model is DEEPSEEK)
