"""What launch files write in other ways: here-documents, modules, older names, forks, defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import H100, TINY, assert_one_error, cli

ON = ("-t", "tiny.yaml")
MODEL = (
    "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --vocab-size 32000 --seq-length 1024"
)
REST = "--micro-batch-size 1 --global-batch-size 16 --bf16 --use-distributed-optimizer"
START = f"torchrun --nproc-per-node 8 pretrain_gpt.py {MODEL} {REST}"
TITAN = """
TRAIN=${TRAIN:-torchtitan.train}
cat > "$CONFIG" <<EOF
[training]
local_batch_size = 2
seq_len = 1024
[parallelism]
tensor_parallel_degree = $TP
# another = 1
[activation_checkpoint]
mode = "full"
EOF
torchrun --nproc_per_node=8 -m $TRAIN --job.config_file ${CONFIG}
"""
RECIPE = """
def recipe(tensor_model_parallel_size: int = 2, *, batch=16, hf="org/model"):
    cfg = common()
    cfg.model = AutoBridge.from_hf_pretrained(hf).to_megatron_provider(load_weights=True)
    cfg.model.tensor_model_parallel_size = tensor_model_parallel_size
    cfg.model.pipeline_dtype = torch.bfloat16
    cfg.model.seq_length = 1024
    cfg.train.micro_batch_size = 1
    cfg.train.global_batch_size = batch
    cfg.ddp.use_distributed_optimizer = True
    return cfg
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes of four devices."""
    (tmp_path / "tiny.yaml").write_text(TINY + H100)
    monkeypatch.chdir(tmp_path)


def read(text: str, *more: str, name: str = "run.sh") -> dict[str, Any]:
    Path(name).write_text(text)
    on = () if "-t" in more else ON
    found = cli("estimate", name, *on, *more, "--json")
    assert found.code == 0, found.err
    return found.json() | {"notes": found.err}


def refused(text: str, *more: str, name: str = "run.sh") -> str:
    Path(name).write_text(text)
    found = cli("estimate", name, *ON, *more)
    assert_one_error(found)
    return found.err


# TorchTitan.


TITAN_TOLD = ("--set", "TP=2", "--set", "CONFIG=a.toml", "--model", "llama-3.2-1b")


def test_a_toml_that_a_script_writes_is_read_with_its_variables() -> None:
    found = read(TITAN, *TITAN_TOLD)
    assert found["strategy"].startswith(
        "tp=2,pp=1,dp=4,cp=1,vpp=1,mbs=2,sp=1,zero=3,recompute=full"
    )
    over = TITAN.replace("${CONFIG}\n", "${CONFIG} --training.local_batch_size 4\n")
    assert read(over, *TITAN_TOLD)["strategy"].startswith("tp=2,pp=1,dp=4,cp=1,vpp=1,mbs=4")
    plain = TITAN.replace("<<EOF", "<<'EOF'").replace("$TP", "4")
    assert read(plain, *TITAN_TOLD)["degrees"]["tp"] == 4
    inner = f"docker run image bash -lc '{TITAN}'"
    assert read(inner, *TITAN_TOLD)["degrees"]["tp"] == 2


def test_what_is_open_in_a_written_toml_is_asked_for() -> None:
    said = refused(TITAN, *TITAN_TOLD[2:])
    assert "does not say TP; give --set TP=.." in said


def test_a_toml_elsewhere_is_asked_for_and_not_taken_for_defaults() -> None:
    script = "torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file a.toml"
    model = TITAN_TOLD[-2:]
    assert "takes fields from a.toml, which is not here" in refused(script, *model)
    Path("b.toml").write_text(TITAN.split("<<EOF\n")[1].split("EOF")[0].replace("$TP", "2"))
    assert read(script, *model, "--set", "job.config_file=b.toml")["degrees"]["tp"] == 2


def test_degrees_in_sections_of_older_versions_count() -> None:
    text = (
        "[training]\nbatch_size = 2\nseq_len = 1024\ntensor_parallel_degree = 2\n"
        "data_parallel_degree = -1\n[experimental]\npipeline_parallel_degree = 2\n"
        "[activation_checkpoint]\nmode = 'none'\n"
    )
    found = read(text, "--model", "llama-3.2-1b", name="job.toml")
    assert found["strategy"].startswith("tp=2,pp=2,dp=2")


def test_a_section_of_a_converter_that_is_not_named_does_nothing() -> None:
    text = TITAN.replace(
        "EOF\ntorchrun", '[quantize.linear.float8]\nfilter_fqns = ["o"]\nEOF\ntorchrun'
    )
    assert read(text, *TITAN_TOLD)["degrees"]["dtype"] == "bf16"
    named = text.replace(
        "[training]", '[model]\nconverters = ["quantize.linear.float8"]\n[training]'
    )
    assert read(named, *TITAN_TOLD, "-t", "dgx-h100:1")["degrees"]["dtype"] == "fp8"


def test_replicas_of_several_jobs_are_refused_by_name() -> None:
    text = TITAN.replace("${CONFIG}\n", "${CONFIG} --fault_tolerance.enable\n")
    assert "fault_tolerance.enable: joins replicas of several jobs" in refused(text, *TITAN_TOLD)


# Megatron-LM, its older versions and forks.


def test_options_of_forks_that_are_named_as_files_count_for_nothing() -> None:
    found = read(f"{START} --expert-dist-log-path $HERE --report-interval 3")
    assert "2 options count for no time or memory here" in found["notes"]
    assert "has --report-level, whose effect" in refused(f"{START} --report-level 3")


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ("--checkpoint-activations", "recompute=full"),
        ("--activations-checkpoint-granularity selective", "recompute=selective"),
    ],
)
def test_older_names_of_recomputation_are_read(options: str, start: str) -> None:
    assert start in read(f"{START} {options}")["strategy"]


def test_sharding_of_megatron_deepspeed_is_its_own() -> None:
    start = START.replace("--use-distributed-optimizer", "--deepspeed --deepspeed_config a.json")
    assert "does not say --zero-stage" in refused(start)
    assert read(f"{start} --zero-stage 3")["degrees"]["zero"] == 3


def test_the_width_of_an_mlp_may_be_rounded_as_in_llama() -> None:
    text = f"{START} --swiglu --multiple-of 256 --hidden-dim-multiplier 1.3"
    assert read(text)["model"]["ffn"] == 1792  # of 2048: 1365 * 1.3 = 1774
    assert "must be a number" in refused(text.replace("1.3", "wide"))


def test_a_batch_that_grows_is_priced_at_its_end() -> None:
    notes = read(f"{START} --rampup-batch-size 4 4 1000")["notes"]
    assert "--rampup-batch-size: an iteration of the full batch is priced" in notes


def test_one_of_several_trainings_is_told_by_its_line() -> None:
    text = f"{START}\n{START} --tensor-model-parallel-size 2\n"
    assert "starts several trainings, in lines 1, 2; give --set launch=1" in refused(text)
    assert read(text, "--set", "launch=2")["degrees"]["tp"] == 2
    assert "starts no training there" in refused(text, "--set", "launch=3")


def test_a_named_model_stands_for_the_arguments_of_a_checkpoint() -> None:
    text = START.replace(MODEL, "--seq-length 1024 --use-checkpoint-args")
    assert "does not say --model" in refused(text)
    found = read(text, "--model", "llama-3.2-1b")
    assert found["model"]["name"] == "llama-3.2-1b"
    assert "dropout is that of the checkpoint: none" in found["notes"]


# What a script reads from files.


def test_how_many_words_a_file_has_is_not_known() -> None:
    hosts = "mapfile -t HOSTS < hosts\nN=${N:-${#HOSTS[@]}}\n"
    text = f"{hosts}{START} --tensor-model-parallel-size $N"
    assert "does not say HOSTS" in refused(text)
    assert read(text, "--set", "N=2")["degrees"]["tp"] == 2
    assert read(text, "--set", "HOSTS=a b")["degrees"]["tp"] == 2


def test_a_test_of_a_file_is_told_by_its_line() -> None:
    text = f'if [ -f "$X/a" ]; then M="--swiglu"; fi\n{START} $M'
    assert "does not say line 1; give --set 'line 1'=.." in refused(text)
    assert read(text, "--set", "line 1=yes")["model"]["gated"]


def test_names_with_arg_in_them_need_not_hold_options() -> None:
    assert read(f"{START} --data-path $DATA_ARGUMENT_X")
    assert "does not say DATA_ARGS" in refused(f"{START} --data-path $DATA_ARGS")


# Configurations of DeepSpeed, and recipes.


def test_what_is_auto_is_asked_for_and_told() -> None:
    sizes = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    data = dict.fromkeys(sizes, "auto") | {"bf16": {"enabled": "auto"}}
    text = json.dumps(data | {"zero_optimization": {"stage": 2}})
    given = ("--model", "llama-3.2-1b", "--seq", "1024")
    said = refused(text, *given, name="ds.json")
    assert f"does not say {sizes[0]}, train_batch_size, dtype; give" in said
    told = ("--set", f"{sizes[0]}=2", "--set", "train_batch_size=32", "--set", "dtype=bf16")
    found = read(text, *given, *told, name="ds.json")
    assert (found["global_batch"], found["degrees"]["mbs"], found["degrees"]["zero"]) == (32, 2, 2)
    wrong = refused(text, *given, *told[:-1], "dtype=fp64", name="ds.json")
    assert "--set dtype=fp64: must be one of" in wrong


def test_parameters_of_a_recipe_have_their_defaults() -> None:
    said = refused(RECIPE, name="recipe.py")
    assert "does not say --model, mixed_precision; give --model --set mixed_precision=.." in said
    told = ("--model", "llama-3.2-1b", "--set", "mixed_precision=bf16_mixed")
    found = read(RECIPE, *told, name="recipe.py")
    assert (found["degrees"]["tp"], found["global_batch"]) == (2, 16)
    other = read(RECIPE, *told, "--set", "tensor_model_parallel_size=4", name="recipe.py")
    assert other["degrees"]["tp"] == 4
    base = RECIPE.replace("= tensor_model_parallel_size\n", "= base.tp\n")
    assert "does not say base.tp; give --set base.tp=.." in refused(base, *told, name="recipe.py")
    assert read(base, *told, "--set", "base.tp=4", name="recipe.py")["degrees"]["tp"] == 4
