"""Numbers that no honest program writes, in every file that a command reads: one line, exit 2."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from p2smt.parallel_search.journal.record import JournalHeader
from p2smt.parallel_search.subproblem import SearchKind, Subproblem
from tests.cli.hostile.readers import READERS, Reader, write_files
from tests.cli.tools import EXIT_CODES, Outcome, assert_one_error
from tests.tiers import but_every

NOT_FINITE = ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 400, "9" * 5000)
"""None of them is a number of JSON that a float can hold."""
ODD = (*NOT_FINITE, "nan", ".inf", "-1", "1e308", str(2**32), str(2**62), str(10**17))
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
FEW = 2
"""Places of a file at which something is tried every day; all of them in the longer tests."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile")
    write_files(path)
    return path


def places(reader: Reader, text: str) -> list[tuple[int, int]]:
    """Where a file has numbers; of JSON those that are not inside of texts."""
    bare = TEXT.sub(lambda found: "x" * len(found[0]), text) if reader.is_json else text
    return [found.span() for found in NUMBER.finditer(bare)]


def some(found: list[Any], many: int) -> list[Any]:
    """So many of a list, spread over it: its first and its last one among them."""
    if len(found) <= many:
        return found
    return [found[at * (len(found) - 1) // (many - 1)] for at in range(many)]


def with_odd(reader: Reader, folder: Path, many: int) -> Iterator[tuple[str, Outcome]]:
    """What becomes of a file with another number at some of its places, each number once there."""
    text = reader.text(folder)
    assert reader.run(folder).code == 0
    numbers = NOT_FINITE if reader.is_json else ODD
    for at, (start, end) in enumerate(some(places(reader, text), many)):
        for number in numbers if many > FEW else numbers[at::4]:
            yield number, reader.run(folder, text[:start] + number + text[end:])


def assert_refused(reader: Reader, outcome: Outcome) -> None:
    """In JSON always; elsewhere it may be a text, or what comes after may be another answer."""
    if reader.is_json or outcome.code == 2:
        assert_one_error(outcome)
    else:
        assert outcome.code in EXIT_CODES, outcome


@pytest.mark.parametrize("name", READERS)
def test_a_number_that_is_none(name: str, folder: Path) -> None:
    for _, outcome in with_odd(READERS[name], folder, FEW):
        assert_refused(READERS[name], outcome)


@pytest.mark.exhaustive
@pytest.mark.parametrize("many", but_every(2, (20, 100)))
@pytest.mark.parametrize("name", READERS)
def test_such_a_number_at_many_places(name: str, many: int, folder: Path) -> None:
    for _, outcome in with_odd(READERS[name], folder, many):
        assert_refused(READERS[name], outcome)


VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**31, 2**63, 10**200, 0.5, 1e308, -1e308, 5e-324, "inf", "-inf", "nan"),
    *("x", "", [], {}, [0], "9" * 400),
)
JOURNALS = ("list.jsonl", "best.jsonl", "trained.jsonl", "made.jsonl")


def paths(value: Any) -> Iterator[tuple[str | int, ...]]:
    """The path of every value inside a JSON value; of a list its first three."""
    pairs: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [*enumerate(value[:3])]
    for key, inner in pairs:
        yield (key,)
        yield from ((key, *more) for more in paths(inner))


def signed(header: dict[str, Any]) -> dict[str, Any]:
    """A header with the digest of what it says, as a forger writes it."""
    made = JournalHeader(
        header["space"],
        SearchKind(header["skeleton"]),
        header["description"],
        header["top"],
        header["scale"],
        header["cube_rule"],
        tuple(Subproblem(tuple(root)) for root in header["roots"]),
        header["options"],
        header["versions"],
    )
    return {**header, "digest": made.digest()}


def headers(text: str, many: int) -> Iterator[str]:
    """A journal with another value in its question, and the digest that goes with it."""
    first, _, rest = text.partition("\n")
    header = json.loads(first)
    asked = [("top",), *(("description", *path) for path in paths(header["description"]))]
    for at, path in enumerate(some(asked, many)):
        for value in VALUES if many > FEW else VALUES[at % 4 :: 4]:
            changed = copy.deepcopy(header)
            place: Any = changed
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            yield json.dumps(signed(changed)) + "\n" + rest


@pytest.mark.parametrize("name", JOURNALS)
def test_a_forged_question(name: str, folder: Path) -> None:
    reader = READERS[name]
    for text in headers(reader.text(folder), FEW):
        outcome = reader.run(folder, text)
        assert outcome.code in (0, 1, 2, 3), outcome
        if outcome.code == 2:
            assert_one_error(outcome)


@pytest.mark.exhaustive
@pytest.mark.parametrize("many", but_every(2, (20, 10_000)))
@pytest.mark.parametrize("name", JOURNALS)
def test_a_question_forged_at_many_places(name: str, many: int, folder: Path) -> None:
    reader = READERS[name]
    for text in headers(reader.text(folder), many):
        outcome = reader.run(folder, text)
        assert outcome.code in (0, 1, 2, 3), outcome
        if outcome.code == 2:
            assert_one_error(outcome)
