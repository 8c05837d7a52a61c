"""The directions of the arrows between modules (docs/development.md), read from their imports.

A module may import from its own row of LAYERS and from rows above it, never from below, and
never in a cycle.  BANS says which neighbours must not know each other, and why.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Lowest first.  A name stands for the module, for those that continue it with "_" and for those
# inside it: "synthesis" places synthesis, synthesis_search and synthesis/search; the longest
# name wins.  "p2smt" is the package itself, with the public functions.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("units", "collective", "result", "validation", "yaml_text"),
    ("topology",),
    ("placement", "topology_model", "topology_file"),
    ("program", "routing"),
    ("problem", "footprint", "traffic"),
    ("semantics", "cost", "encodings", "rules", "request"),
    (
        "pricing",
        "bounds",
        "checking",
        "scenes",
        "solution",
        "layouts",
        "pipeline",
        "program_cost",
        "restrictions",
    ),
    ("synthesis",),
    ("request_plan",),
    ("joint", "sensitivity"),
    ("api",),
    ("plan", "calibration", "interop"),
    ("schedules", "schedules.decide", "schedules.parametric_proof"),
    ("runtime",),
    ("p2smt",),
    ("report",),
    ("cli",),
)

# What encodings may see: frozen inputs and results.  Everything else is what checks them.
ENCODINGS_SEE = {"errors", "collective", "placement", "program", "problem", "result", "encodings"}

# (who, must not import, why)
BANS: tuple[tuple[str, str, str], ...] = (
    ("semantics", "encodings", "the specification stands alone"),
    ("semantics", "cost", "what a program means does not depend on what it costs"),
    ("semantics", "runtime", "execution and specification check each other"),
    ("runtime", "semantics", "execution and specification check each other"),
    ("runtime", "checking", "execution and specification check each other"),
    ("cost", "semantics", "what a program costs does not depend on what it means"),
    ("cost", "encodings", "objectives are recomputed outside the solvers"),
    ("bounds", "encodings", "bounds are proved without a solver"),
)

# Only these join encodings with what checks them.
JOINS_ENCODINGS = {
    "synthesis",
    "encodings",
    "schedules.decide",
    "schedules.parametric_proof",
}

# These import by a computed name: the solver that was asked for, and public names on first use.
COMPUTES_NAMES = {"synthesis", "p2smt"}

# Third-party packages and who may import them; None: every module.
PACKAGES: Mapping[str, frozenset[str] | None] = {
    "numpy": None,
    "ortools": frozenset({"encodings"}),
    "z3": frozenset({"encodings"}),
    "pydantic": frozenset(
        {"validation", "topology_model", "topology_file", "plan", "schedules", "cli"}
    ),
    "defusedxml": frozenset({"schedules"}),
    "scipy": frozenset({"calibration"}),
    "pydantic_core": frozenset({"validation"}),
    "yaml": frozenset({"yaml_text"}),
    "typer": frozenset({"cli"}),
    "rich": frozenset({"cli", "report"}),
    "torch": frozenset({"runtime", "interop"}),
}

PRINTS = {"cli", "report"}

Sources = Mapping[str, str]
"""Source text by module, without the leading "p2smt."; the package itself is "p2smt"."""


def _files(folder: Path) -> Iterator[Path]:
    for top, _, names in os.walk(folder, followlinks=True):
        yield from (Path(top) / name for name in names if name.endswith(".py"))


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT / "p2smt").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "p2smt"


def read_sources() -> Sources:
    """Every module of the package."""
    return {_module(path): path.read_text() for path in _files(ROOT / "p2smt")}


def place(module: str) -> str | None:
    """The name in LAYERS that a module belongs to."""
    names = [name for row in LAYERS for name in row]
    fits = [n for n in names if module == n or module.startswith((f"{n}_", f"{n}."))]
    return max(fits, key=len, default=None)


def height(module: str) -> int:
    """The row of a module in LAYERS; one without a place counts as the highest."""
    name = place(module)
    return next((row for row, names in enumerate(LAYERS) if name in names), len(LAYERS))


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Dotted names that a module imports, anywhere in it; ``from a import b`` gives ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield from (f"{start}.{alias.name}" for alias in node.names)


def own_imports(module: str, sources: Sources) -> set[str]:
    """The modules of the package that a module imports."""
    found = set()
    for name in imported_names(ast.parse(sources[module])):
        top, _, inside = name.partition(".")
        if top == "p2smt":
            found.add(_known(inside, sources) or (inside if "." in inside else "p2smt"))
    return found - {module}


def _known(name: str, sources: Sources) -> str:
    """The longest prefix that is a module, or nothing."""
    while name and name not in sources:
        name = name.rpartition(".")[0]
    return name


def outside_imports(module: str, sources: Sources) -> set[str]:
    """The third-party packages that a module imports."""
    tops = {name.split(".")[0] for name in imported_names(ast.parse(sources[module]))}
    return tops - sys.stdlib_module_names - {"p2smt"}


def unplaced(sources: Sources) -> list[str]:
    return [
        f"p2smt/{module.replace('.', '/')}.py has no place: add its name to a row of LAYERS in "
        "tests/test_layering.py, above the rows of all modules that import it"
        for module in sorted(sources)
        if place(module) is None
    ]


def upward(sources: Sources) -> list[str]:
    return [
        f"{module} imports {other}, which is in a higher layer"
        for module in sorted(sources)
        for other in sorted(own_imports(module, sources))
        if height(other) > height(module)
    ]


def banned(sources: Sources) -> list[str]:
    found = []
    for module in sorted(sources):
        here = place(module)
        for other in sorted(own_imports(module, sources)):
            there = place(other)
            found += [
                f"{module} must not import {other}: {why}"
                for who, what, why in BANS
                if (who, what) == (here, there)
            ]
            if here == "encodings" and there not in ENCODINGS_SEE:
                found.append(f"{module} must not import {other}: encodings see problems only")
            if there == "encodings" and here not in JOINS_ENCODINGS:
                found.append(f"{module} must not import {other}: only synthesis joins encodings")
    return found


def misplaced_packages(sources: Sources) -> list[str]:
    found = []
    for module in sorted(sources):
        for package in sorted(outside_imports(module, sources)):
            allowed = PACKAGES.get(package, frozenset())
            if allowed is not None and place(module) not in allowed:
                where = ", ".join(sorted(allowed)) or "no module (see PACKAGES)"
                found.append(f"{module} imports {package}, which is for {where}")
    return found


def cycle(sources: Sources) -> list[str]:
    """One cycle of imports, or nothing."""
    try:
        TopologicalSorter({name: own_imports(name, sources) for name in sources}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def loose_habits(module: str, source: str) -> list[str]:
    """Star and relative imports, imports by computed name, and prints outside their rooms."""
    found, tree = [], ast.parse(source)
    names = list(imported_names(tree))
    if any(name.endswith(".*") for name in names):
        found.append(f"{module} has a star import")
    if any(name.startswith(".") for name in names):
        found.append(f"{module} has a relative import: write p2smt.name")
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if any(ast.unparse(f).endswith(("import_module", "__import__")) for f in calls) and (
        place(module) not in COMPUTES_NAMES
    ):
        found.append(f"{module} imports by a computed name, which hides an arrow")
    if place(module) not in PRINTS and any(ast.unparse(f) == "print" for f in calls):
        found.append(f"{module} prints: only {' and '.join(sorted(PRINTS))} do")
    return found


SOURCES = read_sources()


def test_the_modules_are_found() -> None:
    assert {"p2smt", "units", "synthesis", "encodings.program_cpsat"} <= set(SOURCES)


def test_every_module_has_a_place() -> None:
    assert unplaced(SOURCES) == []


def test_every_name_is_placed_once() -> None:
    names = [name for row in LAYERS for name in row]
    assert len(names) == len(set(names))
    assert set(names) >= ENCODINGS_SEE | JOINS_ENCODINGS | COMPUTES_NAMES | PRINTS
    assert {name for ban in BANS for name in ban[:2]} <= set(names)
    assert {name for users in PACKAGES.values() for name in users or ()} <= set(names)


def test_imports_go_down() -> None:
    assert upward(SOURCES) == []


def test_neighbours_that_must_not_meet() -> None:
    assert banned(SOURCES) == []


def test_third_party_packages_stay_in_their_rooms() -> None:
    assert misplaced_packages(SOURCES) == []


def test_no_cycles() -> None:
    assert cycle(SOURCES) == []


def test_habits() -> None:
    assert [text for m, source in sorted(SOURCES.items()) for text in loose_habits(m, source)] == []


def test_no_star_imports_elsewhere() -> None:
    for folder in ("tests", "experiments"):
        for path in _files(ROOT / folder):
            names = imported_names(ast.parse(path.read_text()))
            assert not [name for name in names if name.endswith(".*")], path


def test_the_package_does_not_import_its_tests_or_experiments() -> None:
    for module, source in SOURCES.items():
        tops = {name.split(".")[0] for name in imported_names(ast.parse(source))}
        assert not tops & {"tests", "experiments", "encodings", "topologies"}, module


@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        ("topology", "from p2smt import plan", "topology imports plan, which is in a higher"),
        ("units", "import p2smt.topology", "units imports topology, which is in a higher"),
        ("units", "def f():\n    from p2smt import __version__", "units imports p2smt, which"),
    ],
)
def test_an_upward_import_is_found(module: str, source: str, message: str) -> None:
    (found,) = upward({"plan": "", "topology": "", "units": "", module: source})
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("semantics", "from p2smt.runtime import x"),
        ("runtime.executor", "from p2smt.semantics import x"),
        ("encodings.primes", "from p2smt.semantics import x"),
        ("encodings.primes", "if TYPE_CHECKING:\n    from p2smt import footprint_explicit"),
        ("encodings.primes", "from p2smt.cost import StepTime"),
        ("cli.solve", "from p2smt.encodings import primes"),
        ("checking", "import p2smt.encodings.primes as p"),
    ],
)
def test_a_meeting_that_must_not_be_is_found(module: str, source: str) -> None:
    assert banned({"cost": "", "runtime": "", module: source})


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("synthesis", "from ortools.sat.python import cp_model"),
        ("cost", "import z3"),
        ("problem", "from pydantic import BaseModel"),
        ("cost", "import pandas"),
    ],
)
def test_a_package_in_the_wrong_room_is_found(module: str, source: str) -> None:
    assert misplaced_packages({module: source})


@pytest.mark.parametrize(
    "source",
    [
        "from p2smt.errors import *",
        "from . import errors",
        "from .errors import InputError",
        "import importlib\nimportlib.import_module('p2smt.cost')",
        "print(1)",
    ],
)
def test_a_loose_habit_is_found(source: str) -> None:
    assert len(loose_habits("topology", source)) == 1


def test_a_cycle_is_found() -> None:
    assert set(cycle({"a": "import p2smt.b", "b": "from p2smt import a", "c": ""})) == {"a", "b"}


def test_a_module_without_a_place_is_found() -> None:
    assert "LAYERS" in unplaced({"brand_new": "", "cost": ""})[0]
    assert place("synthesis_search") == "synthesis"
    assert place("topology_model") == "topology_model"
    assert place("topologyx") is None


@pytest.mark.parametrize("name", ["encodings", "topologies"])
def test_folders_of_the_root_are_relative_links(name: str) -> None:
    assert os.readlink(ROOT / "p2smt" / name) == f"../{name}"
    assert not (ROOT / name / "__init__.py").exists(), "with it PYTHONPATH=. stops Python"


def test_python_starts_in_the_root() -> None:
    """Python's own package ``encodings`` must win over the folder of that name."""
    code = "import encodings, sys, p2smt.encodings.primes; sys.stdout.write(encodings.__file__)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert not Path(run.stdout).is_relative_to(ROOT / "encodings")


def test_every_package_is_listed_for_installation() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {_module(path.parent / "__init__.py") for path in _files(ROOT / "p2smt")}
    folders = {"p2smt" if name == "p2smt" else f"p2smt.{name}" for name in packages}
    listed = set(project["tool"]["setuptools"]["packages"]) - {"p2smt.topologies"}
    assert folders <= listed, "add the package to [tool.setuptools] in pyproject.toml"
