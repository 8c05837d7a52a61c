"""Plans with a ``training`` block: written, read back, verified; what is changed is found."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from p2smt.api.workload import estimate
from p2smt.cluster.file import parse_topology
from p2smt.errors import InputError
from p2smt.plans.file_model import PlanModel
from p2smt.plans.training.file_model import (
    BatchBlock,
    EfficiencyBlock,
    FrameworkBlock,
    LayersBlock,
    MemoryBlock,
    StrategyBlock,
    TrainingBlock,
)
from p2smt.result import SearchLimits, Status
from p2smt.training.efficiency import Efficiency, Framework, LayerConstants
from p2smt.training.model_file import read_model
from p2smt.training.model_names import model_names
from p2smt.training.plan_block import efficiency_in, run_of, training_data
from p2smt.training.prediction import MemoryParts
from p2smt.training.strategy import MIXTURE_FIELDS, Batch, Strategy
from p2smt.training.training_plan import (
    TrainingPlan,
    check_training_plan,
    training_plan,
    training_plan_data,
)
from p2smt.training.transformer import DENSE_KEYS, Transformer
from p2smt.units import format_time
from tests.cli.tools import H100, TINY, cli
from tests.refusals import refusal

MODEL = Transformer("small", 4, 512, 8, 4, 1024, True, 1000, 64)
CHUNKED = "tp=2,pp=2,dp=2,vpp=2,zero=1,sp=1,mbs=2"


@cache
def planned(strategy: str = CHUNKED) -> TrainingPlan:
    device = H100.replace("peak: {", "peak: {fp8: 1979 TFLOP/s, ")
    cluster = parse_topology(TINY + device, "tiny")
    name = "megatron-bridge-h100" if strategy == LOW else "megatron-h100"
    return training_plan(estimate(MODEL, cluster, strategy, Batch(16, 1024), name))


def data(strategy: str = CHUNKED) -> dict[str, Any]:
    found = json.loads(json.dumps(training_plan_data(planned(strategy))))
    assert isinstance(found, dict)
    return copy.deepcopy(found)


def verdict(plan: dict[str, Any]) -> list[str]:
    """What is wrong with a plan."""
    report = check_training_plan(PlanModel.model_validate(plan), "plan")
    assert report.valid == (not report.notes and not report.violations)
    return [note.message for note in report.notes]


STRATEGIES = (
    CHUNKED,
    "dp=8,zero=3",
    "tp=4,dp=2",
    "cp=2,dp=4,zero=2",
    "pp=4,tp=2,split=1/0/2/1",
    "tp=8,sp=1,recompute=full",
    "tp=2,dp=4,recompute=mlp+layernorm,graphs=full",
)
LOW = "tp=2,dp=4,dtype=fp8,fp8_attention=1"
"""Besides, in 8 bits: of an efficiency by kinds of layers."""


@pytest.mark.parametrize("strategy", [*STRATEGIES, LOW])
def test_a_plan_is_valid_and_says_what_was_asked(strategy: str) -> None:
    plan = data(strategy)
    assert verdict(plan) == []
    read = PlanModel.model_validate(plan)
    assert read.training is not None
    assert run_of(read.training, "plan") == planned(strategy).estimate.run
    assert efficiency_in(read.training, "plan") == planned(strategy).estimate.efficiency
    assert "training" in check_training_plan(read, "plan").checked


def test_programs_without_a_proof_are_told() -> None:
    assert planned().notes == ()
    cluster = parse_topology(TINY + H100, "tiny")
    run = estimate(MODEL, cluster, "tp=4,dp=2", Batch(16, 1024), "megatron-h100")
    cut = training_plan(run, SearchLimits(time_limit_s=0.0))
    assert len(cut.notes) == 1
    assert "no program was found in time" in cut.notes[0] or "not proved the best" in cut.notes[0]
    whole = training_plan(run)
    assert whole.notes == ()
    assert whole.solution is not None
    assert whole.solution.best is not None
    first, *rest = whole.answers
    open_one = replace(first, status=Status.FEASIBLE)
    best = replace(whole.solution.best, requests=(open_one, *rest))
    partly = replace(whole, solution=replace(whole.solution, alternatives=(best,)))
    (note,) = partly.notes
    assert note.startswith(f"1 of {len(rest) + 1} programs of the plan are not proved the best")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_programs_never_take_longer(strategy: str) -> None:
    found = planned(strategy)
    assert found.estimate.iteration_s <= found.collectives_s * (1 + 1e-12)
    assert len(found.answers) == len(data(strategy)["requests"])


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (BatchBlock, Batch),
        (StrategyBlock, Strategy),
        (FrameworkBlock, Framework),
        (EfficiencyBlock, Efficiency),
        (LayersBlock, LayerConstants),
        (MemoryBlock, MemoryParts),
    ],
)
def test_blocks_have_every_field(block: Any, kind: Any) -> None:
    assert set(block.model_fields) == {field.name for field in fields(kind)} - {"sources"}


def test_what_is_as_of_dense_models_in_16_bits_is_left_out() -> None:
    assert set(data()["training"]["strategy"]).isdisjoint(MIXTURE_FIELDS)
    assert set(data(LOW)["training"]["strategy"]) & set(MIXTURE_FIELDS) == {"fp8_attention"}


@pytest.mark.parametrize("name", sorted(model_names()))
def test_a_block_holds_any_model(name: str) -> None:
    found = replace(planned().estimate.run, model=read_model(name))
    block = training_data(replace(planned().estimate, run=found))
    text = json.dumps(block)
    read = run_of(TrainingBlock.model_validate_json(text), "plan")
    assert read == replace(found, model=replace(found.model, sources=()))


def test_the_block_of_a_dense_model_has_its_sizes_alone() -> None:
    assert set(data()["training"]["model"]) == set(DENSE_KEYS)


def test_a_model_that_cannot_be_is_refused_by_the_files_name() -> None:
    plan = data()
    plan["training"]["model"]["experts"] = {"count": 4, "active": 8, "width": 64}
    block = PlanModel.model_validate(plan).training
    assert block is not None
    with pytest.raises(InputError, match=r"^plan: training: model small: .*active"):
        run_of(block, "plan")


def set_at(*path: str | int) -> Callable[[dict[str, Any], Any], None]:
    def change(plan: dict[str, Any], value: Any) -> None:
        at: Any = plan
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


NUMBERS = (
    ("training", "prediction", "iteration_s"),
    ("training", "prediction", "compute_s"),
    ("training", "prediction", "bubble_s"),
    ("training", "prediction", "optimizer_s"),
    ("training", "prediction", "communication", 0, "seconds"),
    ("training", "prediction", "memory", "parameters"),
    ("training", "prediction", "memory", "activations"),
    ("training", "prediction", "requests", 0, "call_s"),
    ("training", "prediction", "requests", 0, "visible_s"),
    ("training", "prediction", "requests", 0, "hidden_s"),
    ("training", "prediction", "model_flops"),
)


@pytest.mark.parametrize("path", NUMBERS, ids=str)
def test_a_number_that_is_changed_is_found(path: tuple[str | int, ...]) -> None:
    plan = data()
    at: Any = plan
    for key in path[:-1]:
        at = at[key]
    old = at[path[-1]]
    at[path[-1]] = old + 1 if isinstance(old, int) else old * 1.001 + 1e-6
    (message,) = verdict(plan)
    assert str(path[-1]) in message


OTHERS: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("training", "strategy", "dp"), 4, "(rule devices)"),
    (("training", "strategy", "vpp"), 4, "(rule layers)"),
    (("training", "strategy", "zero"), 3, "request"),
    (("training", "strategy", "sequence_parallel"), False, "request"),
    (("training", "strategy", "micro_batch"), 1, "request"),
    (("training", "model", "hidden"), 1024, "request"),
    (("training", "model", "ffn"), 2048, "says"),
    (("training", "batch", "tokens"), 2048, "request"),
    (("training", "efficiency", "fraction"), 0.3, "compute_s"),
    (("training", "efficiency", "framework", "tp_hidden"), False, "says"),
    (("training", "memory_bytes"), 1000, "bytes a device of 1000"),
    (("topology", "device"), None, "does not say what its devices can do"),
    (("training", "prediction", "requests"), [], "entries"),
]


@pytest.mark.parametrize(("path", "value", "part"), OTHERS, ids=str)
def test_what_does_not_belong_together_is_found(
    path: tuple[str | int, ...], value: Any, part: str
) -> None:
    plan = data()
    set_at(*path)(plan, value)
    messages = verdict(plan)
    assert messages
    assert any(part in message for message in messages)


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        (("training", "model", "kv_heads"), 3, "kv_heads must divide heads"),
        (("training", "batch", "sequences"), 10**10, "must be 1 to"),
    ],
    ids=str,
)
def test_sizes_that_make_no_model_are_bad_input(
    path: tuple[str | int, ...], value: Any, part: str
) -> None:
    plan = data()
    set_at(*path)(plan, value)
    said = refusal(verdict, plan)
    assert said.startswith("plan: training")
    assert part in said


def test_one_device_has_no_plan() -> None:
    one = parse_topology(
        "name: one\nlibrary: none\n" + H100 + "levels: [{name: gpu, size: 1, "
        "link: {kind: switch, bandwidth: 10 GB/s, latency: 1 us}}]\n",
        "one",
    )
    found = training_plan(estimate(MODEL, one, "dp=1", Batch(16, 1024), "megatron-h100"))
    assert found.solution is None
    assert found.estimate.iteration_s == found.collectives_s
    with pytest.raises(InputError, match="has no plan file"):
        training_plan_data(found)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data()))
    return str(path)


def test_commands_take_the_file(file: str) -> None:
    verified = cli("verify", file, "--json")
    assert (verified.code, verified.json()["verdict"]) == (0, "valid")
    assert "training" in verified.json()["checked"]
    assert cli("cost", file).code == 0
    ran = cli("run", file, "--backend", "reference", "--payload", "64KiB", "--json")
    assert (ran.code, ran.json()["verified"]) == (0, True)
    ranks = cli("export", file, "--to", "csv")
    assert (ranks.code, len(ranks.out.splitlines())) == (0, 9)
    options = cli("export", file, "--to", "megatron-options")
    assert options.code == 0
    assert "--tensor-model-parallel-size 2" in options.out.splitlines()


def test_its_cost_is_told_from_the_time_of_the_training(file: str) -> None:
    lines = cli("cost", file, "--details").out.splitlines()
    said = data()["training"]["prediction"]
    total = format_time(data()["objective_s"])
    assert any(line.startswith(f"{total} of communication per iteration") for line in lines)
    whole = format_time(said["iteration_s"])
    shown = format_time(sum(one["seconds"] for one in said["communication"]))
    shows = f"of which {shown} is communication that nothing hides"
    assert f"iteration of the training: {whole}, {shows}" in lines


def test_trainers_that_are_told_in_python_get_python(tmp_path: Path) -> None:
    path, made = tmp_path / "plan.json", tmp_path / "planned.py"
    path.write_text(json.dumps(data("dp=8,zero=3")))
    recipe = cli("export", str(path), "--to", "megatron-bridge")
    assert (recipe.code, "cfg.train.global_batch_size = 16" in recipe.out.splitlines()) == (0, True)
    to = (str(path), "--to", "torchtitan-options")
    assert cli("export", *to).out.startswith("--training.")
    assert cli("export", *to, "-o", str(made)).code == 0
    assert "def planned(config: Trainer.Config) -> Trainer.Config:" in made.read_text()


def test_a_wrong_file_is_refuted(file: str) -> None:
    plan = data()
    plan["training"]["prediction"]["iteration_s"] *= 2
    Path(file).write_text(json.dumps(plan))
    done = cli("verify", file)
    assert done.code == 1
    assert "training: training iteration_s says" in done.out


def test_other_plans_have_no_options(plan: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(plan))
    done = cli("export", str(path), "--to", "megatron-options")
    assert done.code == 2
    assert "is no plan of a training" in done.err
