"""Every encoding has the same parts under the same names (docs/encodings.md), read from its source.

An entry is ``encodings/<problem>/<solver>.py``, the problem's folder perhaps in another one; files
that begin with its name are its helpers.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from p2smt.problems.schedule import AllReduceProblem, ScheduleClass
from p2smt.solvers.ask import ALL_REDUCE_DOORS, DOORS, Solver

ROOT = Path(__file__).resolve().parent.parent.parent
HEADINGS = ("Problem: ", "Variables", "Constraints", "Objective: ", "Size: ")
ROW = re.compile(r"^    C(\d+)(?:-C(\d+))? ([a-z]+(?: [a-z]+)*)(?:  |$)", re.MULTILINE)
FUNCTION = re.compile(r"c(\d+)_(\w+)")

Sources = Mapping[str, str]
"""Text by path in ``encodings/``, such as ``race/z3.py``."""


def read_sources() -> Sources:
    folder = ROOT / "encodings"
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*.py"))}


def entries(sources: Sources) -> list[str]:
    """The files that `ask` opens."""
    return [p for p in sources if "/" in p and Path(p).stem in list(Solver)]


def head(source: str) -> str:
    return ast.get_docstring(ast.parse(source), clean=False) or ""


def states_a_model(source: str) -> bool:
    return re.search(r"^Constraints$", head(source), re.MULTILINE) is not None


def own_files(model: str, sources: Sources) -> list[str]:
    """A model's file, and for an entry the helpers that state no model of their own."""
    helpers = [p for p in sources if p.startswith(f"{model.removesuffix('.py')}_")]
    return [model, *(p for p in helpers if not states_a_model(sources[p]))]


def functions(source: str) -> list[ast.FunctionDef]:
    return [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]


def missing_headings(path: str, sources: Sources) -> Iterator[str]:
    lines, at = head(sources[path]).splitlines(), 0
    for heading in HEADINGS:
        found = [n for n, line in enumerate(lines) if n >= at and line.startswith(heading)]
        if not found:
            yield f"{path} has no {heading.strip()!r} in its place in the docstring"
        at = found[0] if found else at


def stated(path: str, sources: Sources) -> dict[str, range]:
    """Functions that a docstring's rows ask for, with the numbers that each stands for."""
    rows = ROW.findall(head(sources[path]))
    return {
        f"c{first}_{name.replace(' ', '_')}": range(int(first), int(last or first) + 1)
        for first, last, name in rows
    }


def constraint_gaps(path: str, sources: Sources) -> Iterator[str]:
    """Rows without a function, functions without a row, and numbers that are left out."""
    rows = stated(path, sources)
    names = {f.name for p in own_files(path, sources) for f in functions(sources[p])}
    names = {name for name in names if FUNCTION.fullmatch(name)}
    yield from (
        f"{path} has no function {name} for its row" for name in sorted(rows.keys() - names)
    )
    yield from (
        f"{path} has no row for its function {name}" for name in sorted(names - rows.keys())
    )
    used = {name for p in own_files(path, sources) for name in _read_names(sources[p])}
    idle = sorted((names & rows.keys()) - used)
    yield from (f"{path} never uses its function {name}" for name in idle)
    numbers = sorted({number for span in rows.values() for number in span})
    if numbers != list(range(1, len(numbers) + 1)) or not numbers:
        yield f"{path} numbers its constraints {numbers}, not C1 to Cn"


