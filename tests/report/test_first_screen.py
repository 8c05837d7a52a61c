"""The first screen of `plan` and `estimate`: within 20 lines of 80 columns, the verdict first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from p2smt.api.efficiencies import efficiency_of, known_of
from p2smt.api.planning import Planned, plan
from p2smt.api.workload import estimate, read_model
from p2smt.cluster.file import load_topology, parse_topology
from p2smt.report.screen import (
    COLUMNS,
    LINES,
    ScreenBlock,
    fitted,
    full_width,
    indented,
    room,
    screen,
    wrapped,
)
from p2smt.report.training.first_screen import estimate_screen, memory_words, plan_screen
from p2smt.result import Status
from p2smt.training.memory_verdict import FITS_PERCENT, USABLE_PERCENT
from p2smt.training.prediction import RunEstimate
from p2smt.training.search.question import PlanQuestion, SpaceLimits
from p2smt.training.strategy import Batch, parse_strategy
from tests.cli.tools import H100, TINY

SMALL = replace(read_model("llama-3-8b"), name="small", layers=4, hidden=512, heads=8, kv_heads=4)
BATCH = Batch(16, 1024)
LONG = (
    "a-model-whose-name-is-longer-than-any-line-of-a-terminal-" * 3,
    " ".join(["words"] * 40),
    "模型" * 70,
    "bad\x1b[31m\nname",
)
MIXED = "pp=8,vpp=4,dp=32,ep=32,etp=1,zero=1,recompute=layernorm+mla_up_proj+moe_act,dtype=fp8"


def assert_one_screen(lines: Sequence[str]) -> None:
    assert 1 < len(lines) <= LINES == 20
    assert max(map(cell_len, lines)) <= COLUMNS == 80
    assert all(line.isprintable() for line in lines)


@cache
def planned(memory: int | None = None, pick: str | None = None) -> Planned:
    cluster = parse_topology(TINY + H100, "tiny")
    constants, few = efficiency_of(cluster), SpaceLimits(cp=1, vpp=2, micro_batch=2)
    asked = PlanQuestion(SMALL, BATCH, cluster, constants, few, memory_bytes=memory)
    return plan(asked, pick=pick)


def renamed(found: Planned, name: str) -> Planned:
    """The same answer of a model and a cluster with another name."""
    question = found.answer.question
    other = replace(
        question,
        model=replace(question.model, name=name),
        topology=replace(question.topology, name=name),
    )
    run = found.recommended
    return replace(
        found,
        answer=replace(found.answer, question=other),
        listed=tuple(named(one, name) for one in found.listed),
        recommended=run
        and replace(run, plan=replace(run.plan, estimate=named(run.estimate, name))),
    )


def of_mixture(found: Planned) -> Planned:
    """The same answer with a mixture's estimate, whose strategy is long, in each place."""
    one = estimated("deepseek-v3", "dgx-h100:32", MIXED)
    run = found.recommended
    assert run is not None
    mine = replace(run, number=4, plan=replace(run.plan, estimate=one), known=known_of(one))
    listed = (replace(one, prediction=found.top[0].prediction), one, one, one)
    return replace(found, listed=listed, recommended=mine)


def named(found: RunEstimate, name: str) -> RunEstimate:
    model, topology = replace(found.run.model, name=name), replace(found.topology, name=name)
    return replace(found, run=replace(found.run, model=model), topology=topology)


@pytest.mark.parametrize("name", ["small", *LONG], ids=lambda name: ascii(name)[:12])
@pytest.mark.parametrize("memory", [None, 10**7])
@pytest.mark.parametrize("stopped", [False, True])
def test_a_plan_fits_one_screen(name: str, memory: int | None, stopped: bool) -> None:
    found = renamed(planned(memory), name)
    found = replace(found, answer=replace(found.answer, interrupted=stopped))
    written = [f"plan written to {'a' * 200}.json", "picture written to plan.svg"]
    lines = plan_screen(found, written)
    assert_one_screen([*lines, *wrapped(written[0], COLUMNS), written[1]])
    heads = [line[:9].strip() for line in lines]
    first = ["stopped"] * stopped
    expected = ["run"] if memory is None else ["asked"]
    assert heads[: len(first) + 1] == first + expected
    wanted = {"why", "time", "rate", "memory"} if memory is None else {"answer", "memory"}
    assert wanted <= set(heads)
    assert memory or stopped or "near" in heads


