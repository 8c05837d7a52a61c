"""Every option of every command: what happens when it is given twice, and how help names it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from p2smt.cli.app import app
from tests.cli.tools import assert_one_error, cli

Parameter = tuple[tuple[str, ...], TyperArgument | TyperOption]


def parameters(command: Any, path: tuple[str, ...] = ()) -> Iterator[Parameter]:
    """Every parameter of every command below one, with the words that call its command."""
    if isinstance(command, TyperGroup):
        for name, inner in command.commands.items():
            yield from parameters(inner, (*path, name))
        return
    for parameter in command.params:
        if isinstance(parameter, TyperArgument | TyperOption):
            yield path, parameter


EVERY = list(parameters(typer.main.get_command(app())))
OPTIONS = [(path, option) for path, option in EVERY if isinstance(option, TyperOption)]
ONE_VALUE = [(p, o) for p, o in OPTIONS if not (o.multiple or o.is_flag or o.count)]


def called(parameter: Parameter) -> str:
    path, option = parameter
    return " ".join([*path, *option.opts])


def test_every_command_is_looked_at() -> None:
    paths = {path for path, _ in EVERY}
    assert {("solve",), ("cost",), ("run",), ("topology", "show"), ("calibrate",)} <= paths
    assert {"--topology", "--length", "--output"} <= {n for _, o in ONE_VALUE for n in o.opts}


@pytest.mark.parametrize("parameter", ONE_VALUE, ids=called)
def test_an_option_of_one_value_is_refused_twice(parameter: Parameter) -> None:
    path, option = parameter
    for first in option.opts:
        for second in option.opts:
            outcome = cli(*path, first, "one", second, "two")
            assert_one_error(outcome)
            assert all(name in outcome.err for name in (*option.opts, "'one'", "'two'"))
            assert "give the option once" in outcome.err


def test_the_same_value_twice_is_refused_too() -> None:
    outcome = cli("placements", "--levels", "4,16", "--axes", "4,16", "--seed=1", "--seed", "1")
    assert_one_error(outcome)
    assert "--seed '1' and '1'" in outcome.err


def test_flags_and_lists_may_be_repeated() -> None:
    every = ("placements", "--levels", "4,16", "--axes", "4,16")
    rules = ("--require", "a1 within l1", "--require", "a2 across l1")
    assert cli(*every, "--json", "--json").code == 0
    assert cli(*every, *rules).code == 0


@pytest.mark.parametrize("parameter", EVERY, ids=called)
def test_help_names_what_a_value_is(parameter: Parameter) -> None:
    path, option = parameter
    if not getattr(option, "is_flag", False):
        assert option.metavar is not None
    text = cli(*path, "--help").out
    assert not any(word in text for word in ("<str>", "list["))
    assert "[[" not in text.splitlines()[0]
