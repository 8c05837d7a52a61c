"""docs/quantities.md says what is read, and what is repeated back."""

from __future__ import annotations

import re
import shlex

import pytest

from p2smt.errors import InputError
from p2smt.units import parse_bandwidth, parse_bytes, parse_count, parse_duration
from tests.cli.tools import cli
from tests.imports import ROOT
from tests.pages import commands

PAGE = ROOT / "docs" / "quantities.md"
ROWS = re.findall(
    r"^\| `([^`|]+)`( tokens)? \| ([0-9.]+)(?: (B/s|B|s))? \|$", PAGE.read_text(), re.M
)
READERS = {"B": parse_bytes, "B/s": parse_bandwidth, "s": parse_duration}


@pytest.mark.parametrize(("text", "counted", "value", "unit"), ROWS)
def test_a_text_is_read_as_the_page_says(text: str, counted: str, value: str, unit: str) -> None:
    read = parse_count(text, "tokens") if counted else READERS[unit](text)
    assert read == float(value)


def test_rows_are_of_each_kind() -> None:
    assert {unit for *_, unit in ROWS} == {"", "B", "B/s", "s"}
    assert len(ROWS) == len(re.findall(r"^\| `", PAGE.read_text(), re.M))


@pytest.mark.parametrize("text", ["1m", "5x", "1 gb", "1GBs"])
def test_no_other_size_is_read(text: str) -> None:
    with pytest.raises(InputError, match="K, M, G, T are binary"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["5M", "1G", "2w"])
def test_no_size_is_read_as_a_time(text: str) -> None:
    with pytest.raises(InputError, match="30, 90s, 5m or 1h"):
        parse_duration(text)


def test_every_word_of_the_table_is_read() -> None:
    table = PAGE.read_text().partition("\n\n| text")[0]
    for word, reader in (
        ("SIZE", parse_bytes),
        ("TIME", parse_duration),
        ("bandwidth", parse_bandwidth),
    ):
        for row in re.findall(rf"^\| {word} \| ([^|]+) \|", table, re.M):
            for text in re.findall(r"`([^`]+)`", row):
                assert reader(text) > 0


@pytest.mark.parametrize(("command", "shown"), list(commands(PAGE)))
def test_commands_print_what_the_page_shows(command: str, shown: list[str]) -> None:
    done = cli(*shlex.split(command.partition(" | head")[0])[1:])
    said = [*done.err.splitlines(), *done.out.splitlines()]
    assert said[: len(shown)] == shown
