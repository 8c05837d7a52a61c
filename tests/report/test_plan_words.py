"""What `plan` says in words: units that people read, and one time beside another."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.console import Console

from p2smt.api.efficiencies import efficiency_of
from p2smt.api.planning import plan
from p2smt.api.workload import estimate, read_model
from p2smt.cluster.file import parse_topology
from p2smt.report.outputs.shape import json_of
from p2smt.report.training.estimate_data import planned_data
from p2smt.report.training.run_words import apart_texts, efficiency_lines, model_words, teraflops
from p2smt.report.training.training_tables import best_line, best_table, estimate_tables, near_lines
from p2smt.training.efficiencies.efficiency_files import read_efficiency
from p2smt.training.prediction import RunEstimate
from p2smt.training.search.question import PlanQuestion, Prices
from p2smt.training.strategy import Batch, parse_strategy
from p2smt.training.transformer import Experts, Transformer
from tests.cli.tools import H100, TINY

MODEL = Transformer("small", 4, 512, 8, 4, 1024, True, 1000, 64)
CLUSTER = parse_topology(TINY + H100, "tiny")
BATCH = Batch(16, 1024)


def scaled(found: RunEstimate, factor: float) -> RunEstimate:
    """A run of which nothing but its work takes other times."""
    time = replace(
        found.prediction.time,
        compute_s=found.prediction.time.compute_s + (factor - 1) * found.iteration_s,
    )
    return replace(found, prediction=replace(found.prediction, time=time))


def printed(what: object) -> str:
    console = Console(width=200, no_color=True)
    with console.capture() as taken:
        console.print(what)
    return taken.get()


def test_launches_of_a_layer_have_a_unit_that_people_read() -> None:
    (line,) = efficiency_lines(CLUSTER, efficiency_of(CLUSTER, "fsdp-h100"))
    assert " and 1.5 ms a layer, " in line
    (line,) = efficiency_lines(CLUSTER, efficiency_of(CLUSTER))
    assert "a layer" not in line


def test_the_best_line_says_when_programs_make_it_another_time() -> None:
    run = estimate(MODEL, CLUSTER, "tp=2,dp=4", BATCH)
    assert best_line(run, run) == "best: tp=2,pp=1,dp=4,cp=1,vpp=1,mbs=1,sp=0,zero=0,recompute=none"
    told = best_line(scaled(run, 2.0), run)
    assert told.startswith(best_line(run, run) + ", with programs: ")
    assert " in place of " in told
    assert "with programs" not in best_line(scaled(run, 1 + 1e-8), run)


@pytest.mark.parametrize(
    ("prices", "how"),
    [
        (Prices.COLLECTIVES, "single collectives"),
        (Prices.PROGRAMS, "the best programs found"),
    ],
)
def test_the_table_says_what_requests_cost_in_it(prices: Prices, how: str) -> None:
    run = estimate(MODEL, CLUSTER, "tp=2,dp=4", BATCH)
    text = printed(best_table([run, scaled(run, 1 - 1e-12), scaled(run, 1.5)], [0, 3, 0], prices))
    assert f"best strategies, with {how}" in text
    assert "+ 3" in text
    assert "+0.00%" in text
    assert "+50.00%" in text
    assert "-0.00%" not in text


@pytest.mark.parametrize(
    ("prices", "said", "names"),
    [
        (Prices.COLLECTIVES, "with a single collective for each request", []),
        (
            Prices.PROGRAMS,
            "with the best program for each request (small-model theorem)",
            ["small-model theorem"],
        ),
    ],
)
def test_the_proof_says_what_it_rests_on(prices: Prices, said: str, names: list[str]) -> None:
    fixed = (("tp", 2), ("pp", 1), ("zero", 0))
    question = PlanQuestion(
        MODEL, BATCH, CLUSTER, efficiency_of(CLUSTER), fixed=fixed, prices=prices
    )
    found = plan(question)
    assert said in found.answer.proof()
    assert json_of(planned_data(found))["basis"] == names


@pytest.mark.parametrize(("within", "words"), [(10.0, "1000 %"), (0.05, "5 %"), (0.0123, "1.23 %")])
def test_how_near_is_a_plain_percentage(within: float, words: str) -> None:
    question = PlanQuestion(
        MODEL, BATCH, CLUSTER, efficiency_of(CLUSTER), fixed=(("tp", 2), ("pp", 1), ("zero", 0))
    )
    near = plan(question).answer.near
    assert near is not None
    first = next(iter(near_lines(replace(near, within=within))))
    assert first.endswith(f" within {words} of the best")
    if near.nearest is not None:
        early = replace(near.nearest.planned, iteration_s=near.members[0].iteration_s * (1 - 1e-12))
        last = list(near_lines(replace(near, nearest=replace(near.nearest, planned=early))))[-1]
        assert "(+0.00%)" in last


def test_an_answer_names_the_stack_that_was_assumed_and_how_to_ask_for_others() -> None:
    run = estimate(MODEL, CLUSTER, "tp=2,dp=4", BATCH)
    lines = printed(estimate_tables(run)).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("iteration "))
    others = "--efficiency fsdp-h100 is of fsdp, --efficiency nemo-h100 is of nemo"
    assert lines[at + 1].endswith(": assumed, no library runs here")
    assert lines[at + 2] == f"assumed: megatron-core; {others}"
    named = estimate(MODEL, CLUSTER, "tp=2,dp=4", BATCH, "fsdp-h100")
    assert not re.search("^assumed:", printed(estimate_tables(named)), re.MULTILINE)


@pytest.mark.parametrize(
    ("changed", "what"),
    [({}, "of a dense model by megatron-bridge"), ({"device": "x"}, "of megatron-bridge")],
)
def test_no_run_stands_beside_what_only_mixtures_ran(changed: dict[str, str], what: str) -> None:
    efficiency = replace(read_efficiency("megatron-bridge-b200"), **{"name": "own", **changed})  # type: ignore[arg-type]
    fixed = (("tp", 2), ("pp", 1), ("zero", 0))
    answer = plan(PlanQuestion(MODEL, BATCH, CLUSTER, efficiency, fixed=fixed)).answer
    assert answer.outside == (f"no run {what} on {efficiency.device} is known here",)
    assert answer.near is not None
    assert answer.near.nearest is None


def test_the_dispatch_of_a_mixture_is_a_kind_of_its_own_in_a_plans_programs() -> None:
    mixture = replace(MODEL, experts=Experts(8, 2, 48))
    degrees = (("tp", 1), ("pp", 1), ("cp", 1), ("zero", 0), ("ep", 8), ("dispatcher", "flex"))
    efficiency = efficiency_of(CLUSTER, "megatron-bridge-h100")
    found = plan(PlanQuestion(mixture, BATCH, CLUSTER, efficiency, fixed=degrees))
    best = json_of(planned_data(found))["best"]
    assert "dispatch" in [one["kind"] for one in best["programs"]]


def test_strategies_are_told_apart_by_what_not_all_have() -> None:
    one, other = "tp=2,pp=4,vpp=2,sp=1,zero=1,ep=64", "tp=2,pp=4,vpp=4,sp=1,zero=1,ep=64"
    flex, modules = f"{one},dispatcher=flex", f"{other},recompute=moe_act"
    for texts, apart in (
        ((one, other), ["vpp=2", "vpp=4"]),
        ((one, flex), [one, "dispatcher=flex"]),
        ((one, modules), ["vpp=2,recompute=none", "vpp=4,recompute=moe_act"]),
        ((one,), [one]),
    ):
        assert apart_texts([parse_strategy(text) for text in texts]) == apart


@pytest.mark.parametrize(
    ("flops", "words"),
    [(4.04e14, "404"), (9.994e14, "999"), (9.996e14, "1,000"), (1.126e15, "1,126")],
)
def test_large_numbers_have_no_powers_of_ten(flops: float, words: str) -> None:
    assert teraflops(flops) == f"{words} TFLOP/s"
    assert "kimi-k2 (1,026 billion parameters)" in model_words(read_model("kimi-k2"))
