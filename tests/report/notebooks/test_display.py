"""Answers in notebooks: one line, HTML that stands alone, and rows as a data frame."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType

import pytest

import p2smt
from p2smt.display import Displayed
from p2smt.report.notebooks.display import answer_html, answer_rows, answer_story
from p2smt.report.page.html import MOST_ROWS, fragment
from p2smt.report.page.story import (
    Bar,
    BarPart,
    Bars,
    Drawn,
    Figure,
    PlotPoint,
    Scatter,
    Section,
    Stack,
    Story,
    Table,
)
from tests.report.page.browser import Browser, chromium

HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m"
VOID = {"br", "img"}


@cache
def topology() -> p2smt.Topology:
    return p2smt.load_topology("dgx-h100:2")


@cache
def solution() -> p2smt.Solution:
    asked = (p2smt.reduce("dp=1GiB"), p2smt.reduce("tp=64MiB*8"))
    return p2smt.solve(p2smt.Problem(topology(), p2smt.parse_axes("dp=2,tp=8"), asked))


@cache
def planned() -> p2smt.Planned:
    cluster = p2smt.load_topology("dgx-h100:1")
    batch = p2smt.Batch(sequences=64, tokens=8192)
    constants = p2smt.efficiency_of(cluster)
    model = p2smt.read_model("llama-3-8b")
    return p2smt.plan(p2smt.PlanQuestion(model, batch, cluster, constants))


@cache
def moved() -> p2smt.RedistributionPlan:
    source = p2smt.array_type("dp=2,tp=8", (8192, 8192), "bf16", "S(dp),S(tp)")
    return p2smt.redistribute(source, "R,S(dp,tp)", topology())


def training_plan() -> p2smt.TrainingPlan:
    found = planned().plan
    assert found is not None
    return found


def file_plan() -> Displayed:
    from p2smt.plans.file import plan_data
    from p2smt.plans.file_model import PlanModel

    best = solution().best
    assert best is not None
    return PlanModel.model_validate(plan_data(solution(), best))


ANSWERS: Mapping[str, Callable[[], Displayed]] = MappingProxyType(
    {
        "topology": topology,
        "solution": solution,
        "planned": planned,
        "training plan": training_plan,
        "plan file": file_plan,
        "redistribution": moved,
        "schedule": lambda: p2smt.classic("ring-all-reduce", 8),
    }
)
SIZES: Mapping[str, Callable[[], int]] = MappingProxyType(
    {
        "topology": lambda: sum(len(one.link.pieces) for one in topology().levels),
        "solution": lambda: 2 * len(solution().alternatives),
        "redistribution": lambda: len(moved().steps),
        "schedule": lambda: len(p2smt.classic("ring-all-reduce", 8).steps),
    }
)


class Read(HTMLParser):
    """What a browser would read: tags, attributes, texts; every tag must be closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.mark.parametrize("name", ANSWERS)
def test_one_line_says_what_it_is(name: str) -> None:
    answer = ANSWERS[name]()
    assert re.fullmatch(r"<\w+ [ -~]{5,180}>", repr(answer))
    assert repr(answer) == str(answer)


@pytest.mark.parametrize("name", ANSWERS)
def test_html_has_the_verdict_and_no_script(name: str) -> None:
    answer = ANSWERS[name]()
    story, html = answer_story(answer), answer._repr_html_()
    read = Read(html)
    said = "".join(read.words)
    for words in (story.title, story.verdict, *(one.value for one in story.figures)):
        assert words in said
    assert "table" in read.tags
    assert not {"script", "iframe", "link", "img", "object"} & set(read.tags)
    attributes = {key for key, _ in read.attributes}
    assert not [one for one in attributes if one.startswith("on") or one in ("href", "src")]
    assert "http" not in html.replace("http://www.w3.org", "")
    assert len(html) < 60_000
    assert html == answer_html(answer)


@pytest.mark.parametrize("name", ["solution", "planned", "redistribution", "plan file"])
def test_pictures_that_need_no_script_are_shown(name: str) -> None:
    assert "svg" in Read(answer_html(ANSWERS[name]()).replace('class="defs"', "")).tags
    assert answer_html(ANSWERS[name]()).count('<svg class="bar"') > 0


def test_long_tables_are_cut_and_say_so() -> None:
    html = answer_html(p2smt.classic("pairwise-all-to-all", 8))
    assert html.count("<tr>") == 1 + MOST_ROWS
    assert f"{MOST_ROWS} of 56 rows" in html


def test_the_style_holds_inside_alone() -> None:
    html = answer_html(topology())
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.S)
    assert style.startswith(".p2smt {")
    depth = [0]
    for letter in style:
        depth.append(depth[-1] + {"{": 1, "}": -1}.get(letter, 0))
    assert depth[-1] == 0
    assert min(depth[9:-1]) == 1  # one rule, from its first brace to its last


@pytest.mark.parametrize("name", ["topology", "schedule", "solution", "planned", "redistribution"])
def test_names_of_strangers_stay_texts(name: str) -> None:
    answer = ANSWERS[name]()
    plain, hostile = Read(answer_html(answer)), Read(answer_html(_named(answer, HOSTILE)))
    assert hostile.tags == plain.tags
    assert [key for key, _ in hostile.attributes] == [key for key, _ in plain.attributes]
    assert not {"\u202e", "\x1b"} & set("".join(hostile.words))
    assert (
        any("<script>" in one for one in hostile.words) or name == "redistribution"
    )  # it has none
    assert "\n" not in repr(_named(answer, "a\nb"))


