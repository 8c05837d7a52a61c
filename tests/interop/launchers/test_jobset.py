"""JobSets: what every pod runs by bash with a stand-in for torchrun, and the published models."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from os import environ
from pathlib import Path
from typing import Any

import pytest
import yaml

from p2smt.interop.jobs.command import AskedJob, job_command
from p2smt.interop.jobs.jobset import write_jobset
from p2smt.interop.places import PlacedPlan, placed
from p2smt.plans.file_model import PlanModel
from tests.cli.tools import assert_one_error, cli
from tests.interop.launchers.trainings import TWO_LEAVES, leaves, nodes, training_data
from tests.interpreter import ran

TENSOR, SHARDED = "tp=2,sp=1,dp=4,zero=1", "dp=8,zero=3"
TORCHRUN = "#!/bin/bash\nprintf '%s\\n' \"$@\" ${CUDA_DEVICE_MAX_CONNECTIONS-unset}\n"


def plan_of(strategy: str, framework: str = "megatron") -> PlacedPlan:
    data = training_data(strategy, efficiency=f"{framework}-h100")
    return placed(PlanModel.model_validate(data), "test")


def parts_of(plan: PlacedPlan) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ConfigMap and the JobSet."""
    found = list(yaml.safe_load_all(write_jobset(plan, "job.yaml").text))
    assert [one["kind"] for one in found] == ["ConfigMap", "JobSet"]
    return found[0], found[1]


