"""Batch scripts: run by bash with stand-ins for Slurm, line by line, and by Slurm itself."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from os import environ
from pathlib import Path
from typing import Any

import pytest

from p2smt.interop.jobs.command import AskedJob, job_command
from p2smt.interop.jobs.sbatch import write_sbatch
from p2smt.interop.places import PlacedPlan, placed
from p2smt.interop.trainers.launches import read_launch
from p2smt.interop.trainers.trainer import training_of
from p2smt.plans.file_model import PlanModel
from p2smt.training.plan_block import run_of
from tests.cli.tools import assert_one_error, cli
from tests.interop.launchers.running import seen
from tests.interop.launchers.slurm_cluster import SlurmCluster, why_no_slurm
from tests.interop.launchers.trainings import nodes, training_data
from tests.interpreter import ran
from tests.pages import with_programs

TENSOR = "tp=2,sp=1,dp=4,zero=1"
SHARDED = "dp=8,zero=3"
STAGES = "pp=2,dp=4,zero=0"
SRUN = """\
#!/bin/bash
# srun(1), --distribution=arbitrary: task i runs on the host of line i, its tasks count from 0
for word; do [[ $word == --ntasks=* ]] && export SLURM_NTASKS=${word#*=}; done
[[ " $* " == *" --distribution=arbitrary "* ]] || exit 9
mapfile -t hosts < "$SLURM_HOSTFILE"
((${#hosts[@]} == SLURM_NTASKS)) || exit 8
declare -A local
shift 2
for ((rank = 0; rank < SLURM_NTASKS; rank++)); do
  export SLURMD_NODENAME=${hosts[rank]} SLURM_PROCID=$rank
  export SLURM_LOCALID=$((local[$SLURMD_NODENAME]++))
  "$@"
done
"""
PROGRAM = """\
#!/bin/bash
echo "seen,$RANK,$SLURMD_NODENAME,$LOCAL_RANK"
[[ $RANK == 0 ]] || exit 0
echo "world $WORLD_SIZE $MASTER_ADDR:$MASTER_PORT ${CUDA_DEVICE_MAX_CONNECTIONS-unset}"
printf 'word %s\\n' "$@"
"""
ORDER = """\
#!/bin/bash
[[ -e refuse ]] && exit 4
echo "asked $*"
printf '%s\\n' n4 n4 n1 n1 n2 n2 n3 n3 > "${@: -1}"
"""


TEMPORARY = """\
#!/bin/bash
[[ -e fail ]] && exit 1
exec /usr/bin/mktemp
"""


def plan_of(strategy: str, cluster: str | None = None, framework: str = "megatron") -> PlacedPlan:
    given = training_data(strategy, cluster, f"{framework}-h100") if cluster else None
    data = given or training_data(strategy, efficiency=f"{framework}-h100")
    return placed(PlanModel.model_validate(data), "test")


def script_of(plan: PlacedPlan, *, pinned: bool = False) -> str:
    return write_sbatch(plan, "job.sh", AskedJob("my plan.json", pinned=pinned)).text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with stand-ins for srun, for p2smt, and for what is trained."""
    (tmp_path / "bin").mkdir()
    stand_ins = {"srun": SRUN, "python": PROGRAM, "p2smt": ORDER, "mktemp": TEMPORARY}
    for name, text in stand_ins.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def started(script: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a script does on its first host."""
    (folder / "job.sh").write_text(script)
    variables = {
        "PATH": f"{folder / 'bin'}:{environ['PATH']}",
        "TMPDIR": str(folder),
        "CUDA_DEVICE_MAX_CONNECTIONS": "8",
    }
    return ran("bash", "job.sh", *arguments, folder=folder, environment=variables)


def header(script: str) -> dict[str, str]:
    """What is asked of Slurm: options stand before the first command (sbatch(1))."""
    found = {}
    for line in script.splitlines():
        if line.startswith("#SBATCH --"):
            name, _, value = line.removeprefix("#SBATCH --").partition("=")
            found[name] = value
        elif line and not line.startswith("#"):
            break
    return found


def words(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line[5:] for line in done.stdout.splitlines() if line.startswith("word ")]


def test_the_header_asks_for_whole_nodes() -> None:
    asked = {
        "job-name": "llama-3-8b-dp-4-tp-2",
        "nodes": "4",
        "ntasks-per-node": "2",
        "gpus-per-node": "2",
        "exclusive": "",
    }
    assert header(script_of(plan_of(TENSOR))) == asked
    assert header(script_of(plan_of(TENSOR), pinned=True)) == {**asked, "nodelist": "n[1,3,2,4]"}


def test_what_a_script_needs_stands_on_top() -> None:
    text = script_of(plan_of(TENSOR))
    top = text.partition("set -eo pipefail")[0]
    assert "# It needs p2smt on the first of its nodes" in top
    assert "# and the plan there: 'my plan.json', or what PLAN names." in top
    assert "p2smt order" in text.partition("set -eo pipefail")[2]
    pinned = script_of(plan_of(TENSOR), pinned=True)
    assert "and no p2smt." in pinned.partition("set -eo pipefail")[0]
    assert "p2smt order" not in pinned


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize(
    ("strategy", "framework"),
    [(TENSOR, "megatron"), (SHARDED, "fsdp"), (STAGES, "megatron"), (STAGES, "fsdp")],
)
def test_a_script_is_read_back_as_its_strategy(
    strategy: str, framework: str, tmp_path: Path, *, pinned: bool
) -> None:
    plan = plan_of(strategy, framework=framework)
    path = tmp_path / "job.sh"
    path.write_text(script_of(plan, pinned=pinned))
    run = run_of(training_of(plan), "test")
    found = read_launch(str(path), model=run.model if framework == "fsdp" else None)
    assert found.devices == 8
    assert replace(found.strategy, split=()) == replace(run.strategy, split=())
    assert found.batch == run.batch
    assert "SLURM_HOSTFILE orders its hosts" in " ".join(found.assumed)


@pytest.mark.parametrize("strategy", [TENSOR, SHARDED, STAGES])
def test_pinned_ranks_are_the_plan_s(strategy: str, folder: Path) -> None:
    plan = plan_of(strategy)
    done = started(script_of(plan, pinned=True), folder)
    assert done.returncode == 0, done.stderr
    assert seen(done.stdout) == [(one.rank, one.host, one.local_rank) for one in plan.places]
    assert f"world 8 {plan.places[0].host}:29500" in done.stdout


def test_other_ranks_are_on_the_hosts_that_order_says(folder: Path) -> None:
    done = started(script_of(plan_of(TENSOR)), folder)
    hosts = [host for _, host, _ in seen(done.stdout)]
    assert hosts == [name for name in ("n4", "n1", "n2", "n3") for _ in range(2)]
    assert "world 8 n4:29500" in done.stdout
    (asked,) = [line for line in done.stdout.splitlines() if line.startswith("asked")]
    assert asked.startswith("asked order my plan.json -o ")


def test_where_order_refuses_nothing_starts(folder: Path) -> None:
    (folder / "refuse").touch()
    done = started(script_of(plan_of(TENSOR)), folder)
    assert (done.returncode, done.stdout) == (4, "")


@pytest.mark.parametrize(
    ("framework", "strategy", "program", "last"),
    [
        ("megatron", TENSOR, ["pretrain_gpt.py"], []),
        ("fsdp", SHARDED, ["-m", "torchtitan.train"], ["activation-checkpoint:none"]),
    ],
)
def test_the_user_s_words_stand_apart(
    framework: str, strategy: str, program: list[str], last: list[str], folder: Path
) -> None:
    """Behind all options of the plan; before what must come last."""
    plan = plan_of(strategy, framework=framework)
    options = " ".join(job_command(plan, AskedJob()).options)
    done = started(script_of(plan), folder, "--data-path", "a b", "--lr=1e-4")
    yours = ["--data-path", "a b", "--lr=1e-4"]
    assert words(done) == [*program, *options.split(), *yours, *last]


@pytest.mark.parametrize(
    "words", [["--seq-length", "1"], ["--lr", "1", "--bf16"], ["--num-layers=2"]]
)
def test_options_of_the_plan_are_not_given_twice(words: list[str], folder: Path) -> None:
    done = started(script_of(plan_of(TENSOR)), folder, *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "is the plan's" in done.stderr


@pytest.mark.parametrize(
    ("strategy", "device", "value"),
    [
        (TENSOR, "h100", "1"),
        (TENSOR, "b200", "8"),
        (TENSOR, "gb300", "8"),
        (STAGES, "h100", "8"),
        ("dp=8,zero=2", "h100", "unset"),
        ("dp=8,zero=2", "b200", "unset"),
    ],
)
def test_the_environment_has_what_megatron_asks(
    strategy: str, device: str, value: str, folder: Path
) -> None:
    """8 is what the user has: nothing is said of it."""
    data = training_data(strategy)
    data["topology"]["device"]["name"] = device
    done = started(script_of(placed(PlanModel.model_validate(data), "test")), folder)
    assert f":29500 {value}\n" in done.stdout


def test_captured_graphs_are_not_registered() -> None:
    found = job_command(plan_of("dp=8,zero=1,graphs=partial"), AskedJob())
    assert found.environment == {"NCCL_GRAPH_REGISTER": "0"}


def observed(script: str, folder: Path) -> list[object]:
    """All that a script does: its header, a run, one that repeats an option, one without hosts."""
    runs = [started(script, folder, "--lr", "1"), started(script, folder, "--bf16")]
    (folder / "fail").touch()  # mktemp fails
    runs.append(started(script, folder))
    (folder / "fail").unlink()
    lines = [re.sub(r"/tmp\.\w+", "TEMPORARY", one.stdout) for one in runs]
    return [header(script), [one.returncode for one in runs], lines, runs[1].stderr]


@pytest.mark.exhaustive
@pytest.mark.parametrize("pinned", [True, False])
def test_every_line_counts(pinned: bool, folder: Path) -> None:
    """Without any of them something else is asked for, or runs."""
    lines = script_of(plan_of(TENSOR), pinned=pinned).splitlines(keepends=True)
    said = observed("".join(lines), folder)
    for number, line in enumerate(lines):
        if line.strip() and not (line.startswith("#") and not line.startswith("#SBATCH")):
            assert observed("".join(lines[:number] + lines[number + 1 :]), folder) != said, line


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(training_data(TENSOR)))
    return str(path)


def test_plans_without_names_are_pinned_by_theirs(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(training_data(TENSOR, nodes(4))))
    done = cli("export", str(path), "--to", "sbatch", "--hosts", "a[4,2,3,1]")
    assert header(done.out)["nodelist"] == "a[4,2-3,1]"
    hosts = [host for _, host, _ in seen(started(done.out, folder).stdout)]
    assert hosts == ["a4", "a4", "a2", "a2", "a3", "a3", "a1", "a1"]


def test_several_hosts_of_a_node_are_ordered_as_such(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(training_data(SHARDED, nodes(4))))
    done = cli("export", str(path), "--to", "sbatch", "--devices-per-host", "1")
    assert header(done.out)["nodes"] == "8"
    assert "p2smt order --devices-per-host 1 " in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--launcher", "deepspeed"], "is none that jobs are written for; they are megatron"),
        (["--launcher", "torchtitan"], "TorchTitan lacks ZeRO-1"),
        (["--by-host"], "the job orders its own"),
        (["--launched", "tp,dp"], "the job orders its own"),
        (["--hosts", "n[1-3]"], "has ranks on n4, which the job lacks; p2smt order"),
        (["--hosts", "n[5-9]"], "has ranks on n1 and 3 more hosts, which the job lacks"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, file: str) -> None:
    target = Path(file).with_name("job.sh")
    outcome = cli("export", file, "--to", "sbatch", "-o", str(target), *arguments)
    assert_one_error(outcome)
    assert message in outcome.err
    assert not target.exists()


def test_a_plan_of_no_training_is_refused(tmp_path: Path, plan: dict[str, Any]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    outcome = cli("export", str(path), "--to", "sbatch")
    assert_one_error(outcome)
    assert "is no plan of a training" in outcome.err


def test_frameworks_without_a_trainer_here_are_refused(file: str) -> None:
    data = training_data(TENSOR)
    data["training"]["efficiency"]["framework"]["name"] = "own"
    Path(file).write_text(json.dumps(data))
    assert "is the framework of no trainer" in cli("export", file, "--to", "sbatch").err
    assert cli("export", file, "--to", "sbatch", "--launcher", "megatron").code == 0
    refused = cli("export", file, "--to", "slurm", "--launcher", "megatron")
    assert_one_error(refused)
    assert "--launcher" in refused.err


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    if reason := why_no_slurm():
        pytest.skip(reason)
    with SlurmCluster.started(tmp_path_factory.mktemp("slurm"), 4) as cluster:
        yield cluster


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("pinned", [True, False])
def test_slurm_runs_the_script(
    pinned: bool, slurm: SlurmCluster, file: str, tmp_path: Path
) -> None:
    """As it stands, with p2smt in the job and a stand-in for python that is trained."""
    with_programs(tmp_path)
    (tmp_path / "trained").mkdir()
    (tmp_path / "trained" / "python").write_text(PROGRAM)
    (tmp_path / "trained" / "python").chmod(0o755)
    hosts = ["--hosts", "n[1-4]"] if pinned else []
    done = cli("export", file, "--to", "sbatch", "-o", str(tmp_path / "job.sh"), *hosts)
    assert done.code == 0, done.err
    script = (tmp_path / "job.sh").read_text()
    script = script.replace("program=(python ", f"program=({tmp_path}/trained/python ")
    (tmp_path / "job.sh").write_text(script)
    path = {"PATH": f"{tmp_path / 'bin'}:{environ['PATH']}"}
    command = ["sbatch", "--wait", "-o", "job.out", "job.sh", "--lr", "1"]
    done_job = ran(*command, folder=tmp_path, environment={**slurm.variables, **path})
    out = (tmp_path / "job.out").read_text()
    assert done_job.returncode == 0, done_job.stderr + out
    planned = placed(PlanModel.model_validate(training_data(TENSOR)), "test")
    found = seen(out)
    assert [rank for rank, _, _ in found] == list(range(8))
    if pinned:
        assert found == [(one.rank, one.host, one.local_rank) for one in planned.places]
    else:  # dp is a ring over two leaves: hosts of one stand side by side
        order = [host for _, host, _ in found[::2]]
        assert {frozenset(order[:2]), frozenset(order[2:])} == {
            frozenset(("n1", "n3")),
            frozenset(("n2", "n4")),
        }
