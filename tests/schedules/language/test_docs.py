"""The page about schedule files agrees with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from p2smt.schedules.families.family import prove_family
from p2smt.schedules.language.contract_text import GoalText
from p2smt.schedules.language.file_model import (
    BlockModel,
    BuffersModel,
    CollectiveModel,
    FileModel,
    GroupModel,
    ParameterModel,
    SymmetryModel,
)
from p2smt.schedules.language.grammar import CLAUSES, parse_step
from p2smt.schedules.language.instance import instantiate
from p2smt.schedules.language.items import Line
from p2smt.schedules.language.schedule_file import parse_symbolic
from p2smt.schedules.verify.report import Verdict

PAGE = (Path(__file__).parents[3] / "docs" / "schedule-file.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
MODELS = (
    BlockModel,
    BuffersModel,
    CollectiveModel,
    FileModel,
    GroupModel,
    ParameterModel,
    SymmetryModel,
)


@pytest.mark.parametrize("text", [text for text in EXAMPLES if "blocks:" in text])
def test_the_examples_are_right(text: str) -> None:
    report = prove_family(parse_symbolic(text), 5)
    assert report.verdict is Verdict.VALID


def test_which_example_is_proved_for_all_sizes() -> None:
    whole = [text for text in EXAMPLES if "blocks:" in text]
    assert [prove_family(parse_symbolic(text), 2).induction.proved for text in whole] == [
        False,
        False,
        False,
        True,
    ]


def test_the_example_of_goals() -> None:
    (text,) = (text for text in EXAMPLES if "goals:" in text)
    symbolic = parse_symbolic(f"p2smt_schedule: 1\nranks: 2\nblocks: []\n{text}")
    contract = instantiate(symbolic, {}).contract
    (goal,) = symbolic.goals
    assert isinstance(goal, Line)
    value: GoalText = goal.value
    assert len(value[1]) == len(contract.goals[0].parts) == 2
    assert contract.starts[1][0] is None


def test_every_key_and_clause_is_described() -> None:
    keys = {key for model in MODELS for key in model.model_fields}
    assert {word for word in keys if not re.search(rf"`[^`\n]*\b{word}\b[^`\n]*`", PAGE)} == set()
    assert {word for word in CLAUSES if not re.search(rf"\b{word}\b", PAGE)} == set()


def test_the_table_of_verbs() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| `([a-z]+)` \| `([^`]+)` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 8
    for long, short, clauses in rows:
        one, other = parse_step(f"{long} {clauses}"), parse_step(f"{short} {clauses}")
        assert one.actions == other.actions
        assert (one.kind, other.kind) == (long, short)
