"""The oracles tell every option apart: a text with one of them changed starts another run, or none.

A line is changed (a number by one, a word to another that the trainer knows), and left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings

from p2smt.interop.exported import Exported
from p2smt.interop.trainers.deepspeed import DEEPSPEED
from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.interop.trainers.megatron_bridge import MEGATRON_BRIDGE
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.interop.trainers.trainer import Trainer
from tests.interop.trainers import megatron_rules, titan_rules
from tests.interop.trainers.bridge_rules import FIELDS
from tests.interop.trainers.cases import ORACLE_OF, Run, easy_runs, same_run
from tests.interop.trainers.mixtures import mixture_runs
from tests.interop.trainers.started import Refused
from tests.strategies.draws import Draws, draws
from tests.tiers import examples_of

MANY = settings(
    max_examples=examples_of(100),
    # most strategies cannot run, or have too few degrees: those that do are what is changed
    suppress_health_check=[HealthCheck.filter_too_much],
)

# They change speed alone, or have that value (perhaps computed from others) when left out.
SPEED = {
    *("overlap-grad-reduce", "overlap-param-gather", "tp-comm-overlap"),
    "no-gradient-accumulation-fusion",
    "disable-bias-linear",  # biases are the user's, where nothing excludes them
}
COMPUTED = {
    *("kv-channels", "ffn-hidden-size"),
    "attention-backend",  # Transformer Engine's choice
    "parallelism.fsdp_reshard_after_forward",  # kept where there is a pipeline
    "parallelism.data_parallel_shard_degree",  # what is left of the ranks
    "training.num_tokens_per_train_step",  # one round
    "parallelism.pipeline_parallel_layers_per_stage",
}
OTHER_WORDS = {
    "float32": "bfloat16",
    "bfloat16": "float32",
    "always": "never",
    "never": "always",
    "1F1B": "GPipe",
    "Interleaved1F1B": "1F1B",
    "flash": "unfused",
    "selective": "full",
    "full": "selective",
    "uniform": "block",
    "core_attn": "mlp",
    "optim_grads": "optim_grads_params",
    "optim_grads_params": "optim_grads",
    "fsdp_dtensor": "torch_dist",
    "--bf16": "--fp16",
    "e4m3": "hybrid",
    "tensorwise": "mxfp8",
    "mxfp8": "tensorwise",
    "--fp16": "--bf16",
    "activation-checkpoint:none": "activation-checkpoint:full",
    "activation-checkpoint:full": "activation-checkpoint:none",
    "--parallelism.enable_sequence_parallel": "--parallelism.no_enable_sequence_parallel",
    "--parallelism.no_enable_sequence_parallel": "--parallelism.enable_sequence_parallel",
}


def unharmed(trainer: Trainer, run: Run, written: Exported) -> bool:
    """Whether the text still starts the run."""
    try:
        return same_run(ORACLE_OF[trainer.name](run[0], run[2], written), run)
    except (Refused, KeyError, AttributeError):
        return False


def changes(line: str) -> Iterator[str]:
    """The line with its last word changed."""
    *before, last = line.split(" ", 1)
    if last.isdigit():
        yield from (" ".join([*before, str(int(last) + by)]) for by in (1, -1))
    elif last in OTHER_WORDS:
        yield " ".join([*before, OTHER_WORDS[last]])
    elif last.startswith(("'E", "E")):
        yield line.replace("t|", "|", 1) if "t|" in line else line.replace("|", "t|", 1)


def with_line(written: Exported, number: int, lines: list[str]) -> Exported:
    every = written.text.splitlines()
    return replace(written, text="\n".join([*every[:number], *lines, *every[number + 1 :]]) + "\n")


def is_default(trainer: Trainer, line: str) -> bool:
    """Whether the line says what the trainer takes without it."""
    name, _, value = line.removeprefix("--").partition(" ")
    if trainer is TORCHTITAN:
        if name.startswith("parallelism.enable"):
            return True
        return name in COMPUTED or str(titan_rules.OPTIONS.get(name)) == value
    default = megatron_rules.OPTIONS[name][1]
    told = " ".join(default) if isinstance(default, tuple) else str(default)
    return name in SPEED | COMPUTED or (bool(value) and told == value)


@pytest.mark.parametrize("trainer", [MEGATRON, TORCHTITAN], ids=lambda trainer: trainer.name)
@MANY
@given(data=draws())
def test_a_line_changed_or_left_out_is_noticed(trainer: Trainer, data: Draws) -> None:
    run = data.draw(easy_runs(trainer.name))
    check_lines(trainer, run)


@pytest.mark.parametrize("trainer", [MEGATRON, TORCHTITAN], ids=lambda trainer: trainer.name)
@MANY
@given(data=draws())
def test_a_line_of_a_mixture_changed_or_left_out_is_noticed(trainer: Trainer, data: Draws) -> None:
    check_lines(trainer, data.draw(mixture_runs(likely=trainer.name)))


def check_lines(trainer: Trainer, run: Run) -> None:
    """Whether every line of what is written matters."""
    strategy = run[2]
    assume(strategy.tp > 1 and strategy.dp > 1 and not trainer.lacks(*run))
    written = trainer.export(*run)
    for number, line in enumerate(written.text.splitlines()):
        tried = [with_line(written, number, [changed]) for changed in changes(line)]
        assert not tried or not all(unharmed(trainer, run, text) for text in tried), line
        if line == "--use-distributed-optimizer" and strategy.zero > 1:
            continue  # Megatron-FSDP turns it on (arguments.py 1128-1135)
        if not is_default(trainer, line):
            assert not unharmed(trainer, run, with_line(written, number, [])), line


@MANY
@given(run=mixture_runs(likely="megatron"))
def test_a_line_of_a_recipe_changed_or_left_out_is_noticed(run: Run) -> None:
    assume(not MEGATRON_BRIDGE.lacks(*run) and run[2].dp * run[2].cp > 1)
    written = MEGATRON_BRIDGE.export(*run)
    for number, line in enumerate(written.text.splitlines()):
        field, equals, value = line.removeprefix("cfg.").partition(" = ")
        section, _, name = field.partition(".")
        if not (equals and name and section in FIELDS) or name in RECIPE_FREE:
            continue
        if name.startswith("account_for") and run[2].pp == 1:
            continue  # one stage has all layers
        if name.startswith("recompute_") and "recompute_granularity = None" in written.text:
            continue  # which says it all
        if (name, value) == ("recompute_modules", "None"):
            continue  # whole layers are
        if repr(FIELDS[section][name]).replace("'", '"') != value:
            assert not unharmed(MEGATRON_BRIDGE, run, with_line(written, number, [])), line
        if value.isdigit():
            other = with_line(written, number, [f"{line}1"])
            assert not unharmed(MEGATRON_BRIDGE, run, other), line


# What changes speed alone; what another field of the recipe says as well.
RECIPE_FREE = {
    *("overlap_grad_reduce", "overlap_param_gather", "gradient_accumulation_fusion"),
    *(
        "cp_comm_type",
        "tp_comm_overlap",
        "use_megatron_fsdp",
        "use_distributed_optimizer",
        "window_size",
    ),
    *("moe_flex_dispatcher_backend", "virtual_pipeline_model_parallel_size", "attention_backend"),
}


@MANY
@given(run=easy_runs("deepspeed"))
def test_a_key_changed_or_left_out_is_noticed(run: Run) -> None:
    assume(run[2].dp > 1 and not DEEPSPEED.lacks(*run))
    written = DEEPSPEED.export(*run)
    config = json.loads(written.text)
    for key, value in config.items():
        rest = {name: config[name] for name in config if name != key}
        if key not in ("train_batch_size", "zero_optimization"):  # computed; stage 0 is the default
            assert not unharmed(DEEPSPEED, run, replace(written, text=json.dumps(rest))), key
        for other in changed_values(value):
            text = json.dumps({**config, key: other})
            assert not unharmed(DEEPSPEED, run, replace(written, text=text)), (key, other)


def changed_values(value: object) -> Iterator[object]:
    """A number, switch or the one number of a section, changed."""
    if isinstance(value, dict):
        ((name, inner),) = value.items()
        yield from ({name: other} for other in changed_values(inner))
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1


@MANY
@given(run=easy_runs("deepspeed"))
def test_arguments_of_the_pipeline_are_read(run: Run) -> None:
    assume(run[2].pp > 1 and not DEEPSPEED.lacks(*run))
    written = DEEPSPEED.export(*run)
    assert unharmed(DEEPSPEED, run, written)
    pp = run[2].pp
    for old, new in (
        (f"num_stages={pp}", f"num_stages={pp + 1}"),
        ("interval=0", "interval=1"),
        ("interval=1", "interval=0"),
        ("interval=", "interval=2+"),
    ):
        notes = tuple(note.replace(old, new).replace("2+", "2") for note in written.notes)
        assert notes == written.notes or not unharmed(DEEPSPEED, run, replace(written, notes=notes))