def _named(answer: Displayed, name: str) -> Displayed:
    """The same with a name that a stranger gave."""
    match answer:
        case p2smt.Topology() | p2smt.Schedule():
            return replace(answer, name=name)
        case p2smt.Solution():
            cluster = replace(answer.problem.topology, name=name)
            return replace(answer, problem=replace(answer.problem, topology=cluster))
        case p2smt.RedistributionPlan():
            return replace(answer, topology=replace(answer.topology, name=name, description=name))
        case p2smt.Planned(recommended=run):
            assert run is not None
            own = run.plan.estimate
            model = replace(own.run.model, name=name)
            named = replace(own, run=replace(own.run, model=model))
            return replace(answer, recommended=replace(run, plan=replace(run.plan, estimate=named)))
    raise AssertionError(answer)


def story_of(word: str) -> Story:
    """A story with every part that there is, each of its texts the word."""
    table = Table((word, f">{word}"), ((word, word),), word)
    bar = Stack(
        word, (BarPart(word, 1, word), BarPart(word, 1, word, True)), 3, word, ((2, word),), word
    )
    plot = Scatter(
        word, word, (PlotPoint(1, 1, word, word, True), PlotPoint(2, 0, word, word)), (3, word)
    )
    bars = Bars(word, (Bar(word, 1, word), Bar(word, 2, word, True)), 2)
    section = Section(
        word, word, (bar, bars, plot, Drawn("map", word, {word: word})), (table,), table
    )
    return Story(word, word, (Figure(word, word, word),), (section,), ((word, word),), kind=word)


def test_every_text_of_a_story_is_escaped() -> None:
    plain, hostile = (Read(fragment(story_of(one))) for one in ("word", HOSTILE + "\"'&"))
    assert hostile.tags == plain.tags
    assert [key for key, _ in hostile.attributes] == [key for key, _ in plain.attributes]
    assert len(hostile.words) == len(plain.words)


def test_what_was_not_found_is_said() -> None:
    cluster, axes = topology(), p2smt.parse_axes("dp=2,tp=8")
    apart = (
        p2smt.parse_rule(
            "tp within gpu", require=True, axis_names=["dp", "tp"], level_names=["node", "gpu"]
        ),
    )
    problem = p2smt.Problem(cluster, axes, (p2smt.reduce("dp=1GiB"),), rules=apart)
    found = p2smt.solve(problem)
    assert found.best is None
    assert "infeasible" in repr(found)
    said = "".join(Read(answer_html(found)).words)
    assert "No plan" in said
    assert "infeasible" in said
    assert found.to_pandas().empty


# Rows.


@pytest.mark.parametrize("name", ANSWERS)
def test_rows_become_a_frame_with_units_in_the_names(name: str) -> None:
    answer = ANSWERS[name]()
    rows, frame = answer_rows(answer), answer.to_pandas()
    assert len(frame) == len(rows) > 0
    assert len(frame) == SIZES.get(name, lambda: len(rows))()
    assert {tuple(one) for one in rows} == {tuple(frame.columns)}
    assert all(isinstance(one, str) for one in frame.columns)


def test_a_frame_has_the_numbers_of_the_answer() -> None:
    best = solution().best
    assert best is not None
    frame = solution().to_pandas()
    first = frame[frame.alternative == 1]
    assert (first.seconds * first.times).sum() == pytest.approx(best.objective_s)
    assert moved().to_pandas().seconds.sum() == pytest.approx(moved().objective_s)
    strategies = planned().to_pandas()
    assert strategies.iteration_s.min() == pytest.approx(planned().top[0].iteration_s)
    parts = [one for one in strategies.columns if one.endswith("_s") and one != "iteration_s"]
    assert strategies[parts].sum(axis=1).tolist() == pytest.approx(strategies.iteration_s.tolist())


def test_without_pandas_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        p2smt.BackendError, match=r"^to_pandas\(\): needs pandas.* pip install"
    ) as e:
        topology().to_pandas()
    assert "\n" not in str(e.value)


# In a browser.


def test_it_stands_in_a_page_without_changing_it(tmp_path: Path) -> None:
    """The notebook's own words keep their look, and bars have their colours and lengths."""
    path = tmp_path / "cell.html"
    names = ("solution", "planned", "schedule", "topology")
    html = "".join(answer_html(ANSWERS[one]()) for one in names)
    path.write_text(f'<!doctype html><p id="own">own</p>{html}', encoding="utf-8")
    with chromium() as browser:
        browser.open(path)
        assert browser.js(_LOOK, "#own", "margin-top") != "0px"
        assert browser.js(_LOOK, ".p2smt .chosen", "fill") == "rgb(245, 92, 61)"
        assert browser.js(_LOOK, ".p2smt .big", "font-weight") == "700"
        assert browser.log() == []
        browser.open(path, width=400)
        _fits(browser)


_LOOK = (
    "return getComputedStyle(document.querySelector(arguments[0])).getPropertyValue(arguments[1])"
)


def _fits(browser: Browser) -> None:
    assert browser.fits()