@pytest.mark.parametrize("name", ["deepseek", *LONG], ids=lambda name: ascii(name)[:12])
def test_a_plan_of_a_mixture_fits_one_screen(name: str) -> None:
    lines = plan_screen(renamed(of_mixture(planned()), name))
    assert_one_screen(lines)
    heads = [line[:9].strip() for line in lines]
    assert heads[0] == "run"
    assert {"why", "time", "memory", "fastest"} <= set(heads)
    assert "ep=32" in " ".join(lines[:3])
    whole = name == "deepseek"
    assert any("deepseek on 256 devices of deepseek" in line for line in lines) == whole
    assert {"known", "outside"} & set(heads)
    assert "".join(lines).count("mla_up_proj") >= 2


@pytest.mark.parametrize("name", ["deepseek", *LONG], ids=lambda name: ascii(name)[:12])
@pytest.mark.parametrize(
    ("model", "topology", "strategy"),
    [
        ("deepseek-v3", "dgx-h100:32", MIXED),
        ("llama-3-8b", "dgx-h100:1", "tp=2,dp=4,sp=1,zero=1"),
        ("gpt-oss-120b", "mi355x:8", "dp=64,ep=8,zero=3,dtype=mxfp8,recompute=full"),
    ],
)
def test_an_estimate_fits_one_screen(name: str, model: str, topology: str, strategy: str) -> None:
    found = estimated(model, topology, strategy)
    lines = estimate_screen(named(found, name), [f"{name} fits"] * 9)
    assert_one_screen(lines)
    heads = [line[:9].strip() for line in lines]
    assert heads[0] == "run"
    assert {"time", "rate", "memory"} <= set(heads)
    assert {"known", "outside"} & set(heads)


@cache
def estimated(model: str, topology: str, strategy: str) -> RunEstimate:
    batch = Batch(4096, 4096)
    return estimate(read_model(model), load_topology(topology), strategy, batch)


def test_what_a_limit_left_open_is_never_the_models_fastest() -> None:
    reason = "a limit of time came before the proof of every cube, and this sentence is long " * 3
    found = planned(pick="fastest")
    left = replace(found.answer, status=Status.FEASIBLE, reason=reason)
    for one, proved in ((found, True), (replace(found, answer=left), False)):
        lines = plan_screen(one)
        text = " ".join(" ".join(lines).split())
        assert_one_screen(lines)
        assert ("picked: the model's fastest" in text) == ("optimal in the model" in text) == proved
        assert ("picked: the fastest found" in text) == ("feasible: not proved" in text) != proved
        assert ("a limit of time came" in text) != proved


def test_what_was_never_run_is_named_and_its_range_may_not_hold() -> None:
    like = "tp=4,pp=4,dp=32,vpp=5,zero=1,sp=1"
    seen = estimate_screen(estimated("llama-3-70b", "dgx-h100:64", like))
    assert not any(line.startswith("outside") for line in seen)
    assert any("fitted runs on h100 are like it: " in line and "% off" in line for line in seen)
    for text, outside in (
        ("tp=4,pp=4,dp=32,vpp=5,zero=2,sp=1", "zero=2: "),
        ("tp=1,pp=1,dp=32,cp=16,zero=3", "cp=16, zero=3: "),
        ("tp=8,pp=1,dp=64,sp=1,zero=1", ""),
    ):
        odd = estimate_screen(estimated("llama-3-70b", "dgx-h100:64", text))
        assert f"outside  {outside}no run like it; range may not hold" in odd
        assert not any("% off" in line for line in odd)


def test_a_device_that_was_not_fitted_has_a_wide_range_and_its_basis() -> None:
    strategy, batch = parse_strategy("tp=2,dp=4,sp=1,zero=1"), Batch(64, 4096)
    model, cluster = read_model("llama-3-8b"), load_topology("dgx-h100:1")
    other = replace(cluster, device=replace(cluster.known_device, name="x9000"))
    lines = estimate_screen(estimate(model, other, strategy, batch))
    assert any("constants are of h100" in line for line in lines)
    assert not any("% off" in line for line in lines)


