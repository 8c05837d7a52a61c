"""The cases that exploring found: one committed file, tried by every run of the tests.

Each is an ``@example`` of its test: the arguments as text, with the module of every name in it,
and what the test said.  A case may be moved to its test as an ``@example``; where the test goes or
draws other values, it goes too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, is_hypothesis_test

from tests.exploring.text import UnwritableError, Writer, value_of

FOUND = Path(__file__).parents[1] / "found.json"


@dataclass(frozen=True, slots=True)
class Case:
    """Arguments of a test that once failed; ``test``: its node id, with the parameters."""

    test: str
    said: str
    names: Mapping[str, str]
    values: Mapping[str, str]

    def arguments(self) -> dict[str, Any]:
        """The values, made anew."""
        return {name: value_of(text, self.names) for name, text in self.values.items()}


def case_of(test: str, said: str, arguments: Mapping[str, object], home: ModuleType | None) -> Case:
    """A case in words.

    Raises:
        UnwritableError: a value has no text, or its text makes another value.
    """
    writer = Writer(home)
    values = {name: writer.text(value) for name, value in sorted(arguments.items())}
    case = Case(test, said, dict(sorted(writer.names.items())), values)
    again = Writer(home)
    try:
        made = case.arguments()
    except Exception as why:  # whatever the classes of a test raise
        raise UnwritableError(f"{type(why).__name__}: {why} of {values}"[:300]) from why
    for name, value in made.items():
        if again.text(value) != values[name]:
            raise UnwritableError(f"{name}: {again.text(value):.80} made of {values[name]:.80}")
    return case


def read_cases(path: Path = FOUND) -> list[Case]:
    """The cases of a file; none if there is no such file."""
    return [Case(**data) for data in json.loads(path.read_text())] if path.exists() else []


def add_case(case: Case, path: Path) -> None:
    """Writes a case behind the others, unless it is there."""
    cases = read_cases(path)
    if not any((c.test, c.values) == (case.test, case.values) for c in cases):
        write_cases([*cases, case], path)


def write_cases(cases: Iterable[Case], path: Path) -> None:
    """The file of these cases, whole at any moment: a process may be killed here."""
    text = json.dumps([asdict(one) for one in cases], indent=1)
    path.with_suffix(".new").write_text(text + "\n")
    path.with_suffix(".new").replace(path)


def property_of(item: pytest.Item) -> Callable[..., object] | None:
    """The function of a Hypothesis test; None if it is another."""
    function = getattr(item, "function", None)
    return function if function is not None and is_hypothesis_test(function) else None


@contextmanager
def with_cases(item: pytest.Item, cases: list[Case]) -> Iterator[None]:
    """A property is tried on its cases first, made anew: tests may use values up."""
    mine = [case for case in cases if case.test == item.nodeid]
    function = property_of(item)
    if not mine or function is None:
        yield
        return
    before = list(getattr(function, "hypothesis_explicit_examples", ()))
    for case in mine:
        example(**case.arguments())(function)
    try:
        yield
    finally:
        vars(function)["hypothesis_explicit_examples"] = before