def _read_names(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


def strays(sources: Sources) -> Iterator[str]:
    """Constraints in files that belong to no model."""
    models = [p for p in sources if states_a_model(sources[p])]
    placed = {p for model in models for p in own_files(model, sources)}
    for path in sorted(sources.keys() - placed):
        for function in functions(sources[path]):
            if FUNCTION.fullmatch(function.name):
                yield f"{path} has {function.name} and belongs to no model"


def missing_parts(path: str, sources: Sources) -> Iterator[str]:
    """``Vars``, frozen, and ``decode``: in the entry, or imported into it from a helper."""
    known = {node.name: node for node in _definitions(sources[path])}
    for helper in _helpers(path, sources):
        taken = _imported(path, helper, sources)
        known |= {n.name: n for n in _definitions(sources[helper]) if n.name in taken}
    if not isinstance(known.get("decode"), ast.FunctionDef):
        yield f"{path} has no decode"
    variables = known.get("Vars")
    if not isinstance(variables, ast.ClassDef):
        yield f"{path} has no Vars"
    elif "frozen=True" not in "".join(map(ast.unparse, variables.decorator_list)):
        yield f"{path} has Vars that are not frozen"


def _helpers(path: str, sources: Sources) -> list[str]:
    return [p for p in sources if p.startswith(f"{path.removesuffix('.py')}_")]


def _definitions(source: str) -> list[ast.FunctionDef | ast.ClassDef]:
    body = ast.parse(source).body
    return [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def _imported(path: str, helper: str, sources: Sources) -> set[str]:
    """The names that an entry imports from a helper."""
    module = f"p2smt.encodings.{helper.removesuffix('.py').replace('/', '.')}"
    nodes = [n for n in ast.parse(sources[path]).body if isinstance(n, ast.ImportFrom)]
    return {alias.name for node in nodes if node.module == module for alias in node.names}


def signatures(door: str) -> dict[str, dict[str, str]]:
    """By problem, the entry point of each question and its signature, from the overloads of `ask`.

    The type checker sees the overloads; the functions behind them are imported by name.
    """
    questions = {
        problem: {kind.__name__: name for kind, name in row.functions.items()}
        for problem, row in [
            *DOORS.items(),
            (AllReduceProblem.__name__, ALL_REDUCE_DOORS[ScheduleClass.TREES]),
        ]
    }
    found: dict[str, dict[str, str]] = {problem: {} for problem in questions}
    for overload in functions(door):
        if overload.name != "ask" or not overload.decorator_list or overload.returns is None:
            continue
        problem, question = (
            ast.unparse(a.annotation) for a in overload.args.args[:2] if a.annotation
        )
        for kind in question.split(" | "):
            more = ", k: int" if kind == "Best" else ""
            arguments = f"(problem: {problem}, limits: SearchLimits{more})"
            name = questions[problem][kind]
            found[problem][name] = f"{arguments} -> {ast.unparse(overload.returns)}"
    return found


def wrong_signatures(path: str, sources: Sources, door: str) -> Iterator[str]:
    """Entry points that are missing, or take or give something else than `ask` does."""
    folder = str(Path(path).parent).replace("/", ".")
    problems = {row.folder: problem for problem, row in DOORS.items()}
    problems |= {row.folder: AllReduceProblem.__name__ for row in ALL_REDUCE_DOORS.values()}
    if folder not in problems:
        yield f"{path} has no row in DOORS"
        return
    there = {f.name: _signature(f) for f in functions(sources[path])}
    for name, signature in signatures(door)[problems[folder]].items():
        if there.get(name) != signature:
            yield f"{path} has no {name}{signature}"


def _signature(function: ast.FunctionDef) -> str:
    returns = ast.unparse(function.returns) if function.returns else "nothing"
    return f"({ast.unparse(function.args)}) -> {returns}"


def broken(sources: Sources, door: str) -> list[str]:
    """Everything in which the sources differ from the skeleton."""
    found = [*strays(sources)]
    for path in entries(sources):
        found += [*missing_headings(path, sources), *missing_parts(path, sources)]
        found += [*wrong_signatures(path, sources, door)]
    for path in sources:
        if path in entries(sources) or states_a_model(sources[path]):
            found += constraint_gaps(path, sources)
    return found


SOURCES = read_sources()
LINEAR = frozenset({"schedule/flow/glop.py", "transfer/glop.py"})
"""Linear programs: they have one solver, and doors of their own."""
DOOR = (ROOT / "p2smt/solvers/ask.py").read_text()
TEXT = (ROOT / "docs/encodings.md").read_text()


def test_the_entries_are_found() -> None:
    assert {"placement/cpsat.py", "program/z3.py", "race/z3.py", "claim/z3.py"} <= set(
        entries(SOURCES)
    )
    assert {p.partition("/")[0] for p in {*entries(SOURCES), *LINEAR}} == {
        p.partition("/")[0] for p in SOURCES if "/" in p
    }


def test_every_encoding_has_the_skeleton() -> None:
    assert broken(SOURCES, DOOR) == []


def test_the_door_opens_on_every_entry() -> None:
    rows = [*DOORS.values(), *ALL_REDUCE_DOORS.values()]
    files = [
        f"{row.folder.replace('.', '/')}/{solver}.py" for row in rows for solver in row.solvers
    ]
    assert sorted(files) == sorted(set(entries(SOURCES)) - LINEAR)


def test_the_page_names_every_file() -> None:
    assert [path for path in SOURCES if f"`{path}`" not in TEXT] == []


def test_what_the_page_names_is_there() -> None:
    paths = re.findall(r"`((?:\w+/)+\w+\.(?:py|md))`", TEXT)
    places = (ROOT, ROOT / "encodings", ROOT / "p2smt")
    assert paths
    assert [p for p in paths if not any((place / p).exists() for place in places)] == []
    names = re.findall(r"`p2smt((?:\.\w+)+)\.(\w+)`", TEXT)
    assert names
    for module, name in names:
        assert hasattr(importlib.import_module(f"p2smt{module}"), name), f"{module}.{name}"


GOOD = '''"""Races by hand.

Problem: an order.

Variables
    at[x]  the place of x

Constraints
    C1 step      a step
    C2-C3 at most  the limits

Objective: none.

Size: small.
"""
@dataclass(frozen=True, slots=True)
class Vars: ...
def c1_step(): ...
def c2_at_most(): ...
def decode(): ...
def wrong_order(problem: RaceProblem, limits: SearchLimits) -> Result[RaceAnswer]:
    c1_step(), c2_at_most()
'''


def changed(old: str, new: str) -> list[str]:
    """What is found wrong with the good source when a part of it is replaced."""
    assert old in GOOD
    return broken({"race/z3.py": GOOD.replace(old, new)}, DOOR)


def test_a_good_source_is_not_broken() -> None:
    assert changed("", "") == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Problem: an", "An", "no 'Problem:' in its place"),
        ("Variables\n", "Unknowns\n", "no 'Variables' in its place"),
        ("Objective: none.\n", "", "no 'Objective:' in its place"),
        ("Size: small.", "", "no 'Size:' in its place"),
        ("frozen=True, ", "", "Vars that are not frozen"),
        ("class Vars: ...", "class Variables: ...", "has no Vars"),
        ("def decode(): ...", "", "has no decode"),
        ("def c1_step(): ...", "", "no function c1_step for its row"),
        ("    c1_step(), ", "    ", "never uses its function c1_step"),
        ("def c1_step(): ...", "def c1_step(): ...\ndef c1_more(): ...", "no row for its function"),
        (
            "limits: SearchLimits",
            "limits: SearchLimits, k: int = 1",
            "has no wrong_order(problem: ",
        ),
        ("RaceProblem, limits", "RaceProblem, _", "has no wrong_order(problem: "),
        ("Result[RaceAnswer]", "Result[bool]", "has no wrong_order(problem: "),
        ("def wrong_order", "def wrong", "has no wrong_order(problem: "),
    ],
)
def test_a_missing_part_is_found(old: str, new: str, message: str) -> None:
    (found,) = changed(old, new)
    assert message in found


