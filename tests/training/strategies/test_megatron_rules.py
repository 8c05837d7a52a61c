"""Each rule on what is given: broken alone, named, and obeyed by what it proposes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from experiments.training_runs.mixture_file import read_mixtures
from p2smt.training.megatron_rules import GIVEN_RULES, OURS, SOURCES
from p2smt.training.strategy import Batch, parse_strategy, strategy_text
from p2smt.training.transformer import (
    Attention,
    Experts,
    LatentAttention,
    LayerKind,
    LayerRun,
    Mamba,
    Mlp,
    Transformer,
)
from p2smt.training.validity import MIXTURE_RULES, RULES, check, violations
from tests.refusals import refusal

DENSE = Transformer("dense", 8, 256, 8, 4, 512, True, 1000, 32)
PLAIN = Transformer(
    *("plain", 8, 256, 8, 4, 512, True, 1000, 32),
    experts=Experts(8, 2, 128),
    order=(LayerRun(2, (LayerKind(),)), LayerRun(6, (LayerKind(mlp=Mlp.EXPERTS),))),
)
MIXED = replace(PLAIN, name="mixed", experts=Experts(8, 2, 128, shared_width=128))
AHEAD = replace(
    MIXED, name="ahead", mla=LatentAttention(64, 32, 16, 16, 32), mtp=1, kv_heads=8, order=()
)
STATES = Transformer(
    *("states", 8, 256, 8, 4, 512, True, 1000, 32),
    mamba=Mamba(heads=8, head_size=64, groups=2, state=16),
    order=(LayerRun(4, (LayerKind(), LayerKind(Attention.MAMBA))),),
)
BATCH = Batch(64, 512)


@dataclass(frozen=True)
class Case:
    """A strategy that breaks one rule, and what mends it."""

    rule: str
    model: Transformer
    bad: str
    good: str


CASES = (
    Case("recompute-layers", DENSE, "pp=4,dp=2,recompute=full:3", "pp=4,dp=2,recompute=full:2"),
    Case("modules", DENSE, "dp=8,recompute=moe_act", "dp=8,recompute=mlp+layernorm"),
    Case("modules", MIXED, "dp=8,recompute=mla_up_proj", "dp=8,recompute=moe_act+core_attn"),
    Case("modules", PLAIN, "dp=8,recompute=shared_experts", "dp=8,recompute=moe"),
    Case("modules", AHEAD, "dp=8,recompute=mlp", "dp=8,recompute=mla_up_proj"),
    Case("graphs", DENSE, "dp=8,graphs=partial,recompute=full", "dp=8,graphs=full,recompute=full"),
    Case("dp_replicate", DENSE, "dp=8,zero=1,dp_replicate=3", "dp=8,zero=1,dp_replicate=4"),
    Case(
        "dp_replicate-experts",
        MIXED,
        "dp=8,ep=4,zero=1,dp_replicate=4",
        "dp=8,ep=2,zero=1,dp_replicate=4",
    ),
    Case("dp_replicate-zero", DENSE, "dp=8,dp_replicate=2", "dp=8,zero=1,dp_replicate=2"),
    Case("dp_replicate-zero", DENSE, "dp=8,zero=1,dp_replicate=8", "dp=8,zero=3,dp_replicate=2"),
    Case("optimizer_bytes", DENSE, "dp=8,optimizer_bytes=8", "dp=8,zero=1,optimizer_bytes=8"),
    Case("offload-pp", DENSE, "pp=2,dp=4,offload=0.5", "dp=8,offload=0.5"),
    Case("offload-recompute", DENSE, "dp=8,offload=0.5,recompute=full", "dp=8,offload=0.5"),
    Case("offload-recompute", DENSE, "dp=8,offload=0.5,recompute=mlp", "dp=8,recompute=mlp"),
    Case(
        "offload-graphs", DENSE, "dp=8,offload=0.5,graphs=partial", "dp=8,offload=0.5,graphs=full"
    ),
    Case("offload-layers", DENSE, "dp=8,offload=1", "dp=8,offload=0.9"),
    Case("shared-overlap", PLAIN, "dp=8,ep=4,shared_overlap=1", "dp=8,ep=4,overlap=1"),
    Case("shared-overlap", MIXED, "dp=8,shared_overlap=1", "dp=8,ep=4,shared_overlap=1"),
    Case(
        "shared-overlap-both",
        MIXED,
        "dp=8,ep=4,overlap=1,shared_overlap=1",
        "dp=8,ep=4,shared_overlap=1",
    ),
    Case(
        "shared-overlap-recompute",
        MIXED,
        "dp=8,ep=4,shared_overlap=1,recompute=shared_experts",
        "dp=8,ep=4,shared_overlap=1,recompute=moe_act",
    ),
    Case(
        "shared-width",
        replace(MIXED, experts=Experts(8, 2, 128, shared_width=126)),
        "tp=4,dp=2,sp=1",
        "tp=2,dp=4,sp=1",
    ),
    Case("imbalance", DENSE, "dp=8,imbalance=1.5", "dp=8"),
    Case(
        "graphs-experts",
        MIXED,
        "dp=8,ep=4,graphs=full",
        "dp=8,ep=4,graphs=full,dispatcher=flex",
    ),
    Case("fp8-attention", DENSE, "dp=8,fp8_attention=1", "dp=8,fp8_attention=1,dtype=fp8"),
    Case("mamba", STATES, "tp=4,dp=2,sp=1", "tp=2,dp=4,sp=1"),
    Case("mtp", DENSE, "pp=2,dp=4,split=4/4m", "pp=2,dp=4,split=4/4"),
    Case("mtp-after", AHEAD, "pp=4,dp=2,split=4/3m/1/0", "pp=4,dp=2,split=4/3/1m/0"),
    Case(
        "mtp-last",
        AHEAD,
        "pp=4,dp=2,vpp=2,split=4/3/0/1m/0*4",
        "pp=4,dp=2,vpp=2,split=4/3/0/1/0*3/0m",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule} {case.bad}")
def test_each_rule_is_broken_alone_and_mended(case: Case) -> None:
    bad, good = parse_strategy(case.bad), parse_strategy(case.good)
    assert [one.name for one in violations(case.model, BATCH, bad, 8)] == [case.rule]
    assert violations(case.model, BATCH, good, 8) == ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule} {case.bad}")
def test_a_rule_is_told_in_one_line_with_a_remedy(case: Case) -> None:
    said = refusal(check, case.model, BATCH, parse_strategy(case.bad), 8)
    assert f"(rule {case.rule})" in said
    assert "\n" not in said
    given = [(rule.name, rule.remedy) for rule in GIVEN_RULES]
    tables = [(rule.name, rule.remedy) for rule in (*RULES, *MIXTURE_RULES)]
    assert dict(given + tables)[case.rule] in said


def test_every_rule_is_tested() -> None:
    assert {rule.name for rule in GIVEN_RULES} <= {case.rule for case in CASES}


def test_every_rule_says_where_it_is_from() -> None:
    assert {rule.name for rule in (*RULES, *MIXTURE_RULES)} <= set(SOURCES)
    for source in (*SOURCES.values(), *(rule.source for rule in GIVEN_RULES)):
        assert source == OURS or all(".py " in part for part in source.split("; ")), source


def test_pages_have_every_rule_and_where_it_is_from() -> None:
    pages = [Path(f"docs/{name}.md").read_text("utf-8") for name in ("planning", "mixtures")]
    lines = [line.strip("| ").split(" | ") for page in pages for line in page.splitlines()]
    told = {(cells[0].strip("`"), cells[-1]) for cells in lines}
    assert {*SOURCES.items(), *((rule.name, rule.source) for rule in GIVEN_RULES)} <= told


def test_what_computes_less_again_goes_with_overlap() -> None:
    text = "dp=8,ep=4,overlap=1,recompute=selective"
    assert violations(MIXED, BATCH, parse_strategy(text), 8) == ()


def test_published_runs_obey_every_rule() -> None:
    """Each ran with what its recipe says, so a rule that one breaks is none."""
    found = read_mixtures("experiments/training_runs/mixtures.csv").runs
    runs = [run.training for run in found]
    broken = [
        (one.name, strategy_text(run.strategy))
        for run in runs
        for one in violations(run.model, run.batch, run.strategy, run.strategy.devices)
    ]
    assert len(runs) > 150
    assert broken == []
