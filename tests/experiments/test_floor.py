"""The floor of the studies: which may import which, how scripts start, how folders are filled."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.imports import ROOT, files_below, imported_names

STUDIES = ROOT / "experiments"
SHARED = ("testbed", "tables")
PLACEMENT = "experiments.placement_448x"
PARTS = {"model": ("model",), "measure": ("measure",), "report": ("model", "measure", "report")}
"""What the parts of placement_448x may import of each other."""

_MAY_EDIT = re.compile(r"sys\s*\.\s*path\b|from sys |addsitedir")
_COMMAND = re.compile(r"-m (experiments(?:\.[a-z_0-9]+)+)\b(?!\.\w)")


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def sources(*folders: str) -> dict[str, str]:
    paths = [path for folder in folders for path in files_below(ROOT / folder)]
    return {module_of(path): path.read_text(encoding="utf-8") for path in paths}


def crossings(module: str, source: str) -> list[str]:
    """Imports of one study by another, and of a part of placement_448x that must not be known."""
    _, study, part = f"{module}.".split(".")[:3]
    found = []
    for name in imported_names(ast.parse(source)):
        top, other, other_part = f"{name}..".split(".")[:3]
        if top == "experiments" and other not in (study, *SHARED):
            found.append(f"{module} imports {name}: what two studies need goes to {SHARED[0]}")
        elif top == "experiments" and other == study and part in PARTS and other_part in PARTS:
            found += [f"{module} imports {name}"] if other_part not in PARTS[part] else []
    return found


def edits_of_the_path(source: str) -> list[str]:
    """Every use of ``sys.path``, and of ``site.addsitedir``."""
    names = {"sys.path", "site.addsitedir"}
    if not _MAY_EDIT.search(source):
        return []
    tree = ast.parse(source)
    used = [
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    ]
    return [name for name in (*used, *imported_names(tree)) if name in names]


def is_script(source: str) -> bool:
    return any(map(_is_guard, ast.parse(source).body))


def defined_too_late(source: str) -> bool:
    """Whether something follows what runs when the module is started: it is not there yet."""
    return "__main__" in source and any(map(_is_guard, ast.parse(source).body[:-1]))


def _is_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def commands() -> dict[str, set[str]]:
    """The scripts that pages, the Makefile and docstrings name, by file."""
    pages = [ROOT / "README.md", ROOT / "Makefile", *(ROOT / "docs").glob("*.md")]
    pages += [*STUDIES.rglob("*.md"), *files_below(STUDIES)]
    found = {str(p.relative_to(ROOT)): set(_COMMAND.findall(p.read_text())) for p in pages}
    table = (STUDIES / "placement_448x" / "README.md").read_text()
    rows = re.findall(r"^\| `([a-z_.]+)", table, re.M)
    return {**found, "placement_448x": {f"{PLACEMENT}.{row}" for row in rows}}


EXPERIMENTS = sources("experiments")


def test_studies_do_not_import_each_other() -> None:
    assert f"{PLACEMENT}.measure.study" in EXPERIMENTS
    assert [text for pair in sorted(EXPERIMENTS.items()) for text in crossings(*pair)] == []


def test_no_script_edits_the_path() -> None:
    everything = {**EXPERIMENTS, **sources("tests")}
    assert [module for module, source in everything.items() if edits_of_the_path(source)] == []


def test_every_command_that_is_shown_starts_a_script() -> None:
    named = commands()
    assert "experiments.benchmarks.table" in named["Makefile"] & named["docs/studies.md"]
    assert f"{PLACEMENT}.model.study" in named["Makefile"] & named["placement_448x"]
    for page, modules in named.items():
        for module in modules:
            assert module in EXPERIMENTS, page
            assert is_script(EXPERIMENTS[module]), page


def test_no_page_starts_a_script_by_its_path() -> None:
    for page in (*ROOT.glob("*.md"), ROOT / "Makefile", *STUDIES.rglob("*.md")):
        assert "python experiments/" not in page.read_text(encoding="utf-8"), page


def test_a_module_that_is_started_is_complete() -> None:
    everything = {**EXPERIMENTS, **sources("p2smt")}
    assert [module for module, source in everything.items() if defined_too_late(source)] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("experiments.executor.overhead", "from experiments.gpu_check.cases import Case"),
        ("experiments.executor.overhead", "import experiments.gpu_check.cases"),
        ("experiments.executor.overhead", "from experiments import gpu_check"),
        ("experiments.testbed.ranks", "from experiments.executor.overhead import main"),
        (
            f"{PLACEMENT}.model.study",
            f"from {PLACEMENT}.report import x",
        ),
        (f"{PLACEMENT}.measure.run", f"import {PLACEMENT}.model.study"),
    ],
)
def test_a_crossing_is_found(module: str, source: str) -> None:
    assert len(crossings(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("experiments.executor.overhead", "from experiments.testbed.ranks import run"),
        ("experiments.executor.overhead", "from experiments.executor import other"),
        (f"{PLACEMENT}.report.text", f"import {PLACEMENT}.model.study"),
        (
            f"{PLACEMENT}.model.study",
            f"from {PLACEMENT}.cases import x",
        ),
    ],
)
def test_what_may_be_imported(module: str, source: str) -> None:
    assert crossings(module, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.path.append('.')",
        "import sys\nsys.path[:0] = ['.']",
        "from sys import path",
        "import site\nsite.addsitedir('.')",
    ],
)
def test_an_edit_of_the_path_is_found(source: str) -> None:
    assert edits_of_the_path(source)


def test_a_late_definition_is_found() -> None:
    guard = "if __name__ == '__main__':\n    main()\n"
    assert defined_too_late(f"{guard}class Late: ...")
    assert not defined_too_late(f"class Early: ...\n{guard}")
