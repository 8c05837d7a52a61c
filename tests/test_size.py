"""The code stays within its budget: ``size.toml`` says how many lines each package may have."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.imports import ROOT
from tests.size import (
    Module,
    budget,
    code_lines,
    figures,
    importers,
    over,
    page_files,
    page_lines,
    sizes,
)


def test_no_package_has_more_lines_than_it_may() -> None:
    assert over(sizes(), budget()) == []


def test_a_package_above_its_line_or_without_one_is_found() -> None:
    assert over({"a": 50, "b": 1}, {"a": 50, "b": 50}) == []
    (above,) = over({"a": 51}, {"a": 50})
    assert above.startswith("a: 51 code lines, 50 in size.toml; ")
    assert over({"a": 1}, {}) == ["a: has no line in size.toml"]
    assert over({}, {"a": 1}) == ["a: is in size.toml alone"]


def test_what_counts_as_code() -> None:
    text = (
        '"""Two\n\nlines."""\n\nfrom a import (\n    b,\n)\n\n# no\n'
        'X = """\ntext\n"""\n"""Of X."""\n'
        "def f():\n    '''Says.'''\n    import c\n\n    # no\n    try:\n        return 1  # yes\n"
        "    except A:\n        import d\n    finally:\n        '''no'''\n"
    )
    code = ['X = """', "text", '"""', "def f():", "try:", "return 1", "except A:", "finally:"]
    assert code_lines(text, ast.parse(text)) == len(code)


def module(name: str, text: str) -> Module:
    path = ROOT.joinpath(*name.split("."))
    path = path / "__init__.py" if name.count(".") == 1 else path.with_suffix(".py")
    tree = ast.parse(text)
    return Module(path, name, tree, text.count("\n"), code_lines(text, tree))


def test_style_and_script_count() -> None:
    assert page_lines("// no\n\nlet a = 1; // yes\n  /* no */\n  b();\n") == 2
    assert {path.name for path in page_files()} >= {"page.css", "page.js"}


SMALL = (
    module("p2smt.a", "from p2smt.a.x import y\n"),
    module("p2smt.a.x", "import p2smt.b.x\ny = 1\n"),
    module("p2smt.a.z", "def f():\n    from p2smt.b import x\n    return x\n"),
    module("p2smt.b", ""),
    module("p2smt.b.x", "y = 2\nz = 3\nfrom p2smt.b.x import y\n"),
)


def test_packages_and_importers() -> None:
    assert [each.package for each in SMALL] == ["a", "a", "a", "b", "b"]
    assert (
        Module(ROOT / "p2smt" / "units.py", "p2smt.units", ast.parse(""), 0, 0).package == "p2smt"
    )
    used = {"p2smt.a.x": set[str](), "p2smt.a.z": set[str]()}
    assert importers(SMALL) == {**used, "p2smt.b.x": {"p2smt.a.x", "p2smt.a.z"}}
    assert importers((*SMALL[1:2], SMALL[4]))["p2smt.b.x"] == {"p2smt.a.x"}


def test_the_figures() -> None:
    assert dict(figures(SMALL)) == {
        "files": "3",
        "code lines": "5",
        "imports per 100 code lines": "80.0",
        "modules that one module alone imports": "0",
        "files that share their name": "2",
        "largest file": "p2smt/a/z.py, 3 lines",
        "fullest folder": "p2smt/a, 2 files",
    }


def test_the_budget_is_in_order() -> None:
    assert [*budget()] == sorted(budget())
    assert "size: setup-dev" in Path(ROOT / "Makefile").read_text(encoding="utf-8")
