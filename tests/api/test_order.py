"""Orders of a job's hosts: against all orders, against predictions on matrices, and the command."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2smt.api import order
from p2smt.api.order import order_hosts
from p2smt.api.workload import estimate
from p2smt.cluster.allocation import allocated
from p2smt.cluster.file import parse_topology
from p2smt.cluster.hostlist import parse_hostlist
from p2smt.interop.places import placed
from p2smt.plans.file_model import PlanModel
from p2smt.training.strategy import Batch
from tests.cli.tools import assert_one_error, cli
from tests.interop.launchers.trainings import TWO_LEAVES, leaves, nodes, training_data
from tests.training.test_folded_plans import STRATEGIES as FOLDED
from tests.training.test_folded_plans import data as folded_data

STAGES, SHARDED = "pp=2,vpp=4,dp=4,zero=1", "dp=8,zero=3"
UNEVEN = leaves(("n4,n1", "n3", "n2,n5"), 6)


def plan_of(data: dict[str, Any]) -> PlanModel:
    return PlanModel.model_validate(data)


def priced(plan: PlanModel, cluster: str) -> tuple[order._Fixed, Callable[..., float], list[int]]:
    """A plan, what it takes with its nodes at places of a cluster, and the places."""
    topology = parse_topology(cluster, "test")
    assert topology.hosts is not None
    fixed = order._fixed(placed(plan, "test"))
    there = allocated(topology, topology.hosts.names)
    assert there.hosts is not None
    return fixed, order._price(fixed, there), list(there.hosts.slots)


@pytest.mark.parametrize(
    "strategy",
    [
        *(STAGES, "tp=2,sp=1,dp=4,zero=1", "dp=2,cp=4,zero=3", "pp=4,dp=2"),
        pytest.param("tp=2,sp=1,dp=4,zero=1,dp_replicate=2", id="copies"),
    ],
)
def test_an_order_costs_what_is_predicted_of_the_matrix(strategy: str) -> None:
    """On the plan's own cluster, its nodes where they are."""
    plan = plan_of(training_data(strategy))
    fixed, price, _ = priced(plan, TWO_LEAVES)
    cluster = parse_topology(TWO_LEAVES, "test")
    said = estimate("llama-3-8b", cluster, strategy, Batch(24, 4096), "megatron-h100")
    assert price(fixed.slots) == pytest.approx(said.iteration_s, rel=1e-12)


@pytest.mark.parametrize("strategy", FOLDED)
def test_experts_move_with_their_hosts(strategy: str) -> None:
    """The sides of a mixture stay together: the plan's own order costs what the plan says."""
    data = folded_data(strategy)
    plan = plan_of(data)
    given = placed(plan, "test")
    fixed = order._fixed(given)
    price = order._price(fixed, given.problem.topology)
    singles = all(one["program"] is None or ";" not in one["program"] for one in data["requests"])
    said = data["training"]["prediction"]["iteration_s"]
    found = price(fixed.slots)
    assert found == pytest.approx(said, rel=1e-9) if singles else found >= said * (1 - 1e-9)


@pytest.mark.parametrize("strategy", [STAGES, "dp=8,zero=0"])
@pytest.mark.parametrize("cluster", [TWO_LEAVES, UNEVEN])
def test_no_order_of_a_few_hosts_is_faster(strategy: str, cluster: str) -> None:
    """All orders of four of the hosts, each priced as an iteration."""
    plan = plan_of(training_data(strategy, nodes(4)))
    topology = parse_topology(cluster, "test")
    assert topology.hosts is not None
    found = order_hosts(plan, topology.hosts.names[::-1], topology)
    _, price, slots = priced(plan, cluster)
    every = [price(np.array(some)) for some in itertools.permutations(slots, 4)]
    assert found.seconds == pytest.approx(min(every), rel=1e-9)
    assert max(every) > min(every) * 1.01
    assert found.listed_s is not None
    assert found.listed_s >= min(every) * (1 - 1e-12)


@pytest.mark.parametrize("strategy", [STAGES, "tp=2,sp=1,dp=4,zero=1", SHARDED])
def test_degrees_and_places_in_nodes_stay(strategy: str) -> None:
    """Each host has the ranks of one host of the plan, on the same devices; others are idle."""
    data = training_data(strategy, nodes(4))
    plan, topology = plan_of(data), parse_topology(UNEVEN, "test")
    planned = placed(plan, "test")
    found = order_hosts(plan, ["n1", "n2", "n3", "n4", "n5"], topology)

    def by_host(places: Any) -> set[tuple[tuple[int, int], ...]]:
        hosts: dict[str, list[tuple[int, int]]] = {}
        for one in places:
            hosts.setdefault(one.host, []).append((one.rank, one.local_rank))
        return set(map(tuple, hosts.values()))

    assert by_host(found.plan.places) == by_host(planned.places)
    used = {one.host for one in found.plan.places}
    assert used | set(found.idle) == {"n1", "n2", "n3", "n4", "n5"}
    assert len(found.idle) == 1
    again = order_hosts(plan, ["n1", "n2", "n3", "n4", "n5"], topology)
    assert again.plan.places == found.plan.places


