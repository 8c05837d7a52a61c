"""One name, one meaning: no public class name stands twice in the package, no other in a module."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache

import pytest

import p2smt
from tests.imports import Sources, parsed
from tests.test_layering import SOURCES

MOST_ALLOWED = 8

# Names that may stand several times, and why.
ALLOWED: Mapping[str, str] = {
    "Vars": "the variables of an encoding: each encoding has its own, and none sees another's",
    "Step": "of a program: an instruction on groups; of a schedule: what one rank does",
    "Violation": "of a program by a collective's rules; of a schedule by its checks",
}


@cache
def public_classes(source: str) -> frozenset[str]:
    """Names of the classes that a module defines for others."""
    names = {node.name for node in ast.walk(parsed(source)) if isinstance(node, ast.ClassDef)}
    return frozenset(name for name in names if not name.startswith("_"))


@cache
def type_names(source: str) -> frozenset[str]:
    """Names that a module gives to types that it puts together: ``Matrix = tuple[..]``."""
    nodes = [node for node in ast.walk(parsed(source)) if isinstance(node, ast.Assign)]
    names = {target.id for node in nodes for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(name for name in names if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name))


def bound_names(source: str) -> list[str]:
    """Names that a module binds for good, each as often as it does: by ``=``, def and class."""
    found: list[str] = []
    for node in parsed(source).body:
        match node:
            case ast.Assign(targets=targets):
                inner = (one for target in targets for one in ast.walk(target))
                found += [one.id for one in inner if isinstance(one, ast.Name)]
            case ast.AnnAssign(target=ast.Name(name), value=ast.expr()):
                found.append(name)
            case ast.FunctionDef(name, decorator_list=[]) | ast.ClassDef(name, decorator_list=[]):
                found.append(name)
            case _:
                pass
    return found


def test_no_module_binds_a_name_twice() -> None:
    """Functions above would see the second value; neither linter nor type checker tells."""
    found = {module: Counter(bound_names(source)) for module, source in SOURCES.items()}
    twice = {module: [k for k, n in names.items() if n > 1] for module, names in found.items()}
    assert {module: names for module, names in twice.items() if names} == {}
    assert bound_names("A = 1\nA = 2\nB: int\ndef f(): pass") == ["A", "A", "f"]


def doubles(sources: Sources) -> dict[str, list[str]]:
    """The modules of each public class name that stands in several, also as another type's name.

    Types put together alike may have one name in two modules that do not know each other.
    """
    homes, others = defaultdict(list), defaultdict(list)
    for module in sorted(sources):
        for name in public_classes(sources[module]):
            homes[name].append(module)
        for name in type_names(sources[module]):
            others[name].append(module)
    every = {name: modules + others[name] for name, modules in sorted(homes.items())}
    return {name: modules for name, modules in every.items() if len(modules) > 1}


def misnamed(sources: Sources, allowed: Mapping[str, str]) -> list[str]:
    """What breaks the rule: a name that is not allowed twice, or is allowed and stands once."""
    found = doubles(sources)
    several = [
        f"{name} is a class of {', '.join(modules)}: give all but one a name of its own"
        for name, modules in found.items()
        if name not in allowed
    ]
    return several + [
        f"{name} stands once: take it out of ALLOWED" for name in allowed if name not in found
    ]


def test_no_public_class_name_stands_twice() -> None:
    assert misnamed(SOURCES, ALLOWED) == []


def test_few_names_are_allowed_twice_and_each_has_a_reason() -> None:
    assert len(ALLOWED) <= MOST_ALLOWED
    assert all(len(reason.split()) > 3 for reason in ALLOWED.values())


def test_classes_are_found_in_all_rooms() -> None:
    assert "Problem" in public_classes(SOURCES["parallelism.request"])
    assert "Vars" in public_classes(SOURCES["encodings.placement.cpsat"])


@pytest.mark.parametrize("name", p2smt.__all__)
def test_a_name_that_the_package_offers_is_found(name: str) -> None:
    """They are imported on first use, so a module that moved would be missed no earlier."""
    assert getattr(p2smt, name).__name__ == name


@pytest.mark.parametrize(
    ("second", "found"),
    [
        ("class Link: ...", ["Link is a class of a, b: give all but one a name of its own"]),
        ("if True:\n    class Link: ...", ["Link is a class of a, b: give all but one a name of "]),
        ("Link = tuple[int, int]", ["Link is a class of a, b: give all but one a name of its own"]),
        ("class _Link: ...", []),
        ("from a import Link", []),
        ("class Route: ...", []),
    ],
)
def test_a_second_class_of_a_name_is_found(second: str, found: list[str]) -> None:
    texts = misnamed({"a": "class Link: ...", "b": second}, {})
    assert [text[: len(start)] for text, start in zip(texts, found, strict=True)] == found


def test_an_allowed_name_must_still_be_double() -> None:
    twice = {"a": "class Link: ...", "b": "class Link: ..."}
    assert misnamed(twice, {"Link": "for a test"}) == []
    gone = ["Link stands once: take it out of ALLOWED"]
    assert misnamed({"a": twice["a"]}, {"Link": "for a test"}) == gone