def pods_of(jobset: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The pods of each job by its name."""
    jobs = jobset["spec"]["replicatedJobs"]
    return {job["name"]: job["template"]["spec"]["template"]["spec"] for job in jobs}


def hosts_of(pod: Mapping[str, Any]) -> list[str]:
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    (here,) = term["matchExpressions"]
    assert (here["key"], here["operator"]) == ("kubernetes.io/hostname", "In")
    hosts: list[str] = here["values"]
    return hosts


def started(plan: PlacedPlan, host: str, folder: Path, *arguments: str) -> list[str]:
    """The words that torchrun gets in a pod on a host, and what the environment says."""
    data = parts_of(plan)[0]["data"]
    (folder / "bin").mkdir(exist_ok=True)
    for name, text in {"bin/torchrun": TORCHRUN, **data}.items():
        (folder / name).write_text(text.replace("/etc/p2smt", str(folder)))
        (folder / name).chmod(0o755)
    (container,) = next(iter(pods_of(parts_of(plan)[1]).values()))["containers"]
    given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    path = {"PATH": f"{folder / 'bin'}:{environ['PATH']}", "NODE_NAME": host}
    variables = {"CUDA_DEVICE_MAX_CONNECTIONS": "8", **given, **path}
    command = [word.replace("/etc/p2smt", str(folder)) for word in container["command"]]
    done = ran(*command, *arguments, folder=folder, environment=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("strategy", [TENSOR, SHARDED, "pp=2,dp=4,zero=0"])
def test_every_host_has_the_ranks_of_the_plan(strategy: str, tmp_path: Path) -> None:
    """torchrun: node k has the ranks from k * nproc on."""
    plan = plan_of(strategy)
    for host in plan.hosts:
        words = started(plan, host, tmp_path)
        given = dict(word[2:].split("=", 1) for word in words[:5])
        each, node = int(given["nproc-per-node"]), int(given["node-rank"])
        ranks = list(range(node * each, (node + 1) * each))
        assert ranks == [one.rank for one in plan.places if one.host == host]
        assert (given["nnodes"], given["master-port"]) == ("4", "29500")


def test_all_meet_on_the_first_host() -> None:
    plan = plan_of(TENSOR)
    jobset = parts_of(plan)[1]
    name, pods = jobset["metadata"]["name"], pods_of(jobset)
    assert hosts_of(pods["first"]) == [plan.places[0].host]
    for pod in pods.values():
        env = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
        assert env["MASTER_ADDR"] == f"{name}-first-0-0.{name}"


def test_there_is_a_pod_for_every_host_and_one_on_each() -> None:
    plan = plan_of(TENSOR)
    jobset = parts_of(plan)[1]
    pods, count = pods_of(jobset), {}
    for job in jobset["spec"]["replicatedJobs"]:
        spec = job["template"]["spec"]
        assert spec["completionMode"] == "Indexed"
        assert (job["replicas"], spec["parallelism"]) == (1, spec["completions"])
        count[job["name"]] = spec["completions"]
    bound = [host for pod in pods.values() for host in hosts_of(pod)]
    assert sorted(bound) == sorted(plan.hosts)
    assert count == {name: len(hosts_of(pod)) for name, pod in pods.items()}
    for pod in pods.values():
        anti = pod["affinity"]["podAntiAffinity"]
        (apart,) = anti["requiredDuringSchedulingIgnoredDuringExecution"]
        assert apart["topologyKey"] == "kubernetes.io/hostname"
        label = {"jobset.sigs.k8s.io/jobset-name": jobset["metadata"]["name"]}
        assert apart["labelSelector"] == {"matchLabels": label}
        assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 2}


def test_one_host_needs_no_others() -> None:
    data = training_data("dp=2,zero=3", leaves(("n1",), 12))
    pods = pods_of(parts_of(placed(PlanModel.model_validate(data), "test"))[1])
    assert list(pods) == ["first"]


@pytest.mark.parametrize(
    ("framework", "strategy", "program", "last", "connections"),
    [
        ("megatron", TENSOR, ["pretrain_gpt.py"], [], "1"),
        ("megatron", SHARDED, ["pretrain_gpt.py"], [], "unset"),
        ("fsdp", SHARDED, ["-m", "torchtitan.train"], ["activation-checkpoint:none"], "8"),
    ],
)
def test_the_user_s_words_stand_apart(
    framework: str,
    strategy: str,
    program: list[str],
    last: list[str],
    connections: str,
    tmp_path: Path,
) -> None:
    plan = plan_of(strategy, framework)
    options = " ".join(job_command(plan, AskedJob()).options).split()
    words = started(plan, "n2", tmp_path, "--data-path", "a b")
    assert words[5:] == [*program, *options, "--data-path", "a b", *last, connections]


def test_the_published_models_take_both() -> None:
    """Every key is one of theirs: what they read is what was written."""
    pytest.importorskip("kubeflow_trainer_api", reason="the models of JobSet are not installed")
    models: Any = importlib.import_module("kubeflow_trainer_api.models")
    config_map, jobset = parts_of(plan_of(TENSOR))
    for given, model in (
        (config_map, models.IoK8sApiCoreV1ConfigMap),
        (jobset, models.JobsetV1alpha2JobSet),
    ):
        assert model.from_dict(given).to_dict() == given
    jobset["spec"]["replicatedJobs"][0]["replica"] = 1
    assert models.JobsetV1alpha2JobSet.from_dict(jobset).to_dict() != jobset


@pytest.mark.parametrize(
    ("strategy", "cluster", "arguments", "message"),
    [
        (TENSOR, nodes(4), [], "give --hosts with the names of nodes"),
        (TENSOR, nodes(4), ["--hosts", "A[1-4]"], "is no name of a node of Kubernetes"),
        (TENSOR, nodes(4), ["--hosts", "a[1-3]"], "names 3"),
        (TENSOR, TWO_LEAVES, ["--launcher", "torchtitan"], "TorchTitan lacks ZeRO-1"),
    ],
)
def test_bad_input_is_one_line(
    strategy: str, cluster: str, arguments: list[str], message: str, tmp_path: Path
) -> None:
    path, target = tmp_path / "plan.json", tmp_path / "job.yaml"
    path.write_text(json.dumps(training_data(strategy, cluster)))
    outcome = cli("export", str(path), "--to", "kubernetes", "-o", str(target), *arguments)
    assert_one_error(outcome)
    assert message in outcome.err
    assert not target.exists()


def test_hosts_that_are_given_are_bound(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(training_data(TENSOR, nodes(4))))
    done = cli("export", str(path), "--to", "kubernetes", "--hosts", "b,a,1,c.d")
    numbers = next(iter(yaml.safe_load_all(done.out)))["data"]
    del numbers["_start"]
    assert numbers == {"b": "0", "a": "1", "1": "2", "c.d": "3"}