def test_a_gap_in_the_numbers_is_found() -> None:
    assert changed("C2-C3 at", "C2 at") == []
    both = GOOD.replace("C2-C3 at", "C3 at").replace("c2_at_most", "c3_at_most")
    (found,) = broken({"race/z3.py": both}, DOOR)
    assert found == "race/z3.py numbers its constraints [1, 3], not C1 to Cn"


def test_helpers_count_if_the_entry_uses_them() -> None:
    helper = "def c1_step(): ...\ndef decode(): ...\n"
    rest = GOOD.replace("def c1_step(): ...\n", "").replace("def decode(): ...\n", "")
    used = rest.replace("@data", "from p2smt.encodings.race.z3_more import decode\n@data")
    assert broken({"race/z3.py": used, "race/z3_more.py": helper}, DOOR) == []
    (found,) = broken({"race/z3.py": rest, "race/z3_more.py": helper}, DOOR)
    assert found == "race/z3.py has no decode"
    (found,) = broken({"race/z3.py": GOOD, "race/tables.py": "def c1_row(): ..."}, DOOR)
    assert found == "race/tables.py has c1_row and belongs to no model"


def test_a_problem_without_a_row_is_found() -> None:
    (found,) = broken({"knots/z3.py": GOOD}, DOOR)
    assert found == "knots/z3.py has no row in DOORS"
