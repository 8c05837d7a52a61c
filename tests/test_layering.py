"""The directions of the arrows between modules (docs/development.md), read from their imports.

A module may import from its own package and from rows above it in LAYERS, never from below or
beside, and never in a cycle; ``arrows.py`` has the rules, each with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.arrows import (
    APART,
    BANS,
    COMPUTES_NAMES,
    INSIDE,
    JOINS_ENCODINGS,
    LAYERS,
    PACKAGES,
    PRINTS,
    ROWS,
    SEES,
)
from tests.imports import (
    ROOT,
    Sources,
    files_below,
    imported_names,
    inside,
    names_imported,
    outside_imports,
    own_imports,
    parsed,
    read_sources,
)


def height(module: str, rows: tuple[tuple[str, ...], ...] = LAYERS) -> int:
    """The row that a module belongs to; one without a row counts as the highest."""
    return next((row for row, names in enumerate(rows) if inside(module, names)), len(rows))


def room(module: str, rows: tuple[tuple[str, ...], ...]) -> str:
    """The name in these rows that a module belongs to."""
    return next((name for names in rows for name in names if inside(module, [name])), module)


def unplaced(sources: Sources) -> list[str]:
    return [
        f"p2smt/{module.replace('.', '/')}.py has no place: add its package to a row of "
        f"{table} in tests/arrows.py, above the rows of all that import it"
        for module in sorted(sources)
        for table, rows in _tables(module)
        if height(module, rows) == len(rows)
    ]


def upward(sources: Sources) -> list[str]:
    """Imports of a higher row, or of a neighbour in the same one."""
    return [
        f"{module} imports {other}, which is in a higher layer or beside it"
        for module in sorted(sources)
        for other in sorted(own_imports(module, sources))
        for _, rows in _tables(module)
        if any(inside(other, names) for names in rows)
        if height(other, rows) >= height(module, rows) and room(other, rows) != room(module, rows)
    ]


def _tables(module: str) -> Iterator[tuple[str, tuple[tuple[str, ...], ...]]]:
    """The rows that hold for a module: those of all packages, and those inside its own."""
    yield "LAYERS", LAYERS
    package, _, within = module.partition(".")
    if within and package in INSIDE:
        yield f"INSIDE[{package!r}]", INSIDE[package]


def banned(sources: Sources) -> list[str]:
    return [
        f"{module} must not import {other}: {why}"
        for module in sorted(sources)
        for other in sorted(own_imports(module, sources))
        for why in _objections(module, other)
    ]


def _objections(module: str, other: str) -> Iterator[str]:
    for who, what, why in BANS:
        if inside(module, [who]) and inside(other, [what]):
            yield why
    for who, seen, why in SEES:
        if inside(module, [who]) and not inside(other, seen):
            yield why
    if inside(other, ["encodings"]) and not inside(module, JOINS_ENCODINGS):
        yield "only solvers imports encodings"
    if inside(module, ["runtime"]) and inside(other, ["schedules"]):
        checks = module == "runtime.ranks.run_schedule"
        if other != "schedules.model" and not checks:
            yield APART
    if inside(other, ["interop"]) and not inside(module, ["interop", "cli", "p2smt", "api"]):
        yield "foreign formats live in interop alone"
    if inside(other, ROWS) and not inside(module, ROWS):
        yield "rows need sympy, which the product is installed without"


def misplaced_packages(sources: Sources) -> list[str]:
    found = []
    for module in sorted(sources):
        for package in sorted(outside_imports(module, sources)):
            allowed = PACKAGES.get(package, ())
            if package == "pydantic" and module.endswith(("file", "file_model")):
                continue
            if allowed is not None and not inside(module, allowed):
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
    found, tree, names = [], parsed(source), names_imported(source)
    if any(name.endswith(".*") for name in names):
        found.append(f"{module} has a star import")
    if any(name.startswith(".") for name in names):
        found.append(f"{module} has a relative import: write p2smt.name")
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {f.attr for f in calls if isinstance(f, ast.Attribute)}
    plain = {f.id for f in calls if isinstance(f, ast.Name)}
    if {"import_module", "__import__"} & (called | plain) and not inside(module, COMPUTES_NAMES):
        found.append(f"{module} imports by a computed name, which hides an arrow")
    if not inside(module, PRINTS) and "print" in plain:
        found.append(f"{module} prints: only {' and '.join(sorted(PRINTS))} do")
    return found


SOURCES = read_sources()


def test_the_modules_are_found() -> None:
    assert {"p2smt", "units", "search.program_synthesis", "encodings.program.cpsat"} <= set(SOURCES)


def test_every_module_has_a_place() -> None:
    assert unplaced(SOURCES) == []


def test_every_name_is_placed_once_and_exists() -> None:
    names = [name for row in LAYERS for name in row]
    assert sorted(names) == sorted({module.split(".")[0] for module in SOURCES})
    ruled = {name for ban in BANS for name in ban[:2]} | {*JOINS_ENCODINGS}
    ruled |= {name for rows in INSIDE.values() for names in rows for name in names}
    ruled |= {name for who, seen, _ in SEES for name in (who, *seen)}
    ruled |= {*COMPUTES_NAMES, *PRINTS, *(n for users in PACKAGES.values() for n in users or ())}
    assert {n for n in ruled if not any(inside(module, [n]) for module in SOURCES)} == set()


def test_imports_go_down() -> None:
    assert upward(SOURCES) == []


def test_neighbours_that_must_not_meet() -> None:
    assert banned(SOURCES) == []


def test_third_party_packages_stay_in_their_rooms() -> None:
    assert misplaced_packages(SOURCES) == []


@pytest.mark.parametrize("module", ["runtime.ranks.on_ranks", "runtime.job", "cli.app"])
def test_what_starts_quickly_does_not_load_torch_or_solvers(module: str) -> None:
    """Imports inside functions do not count: they load where they are used."""
    reached, waiting = set[str](), [module]
    while waiting:
        name = waiting.pop()
        reached.add(name)
        quick = {name: _at_the_top(SOURCES[name])}
        assert not outside_imports(name, quick) & {"torch", "z3", "ortools", "scipy"}, name
        found = own_imports(name, {**SOURCES, **quick})
        packages = {n.rsplit(".", part)[0] for n in found for part in range(n.count(".") + 1)}
        waiting += [n for n in (found | packages) - reached if n in SOURCES]


def _at_the_top(source: str) -> str:
    """A module without its functions, and without what only type checkers import."""
    tree = ast.parse(source)
    functions = (ast.FunctionDef, ast.ClassDef)
    kept = [n for n in tree.body if not isinstance(n, functions) and not isinstance(n, ast.If)]
    return ast.unparse(ast.Module(kept, []))


def test_no_cycles() -> None:
    assert cycle(SOURCES) == []


def test_habits() -> None:
    assert [text for m, source in sorted(SOURCES.items()) for text in loose_habits(m, source)] == []


def test_no_star_imports_elsewhere() -> None:
    for folder in ("tests", "experiments"):
        for path in files_below(ROOT / folder):
            text = path.read_text()
            if "import *" in text:  # few have it, in a text of theirs: the others need no parsing
                names = imported_names(ast.parse(text))
                assert not [name for name in names if name.endswith(".*")], path


def test_the_package_does_not_import_its_tests_or_experiments() -> None:
    for module, source in SOURCES.items():
        tops = {name.split(".")[0] for name in names_imported(source)}
        assert not tops & {"tests", "experiments", "encodings", "topologies"}, module


@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        (
            "cluster.topology",
            "from p2smt.plans import file",
            "cluster.topology imports plans.file,",
        ),
        ("units", "import p2smt.cluster.topology", "units imports cluster.topology, which is in a"),
        ("units", "def f():\n    from p2smt import __version__", "units imports p2smt, which"),
        (
            "cost.scene",
            "from p2smt.problems import race",
            "cost.scene imports problems.race, which",
        ),
        (
            "schedules.order.clocks",
            "from p2smt.schedules.verify import report",
            "schedules.order.clocks imports schedules.verify.report, which is in a higher layer",
        ),
        (
            "runtime.schedules.rows",
            "from p2smt.runtime.programs import regions",
            "runtime.schedules.rows imports runtime.programs.regions, which is in a higher layer",
        ),
    ],
)
def test_an_upward_import_is_found(module: str, source: str, message: str) -> None:
    others = ("plans.file", "cluster.topology", "problems.race", "schedules.verify.report")
    sources = dict.fromkeys((*others, "runtime.programs.regions"), "")
    (found,) = upward({**sources, module: source})
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("programs.semantics", "from p2smt.cost import alpha_beta"),
        ("runtime.programs.regions", "from p2smt.programs.semantics import x"),
        ("runtime.ranks.on_ranks", "from p2smt.programs import check"),
        ("encodings.placement.primes", "from p2smt.programs.semantics import x"),
        ("encodings.placement.primes", "if TYPE_CHECKING:\n    from p2smt.cost import footprint"),
        ("encodings.placement.primes", "from p2smt.cost.step_time import StepTime"),
        ("encodings.program.z3", "from p2smt.collectives.contract import Contract"),
        ("cli.solve.solve_command", "from p2smt.encodings.placement import primes"),
        ("programs.check", "import p2smt.encodings.placement.primes as p"),
        ("schedules.model", "from p2smt.interop.msccl import read"),
        ("schedules.races.replay", "from p2smt.schedules.verify.contributions import values_of"),
        ("runtime.schedules.reference", "from p2smt.runtime.payload import Numbers"),
        ("runtime.schedules.execution", "from p2smt.schedules.verify.deadlock import some_run"),
        ("runtime.ranks.worker", "from p2smt.schedules.verify.deadlock import some_run"),
        ("runtime.ranks.run_schedule", "from p2smt.schedules.verify import contributions"),
        ("runtime.schedules.moves", "from p2smt.schedules.index import Index"),
        ("runtime.programs.regions", "from p2smt.programs.preconditions import x"),
        ("cost.scene", "from p2smt.programs import payload_rows"),
        ("schedules.verify.verify", "from p2smt.schedules.lower import row_moves"),
        ("search.joint", "from p2smt.encodings.placement import cpsat"),
        ("schedules.language.schedule_file", "from p2smt.schedules.index import Index"),
        ("collectives.names", "from p2smt.units import format_bytes"),
    ],
)
def test_a_meeting_that_must_not_be_is_found(module: str, source: str) -> None:
    assert banned({module: source})


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("search.joint", "from ortools.sat.python import cp_model"),
        ("cost.alpha_beta", "import z3"),
        ("problems.program", "from pydantic import BaseModel"),
        ("plans.check", "from pydantic import BaseModel"),
        ("cost.alpha_beta", "import pandas"),
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
        "import importlib\nimportlib.import_module('p2smt.cost.bounds')",
        "print(1)",
    ],
)
def test_a_loose_habit_is_found(source: str) -> None:
    assert len(loose_habits("cluster.topology", source)) == 1


def test_a_cycle_is_found() -> None:
    assert set(cycle({"a": "import p2smt.b", "b": "from p2smt import a", "c": ""})) == {"a", "b"}


def test_a_module_without_a_place_is_found() -> None:
    (found,) = unplaced({"brand_new.idea": "", "costs": "", "cost.alpha_beta": ""})[:1]
    assert found.startswith("p2smt/brand_new/idea.py has no place: add its package to a row of LAY")
    assert len(unplaced({"brand_new.idea": "", "costs": "", "cost.alpha_beta": ""})) == 2
