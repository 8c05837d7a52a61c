"""The pages agree with the code: the table of presets, the topology example, and its keys."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from p2smt.cluster.error_model import DeviceModel, LevelErrorModel
from p2smt.cluster.file import parse_topology
from p2smt.cluster.file_model import InSwitchModel, LevelModel, LinkModel, PieceModel, TopologyModel
from p2smt.cluster.topology import Algorithm, LinkKind
from p2smt.plans.file_model import PlanModel
from p2smt.plans.training.file_model import TransformerModel
from tests.cli.tools import cli
from tests.pages import script

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MODELS: tuple[type[BaseModel], ...] = (
    TopologyModel,
    LevelModel,
    LinkModel,
    PieceModel,
    InSwitchModel,
    LevelErrorModel,
    DeviceModel,
)


def test_the_table_of_presets_is_up_to_date() -> None:
    text = (DOCS / "topology.md").read_text()
    assert script(DOCS / "presets.py").page(text) == text, "run: python docs/presets.py"


def test_the_topology_example_loads() -> None:
    text = (DOCS / "topology.md").read_text()
    example, named = re.findall(r"```yaml\n(.*?)```", text, re.S)
    assert parse_topology(named, "docs").installed == 12 * 8
    topology = parse_topology(example, "example")
    assert topology.sizes == (2, 4, 8)


def test_every_key_of_a_topology_file_is_described() -> None:
    text = (DOCS / "topology.md").read_text()
    keys = {key for model in MODELS for key in model.model_fields}
    values = {value.value for kind in (Algorithm, LinkKind) for value in kind}
    assert {word for word in keys | values if f"`{word}`" not in text} == set()


def models_in(
    annotation: object, above: frozenset[type[BaseModel]] = frozenset()
) -> set[type[BaseModel]]:
    """The models that a type is put together of, with those of their keys."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation in above:  # a switch has switches
            return set()
        fields = annotation.model_fields.values()
        inner = (models_in(field.annotation, above | {annotation}) for field in fields)
        return {annotation}.union(*inner)
    return set().union(*(models_in(part, above) for part in get_args(annotation)))


def test_every_key_of_a_plan_file_is_described() -> None:
    text = (DOCS / "plans.md").read_text()
    models = models_in(PlanModel) - models_in(TopologyModel) - models_in(TransformerModel)
    assert len(models) >= 12
    fields = (pair for model in models for pair in model.model_fields.items())
    keys = {field.alias or name for name, field in fields}
    assert {key for key in keys if f"`{key}`" not in text} == set()


def test_every_key_of_a_model_is_described() -> None:
    text = (DOCS / "models.md").read_text()
    keys = {key for model in models_in(TransformerModel) for key in model.model_fields}
    assert {key for key in keys if not re.search(rf"`{key}`|\b{key}: ", text)} == set()


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]:
        targets = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page.read_text())
        assert [target for target in targets if not (page.parent / target).exists()] == [], page


OURS = ("p2smt/", "encodings/", "tests/", "experiments/", "docs/")


def unknown_files(text: str, marks: str, folder: Path) -> list[str]:
    """Names of Python files between marks that are ours by their folder, and are not there."""
    named = re.findall(rf"(?<!`){marks}([a-z0-9_/]+[a-z0-9]\.py){marks}(?!`)", text)
    here = folder.is_relative_to(ROOT / "encodings")
    places = (ROOT, folder, folder.parent)
    return [
        name
        for name in named
        if (here or name.startswith(OURS)) and not any((at / name).exists() for at in places)
    ]


def test_files_that_pages_and_encodings_name_are_there() -> None:
    pages = [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
    assert {p.name: n for p in pages if (n := unknown_files(p.read_text(), "`", DOCS))} == {}
    files = [*(ROOT / "encodings").rglob("*.py")]
    lost = {f.name: n for f in files if (n := unknown_files(f.read_text(), "``", f.parent))}
    assert lost == {}


def test_a_file_that_is_not_there_is_found() -> None:
    assert unknown_files("in `tests/no.py`, `tests/tiers.py` and `others.py`", "`", DOCS) == [
        "tests/no.py"
    ]
    inside = ROOT / "encodings" / "program"
    assert unknown_files("``z3.py``, ``z3_steps.py``", "``", inside) == ["z3_steps.py"]


def test_the_table_of_constants_is_up_to_date() -> None:
    text = (DOCS / "cost-model.md").read_text()
    assert script(DOCS / "constants.py").page(text) == text, "run: python docs/constants.py"


@pytest.mark.parametrize("page", ["cost-model.md", "program-times.md"])
def test_commands_on_costs_print_what_the_page_shows(page: str) -> None:
    text = (DOCS / page).read_text()
    blocks = re.findall(r"```console\n\$ p2smt (.*?)\n(.*?)\n```", text, re.S)
    assert blocks
    for command, shown in blocks:
        outcome = cli(*shlex.split(command))
        assert [line.rstrip() for line in outcome.out.splitlines()] == shown.splitlines()
    for command in re.findall(r"^    p2smt (cost (?:.*\\\n)*.*)$", text, re.M):
        assert cli(*shlex.split(command.replace("\\\n", " "))).code == 0
