"""What the modules of the package import, read from their text."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

Sources = Mapping[str, str]
"""Source text by module, without the leading "p2smt."; the package itself is "p2smt"."""


def files_below(folder: Path) -> Iterator[Path]:
    """Python files, links followed but for that to the pages, whose scripts are no part of it."""
    for top, folders, names in os.walk(folder, followlinks=True):
        if Path(top) == ROOT / "p2smt" and "docs" in folders:
            folders.remove("docs")
        yield from (Path(top) / name for name in names if name.endswith(".py"))


def module_of(path: Path) -> str:
    """A file of the package as a module, without the leading "p2smt."."""
    parts = path.relative_to(ROOT / "p2smt").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "p2smt"


def read_sources() -> Sources:
    """Every module of the package."""
    return {module_of(path): path.read_text() for path in files_below(ROOT / "p2smt")}


def inside(module: str, names: Iterable[str]) -> bool:
    """Whether a module is one of these, or in one of these packages."""
    return any(module == name or module.startswith(f"{name}.") for name in names)


@cache
def parsed(source: str) -> ast.Module:
    """The syntax tree of a source; not to be changed."""
    return ast.parse(source)


STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Dotted names that a module imports, anywhere in it; ``from a import b`` gives ``a.b``."""
    waiting = [tree]
    while waiting:  # statements alone: expressions, nearly all of a tree, import nothing
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield from (f"{start}.{alias.name}" for alias in node.names)
        waiting += [one for one in ast.iter_child_nodes(node) if isinstance(one, STATEMENTS)]


@cache
def names_imported(source: str) -> tuple[str, ...]:
    """:func:`imported_names` of a source, read once: several rules look at the same modules."""
    return tuple(imported_names(parsed(source)))


def own_imports(module: str, sources: Sources) -> set[str]:
    """The modules of the package that a module imports."""
    found = set()
    for name in names_imported(sources[module]):
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
    tops = {name.split(".")[0] for name in names_imported(sources[module])}
    return tops - sys.stdlib_module_names - {"p2smt"}
