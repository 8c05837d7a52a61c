"""How large the code is, beside what ``size.toml`` allows: ``python -m tests.size``.

A code line has more on it than a docstring, a comment or an import.  What pages are made of counts,
too: lines of style, script and HTML that are neither empty nor a comment alone.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.imports import ROOT, imported_names, parsed

BUDGET = ROOT / "size.toml"
CODE = ("p2smt", "encodings")
OF_PAGES = (".js", ".css", ".html")
IMPORTS = (ast.Import, ast.ImportFrom)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
SAME_NAMES = ("z3.py", "cpsat.py", "file_model.py")
"""Files that are meant to be called alike: a solver's, and the keys of a file."""


@dataclass(frozen=True)
class Module:
    """A file of the code: its dotted name, syntax tree, and counts of its lines."""

    path: Path
    name: str
    tree: ast.Module
    lines: int
    code_lines: int

    @property
    def package(self) -> str:
        """The folder of ``p2smt`` that it lies in; what lies in none is ``p2smt`` itself."""
        parts = self.name.split(".")
        inner = len(parts) > 2 or (len(parts) == 2 and self.is_package)
        return parts[1] if inner else "p2smt"

    @property
    def is_package(self) -> bool:
        """Whether it is the opening of a package."""
        return self.path.name == "__init__.py"


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines with code: no docstring, comment or import."""
    silent = {
        line
        for node in statements(tree)
        if isinstance(node, IMPORTS) or _is_text(node)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = (line.strip() for line in text.split("\n"))
    return sum(bool(line) and line[0] != "#" and n not in silent for n, line in enumerate(lines, 1))


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Every statement, those inside others too."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for block in BLOCKS:
            waiting += getattr(node, block, ())
        if isinstance(node, ast.stmt):
            yield node


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is a text alone."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


@cache
def modules() -> tuple[Module, ...]:
    """Every file of the code; links are not followed."""
    return tuple(
        _read(path)
        for folder in CODE
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any(part.is_symlink() for part in path.parents)
    )


def _read(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = parsed(text)
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "p2smt" else ("p2smt", *parts)
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(path, name, tree, text.count("\n"), code_lines(text, tree))


def sizes() -> dict[str, int]:
    """Code lines of each package."""
    found = Counter[str]()
    for module in modules():
        found[module.package] += module.code_lines
    for path in page_files():
        found[path.relative_to(ROOT).parts[1]] += page_lines(path.read_text(encoding="utf-8"))
    return dict(sorted(found.items()))


def page_files() -> list[Path]:
    """Style, script and HTML of the code."""
    return sorted(path for path in (ROOT / "p2smt").rglob("*") if path.suffix in OF_PAGES)


def page_lines(text: str) -> int:
    """Their lines that say something."""
    lines = (line.strip() for line in text.split("\n"))
    return sum(bool(line) and not line.startswith(("//", "/*", "<!--")) for line in lines)


def budget() -> dict[str, int]:
    """Code lines that each package may have."""
    found: dict[str, int] = tomllib.loads(BUDGET.read_text(encoding="utf-8"))["code_lines"]
    return found


def over(sizes: Mapping[str, int], budget: Mapping[str, int]) -> list[str]:
    """Packages that have more lines than they may, or no line in the budget, or only that."""
    found = [
        f"{name}: {sizes[name]} code lines, {budget[name]} in size.toml; "
        "take some away, or raise its line there and say why in the same commit"
        for name in sizes
        if name in budget and sizes[name] > budget[name]
    ]
    found += [f"{name}: has no line in size.toml" for name in sizes if name not in budget]
    return found + [f"{name}: is in size.toml alone" for name in budget if name not in sizes]


def importers(found: tuple[Module, ...]) -> dict[str, set[str]]:
    """The modules that import each module, at the top or in a function; packages' openings not."""
    names = {module.name for module in found}
    users: dict[str, set[str]] = {m.name: set() for m in found if not m.is_package}
    for module in found:
        if not module.is_package:
            for name in imported_names(module.tree):
                for used in {name, name.rpartition(".")[0]} & names - {module.name}:
                    users.setdefault(used, set()).add(module.name)
    return {m.name: users[m.name] for m in found if not m.is_package}


def figures(found: tuple[Module, ...]) -> Iterator[tuple[str, str]]:
    """What tells how hard it is to find one's way, in words and numbers."""
    files = [module for module in found if not module.is_package]
    code = sum(module.code_lines for module in found)
    imports = sum(isinstance(node, IMPORTS) for each in found for node in statements(each.tree))
    names = Counter(module.path.name for module in files)
    namesakes = sum(n for name, n in names.items() if n > 1 and name not in SAME_NAMES)
    folders = Counter(module.path.parent.relative_to(ROOT).as_posix() for module in files)
    fullest = max(folders, key=lambda name: folders[name])
    largest = max(found, key=lambda module: module.lines)
    yield "files", f"{len(files)}"
    yield "code lines", f"{code}"
    yield "imports per 100 code lines", f"{100 * imports / code:.1f}"
    alone = sum(len(users) == 1 for users in importers(found).values())
    yield "modules that one module alone imports", f"{alone}"
    yield "files that share their name", f"{namesakes}"
    yield "largest file", f"{largest.path.relative_to(ROOT).as_posix()}, {largest.lines} lines"
    yield "fullest folder", f"{fullest}, {folders[fullest]} files"


def main() -> None:
    """Print code lines by package beside the budget, then the figures of the whole."""
    allowed = budget()
    print(f"{'package':16} {'code lines':>10} {'budget':>8} {'left':>6}")
    for name, size in sizes().items():
        most = allowed.get(name, 0)
        print(f"{name:16} {size:10} {most:8} {most - size:6}")
    for words, value in figures(modules()):
        print(f"{words}: {value}")
    print(*over(sizes(), allowed), sep="\n", end="")


if __name__ == "__main__":
    main()