@pytest.fixture
def files(tmp_path: Path, plan: dict[str, Any]) -> dict[str, str]:
    """Plans on hosts with names and without, one of no training, and a cluster."""
    contents = {
        "named": json.dumps(training_data(STAGES)),
        "nodes": json.dumps(training_data(STAGES, nodes(4))),
        "solved": json.dumps(plan),
        "cluster": TWO_LEAVES,
        "wide": TWO_LEAVES.replace("nccl-2.30", "none").replace("gpu, size: 2", "gpu, size: 4"),
    }
    for name, text in contents.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return {"folder": str(tmp_path)} | {name: str(tmp_path / f"{name}.yaml") for name in contents}


def test_the_command_writes_a_host_a_rank(files: dict[str, str], tmp_path: Path) -> None:
    done = cli("order", files["named"], "--hosts", "n[4,3,2,1]", "-o", str(tmp_path / "hosts"))
    assert (done.code, done.out) == (0, ""), done.err
    hosts = (tmp_path / "hosts").read_text().split()
    assert len(hosts) == 8
    assert hosts[::2] == hosts[1::2]
    assert "note: an iteration: " in done.err
    assert "as listed " in done.err


def test_the_job_s_hosts_are_those_of_slurm(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-4]")
    for given in (["named"], ["nodes", "-t", "cluster"], ["nodes"]):
        words = [files.get(word, word) for word in given]
        done = cli("order", *words, "--to", "hostlist")
        assert done.code == 0, done.err
        assert sorted(parse_hostlist(done.out.strip())) == ["n1", "n2", "n3", "n4"]
        as_given = "hosts as given" in done.err
        assert as_given == (given == ["nodes"])
        assert not as_given or done.out == "n[1-4]\n"


def test_too_few_hosts_is_one_line_and_nothing_is_written(files: dict[str, str]) -> None:
    target = Path(files["folder"]) / "out"
    for name, hosts in (("named", "n[1-3]"), ("nodes", "a,b")):
        done = cli("order", files[name], "--hosts", hosts, "-o", str(target))
        assert (done.code, done.out, done.err.count("\n")) == (4, "", 1)
        assert "fills 4 hosts of 2 devices; take more, or plan for these" in done.err
        assert not target.exists()


def test_the_answer_as_json(files: dict[str, str], tmp_path: Path) -> None:
    plain = cli("order", files["named"], "--hosts", "n[4,3,2,1]")
    target = tmp_path / "made"
    data = cli("order", files["named"], "--hosts", "n[4,3,2,1]", "-o", str(target), "--json").json()
    assert data["text"] == plain.out == target.read_text()
    assert data["hosts"] == plain.out.split()
    assert data["trained"]
    assert 0 < data["seconds"] <= data["listed_s"]
    assert f"note: {data['notes'][0]}" in plain.err.splitlines()


def test_a_plan_of_requests_is_ordered_by_their_time(files: dict[str, str]) -> None:
    done = cli("order", files["solved"], "--hosts", "a,b", "--to", "csv")
    assert done.code == 0, done.err
    assert {line.split(",")[1] for line in done.out.splitlines()[1:]} == {"a", "b"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{nodes}"], "give --hosts, or -t with a cluster's file"),
        (
            ["{named}", "--hosts", "n[1-5]"],
            "host 'n5': is not in test; the plan has only the hosts that it was made on",
        ),
        (["{named}", "--hosts", "n[1-5]", "-t", "{wide}"], "host 'n5': is not in test; it has"),
        (["{named}", "--hosts", "n1,n2,n3,n3"], "names 'n3' twice"),
        (["{nodes}", "--hosts", "n1,n2,n3,n3"], "host 'n3': is named twice"),
        (["{named}", "--hosts", "n[1-4]", "-t", "dgx-h100:4"], "names no hosts"),
        (["{named}", "--hosts", "n[1-4]", "-t", "{wide}"], "nodes of [4] in test"),
        (["{named}", "--to", "megatron"], "is nothing that starts ranks"),
        (["{named}", "--to", "slrum"], "did you mean 'slurm'?"),
        (["{named}", "-o", "{named}"], "is a file that is read"),
        (["{cluster}"], "is a topology"),
        (["{named}", "-t", "none"], "none"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    outcome = cli("order", *(word.format(**files) for word in arguments))
    assert_one_error(outcome)
    assert message in outcome.err
