"""Every option of every command: what happens when it is given twice, and how help names it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from p2smt.cli.app import GROUP, app
from p2smt.cli.guide.commands import COMMANDS
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
PATHS = list(dict.fromkeys(path for path, _ in EVERY))


def test_every_command_is_looked_at() -> None:
    assert {*COMMANDS} - {GROUP} == {path[0] for path in PATHS if len(path) == 1}
    assert {("topology", "show"), ("topology", "import")} <= {*PATHS}
    assert {"--topology", "--length", "--output"} <= {n for _, o in ONE_VALUE for n in o.opts}


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_option_of_one_value_is_refused_twice(path: tuple[str, ...]) -> None:
    for option in (one for of, one in ONE_VALUE if of == path):
        for first, second in product(option.opts, repeat=2):
            outcome = cli(*path, first, "one", second, "two")
            assert_one_error(outcome)
            spelt = "/".join(sorted(option.opts, key=len, reverse=True))
            assert f"{spelt} 'one' and 'two': takes one value; give the option once" in outcome.err


def test_the_same_value_twice_is_refused_too() -> None:
    outcome = cli("placements", "--levels", "4,16", "--axes", "4,16", "--seed=1", "--seed", "1")
    assert_one_error(outcome)
    assert "--seed '1' and '1'" in outcome.err


def test_flags_and_lists_may_be_repeated() -> None:
    every = ("placements", "--levels", "4,16", "--axes", "4,16")
    rules = ("--require", "a1 within l1", "--require", "a2 across l1")
    assert cli(*every, "--json", "--json").code == 0
    assert cli(*every, *rules).code == 0


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_names_every_parameter_and_what_its_value_is(path: tuple[str, ...]) -> None:
    out = cli(*path, "--help").out
    assert not any(word in out for word in ("<str>", "list["))
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "[[" not in lines[0]
    text = "".join(out.split())  # lines are broken at hyphens, too
    for parameter in (one for of, one in EVERY if of == path):
        flag = getattr(parameter, "is_flag", False)
        names = sorted(parameter.opts, key=len) if isinstance(parameter, TyperOption) else []
        head = " ".join([", ".join(names), *([] if flag else [str(parameter.metavar)])]).strip()
        assert flag or parameter.metavar
        assert sum(line == head or line.startswith(f"{head} ") for line in lines) == 1, head
        assert parameter.help, head
        assert "".join(parameter.help.split()) in text, head