def test_memory_that_is_nearly_all_taken_is_tight() -> None:
    found = estimated("llama-3-8b", "dgx-h100:1", "tp=2,dp=4,sp=1,zero=1")
    needed = found.prediction.memory.total
    edge = needed * USABLE_PERCENT // FITS_PERCENT
    said = [
        memory_words(replace(found, capacity_bytes=size)).partition(":")[0]
        for size in (needed - 1, needed, edge - 9, edge + 9)
    ]
    assert said == ["does not fit", "tight", "tight", "fits"]


@pytest.mark.parametrize("number", ["7", "1,024", "1,048,576"])
def test_a_number_stays_on_its_line(number: str) -> None:
    text = f"optimal among hosts, their orders, a batch of {number}, and gpu[101,102,103]"
    for width in range(14, 80):
        assert any(number in line for line in wrapped(text, width)), width


TEXTS = st.text(st.sampled_from("ab ,模\n\x1b\u0301"), max_size=200)


@given(TEXTS, st.integers(2, 80))
def test_wrapped_lines_hold_all_of_the_text_in_their_width(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(wrapped(text, 10**6)[0].split())


@given(st.lists(st.tuples(st.integers(1, 10), TEXTS, st.integers(1, 6)), max_size=12))
def test_what_weighs_least_goes_first(asked: list[tuple[int, str, int]]) -> None:
    blocks = [
        ScreenBlock(f"b{at}", (text,), weight, most)
        for at, (weight, text, most) in enumerate(asked)
    ]
    lines = screen(blocks)
    whole = [line for block in blocks for line in block.lines]
    assert len(lines) == min(len(whole), LINES)
    assert all(cell_len(line) <= COLUMNS for line in lines)
    kept = {line.split()[0] for line in lines if line.startswith("b")}
    lost = [block.weight for block in blocks if block.label not in kept]
    there = [block.weight for block in blocks if block.label in kept]
    assert not lost or not there or max(lost) <= min(there)


@given(st.integers(1, 8), st.integers(0, 9), st.integers(1, 9))
def test_of_what_stands_together_all_is_shown_or_what_stands_instead(
    rows: int, others: int, weight: int
) -> None:
    """Rows of a list: some of them would look like all."""
    listed = [f"row {at}" for at in range(rows)]
    blocks = (
        ScreenBlock("", tuple("other" for _ in range(others)), 5, 9),
        ScreenBlock("list", tuple(listed), weight, rows, "elsewhere"),
    )
    shown = [line[9:] for line in screen(blocks, 9)]
    assert len(shown) <= 9
    told = [line for line in shown if not line.startswith("other")]
    assert told in (listed, ["elsewhere"], [])
    assert told == listed or rows + others > 9


QUANTITIES = st.tuples(
    st.decimals(0, 9999, places=2), st.sampled_from(["s", "ms", "us", "GB", "KiB", "GB/s", "%"])
).map(lambda pair: f"{pair[0]} {pair[1]}")


@given(st.lists(st.one_of(QUANTITIES, st.sampled_from(["of", "bound", "(gap"])), max_size=30))
def test_a_number_stays_with_its_unit(parts: list[str]) -> None:
    text = ", ".join(parts)
    lines = wrapped(text, 20)
    assert " ".join(lines) == text
    assert not any(line.split()[-1].replace(".", "").isdigit() for line in lines if line)


@given(st.lists(st.text("ab ", min_size=1, max_size=200), max_size=40), st.integers(1, 30))
@example(["ab " * 40] * 9, 7)
def test_lines_that_are_left_out_are_counted(texts: list[str], most: int) -> None:
    lines = full_width(texts)
    shown = fitted(lines, most)
    assert len(shown) <= most
    assert all(cell_len(line) <= COLUMNS for line in shown)
    if len(lines) > most:
        assert shown == [*lines[: most - 1], f".. {len(lines) - most + 1} more lines: --details"]


def test_what_stands_below_takes_its_room() -> None:
    assert room([]) == LINES
    assert room(["", "\nplan written to plan.json"], ["head"]) == LINES - 4
    assert room(["line"] * 40) == 1


def test_a_program_is_indented_on_every_line() -> None:
    program = "; ".join(["all-reduce parallel node in root"] * 4)
    (block,) = [ScreenBlock("requests", ("40 ms  all-reduce dp", indented(program, 10)), 8, 6)]
    assert all(line.startswith(" " * 19) for line in block.lines[1:])
    assert len(block.lines) == 4
