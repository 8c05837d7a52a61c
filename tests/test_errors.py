"""Every exception of the package survives pickling and copying: type, message, what it carries."""

from __future__ import annotations

import builtins
import copy
import copyreg
import importlib
import inspect
import json
import multiprocessing
import pickle
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from p2smt.errors import EncodingBug, InputError
from p2smt.units import parse_count
from tests.imports import read_sources

VALUES: dict[str, object] = {"step": 3, "rank": 2, "line": 7}
"""What an argument of that name is; the others are texts."""


def exception_types() -> Iterator[type[Exception]]:
    """Every exception class that a module of the package defines, private ones as well."""
    known = {name for name in dir(builtins) if name.endswith(("Error", "Exception"))}
    classes = [found for module in sorted(read_sources().items()) for found in _heirs(*module)]
    for module, name, bases in [*classes, *classes]:  # a base may be found after its heir
        if known & bases:
            if name not in known:
                yield getattr(importlib.import_module(f"p2smt.{module}"), name)
            known.add(name)


def _heirs(module: str, source: str) -> Iterator[tuple[str, str, set[str]]]:
    """Each class that has bases, with their names: a text is read sooner than a tree."""
    for name, bases in re.findall(r"^[ \t]*class (\w+)\(([^)]*)\)", source, re.MULTILINE):
        yield module, name, {base.strip() for base in bases.split(",")}


def example(kind: type[Exception]) -> Exception:
    """An exception of this type with an argument for every parameter."""
    made = kind.__init__
    if not inspect.isfunction(made):
        return kind("rank 0: a text")
    names = list(inspect.signature(made).parameters)[1:]
    return kind(*(VALUES.get(name, f"{name}: a text") for name in names))


TYPES = tuple(exception_types())


def same(one: BaseException, other: BaseException) -> bool:
    """Whether type, message and all that they carry are the same."""
    return (type(one), str(one), vars(one)) == (type(other), str(other), vars(other))


def test_the_types_are_found() -> None:
    names = {kind.__name__ for kind in TYPES}
    public = {"InputError", "TooLarge", "EncodingBug", "ExecutionError", "BackendError"}
    assert names >= public | {"OutOfTimeError", "StepError", "ImpossibleOrder", "_RefusedError"}
    assert len(names) == len(TYPES)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "through",
    [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deepcopy"],
)
def test_an_error_survives(
    kind: type[Exception],
    through: Callable[[Exception], Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(copyreg.dispatch_table, kind, raising=False)  # Dask helps some of them
    error = example(kind)
    error.add_note("while it was read")
    assert str(error)
    assert same(through(error), error)
    assert same(through(through(error)), error)


def test_an_error_comes_out_of_another_process() -> None:
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(1, mp_context=context) as pool,
        pytest.raises(
            InputError, match=r"^number of nodes 'x': is not a whole.*; write digits only$"
        ) as caught,
    ):
        pool.submit(parse_count, "x", "number of nodes", 4).result(timeout=600)
    assert caught.value.given == "number of nodes 'x'"


def test_a_message_is_one_line_and_what_was_given_stays_as_it_was() -> None:
    error = InputError("size\n'x'", "is  bad")
    assert str(error) == "size 'x': is bad"
    assert error.given == "size\n'x'"


@pytest.mark.parametrize("answer", [object(), {(0, 1): 2}, [{1, 2}]])
def test_a_case_that_is_no_json_is_told_all_the_same(answer: object) -> None:
    error = EncodingBug("wrong", {"sizes": (2, 4)}, answer)
    head, _, case = str(error).partition(" with the following case: ")
    assert head == "wrong; please report this"
    assert json.loads(case)["problem"] == {"sizes": [2, 4]}
    assert same(pickle.loads(pickle.dumps(error)), error)
