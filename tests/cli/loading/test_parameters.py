"""How groups of options become a command's own: in which order, with which words and values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import pytest
import typer
from typer.testing import CliRunner

from p2smt.cli.parameters import Text, Texts, argument, flag, opened, option, part, required

Seen = list[tuple[object, ...]]
Started = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Inner:
    """What is put into a group beside its own."""

    depth: Text = option("N", "How deep.", "-d")
    rules: Texts = option("RULE", "Which rules.", "--rule")


@dataclass(frozen=True)
class Whole(Inner):
    """A group of everything."""

    rate_limit: str = option("R", "How fast.", default="5")
    quick: bool = flag("At once.")


SEEN: Seen = []
BESIDE = ("quiet", "no_config")


@opened
def everything(
    *,
    name: str = argument("NAME", "Whose.", needed=True),
    first: Text = option("A", "Before."),
    group: Whole,
    to: str = required("PLACE", "Where to."),
    last: bool = flag("After.", "--at-last"),
) -> int:
    """Do it."""
    SEEN.append((name, first, group, to, last))
    return 0


@opened
def some(
    *,
    group: Whole = part("quick", "rate_limit", metavar="M", rate_limit="7"),
    first: Text = option("A", "Before."),
) -> int:
    """Do some."""
    SEEN.append((group, first))
    return 0


def said(command: Callable[..., int], *words: str) -> str:
    """What typer prints for a command with these words; or that they are refused."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(command)
    SEEN.clear()
    found = CliRunner().invoke(app, words)
    return found.output if found.exit_code == 0 else f"exit {found.exit_code}"


def test_options_stand_in_the_place_of_their_group() -> None:
    names = ["name", "first", "depth", "rules", "rate_limit", "quick", "to", "last", *BESIDE]
    assert list(inspect.signature(everything).parameters) == names
    lines = [line.split() for line in said(everything, "--help").splitlines()]
    spelt = [words[1] if words[0] == "-d," else words[0] for words in lines if words]
    order = ["--first", "--depth", "--rule", "--rate-limit", "--quick", "--to", "--at-last"]
    assert [word for word in spelt if word in order] == order
    assert everything.__doc__ == "Do it."


def test_what_is_not_given_has_the_values_of_the_group() -> None:
    assert said(everything, "me", "--to", "there") == ""
    assert [("me", None, Whole(), "there", False)] == SEEN
    assert Whole() == Whole(None, None, "5", False)


@pytest.mark.parametrize("order", [*permutations(range(4))][::5], ids=str)
def test_what_is_given_gets_into_its_group(order: tuple[int, ...]) -> None:
    words = [("-d", "3"), ("--rule", "a", "--rule", "b"), ("--rate-limit", "9"), ("--quick",)]
    given = [word for at in order for word in words[at]]
    assert said(everything, "me", *given, "--to", "there", "--at-last", "--first", "1") == ""
    assert [("me", "1", Whole("3", ["a", "b"], "9", True), "there", True)] == SEEN


@pytest.mark.parametrize("words", [("me",), ("--to", "there"), ("me", "--to", "x", "--last")])
def test_what_is_needed_must_be_given(words: tuple[str, ...]) -> None:
    assert said(everything, *words) == "exit 2"
    assert SEEN == []


def test_a_command_may_have_a_part_of_a_group_with_words_and_values_of_its_own() -> None:
    assert list(inspect.signature(some).parameters) == ["quick", "rate_limit", "first", *BESIDE]
    assert "--rate-limit M" in said(some, "--help")
    assert said(some) == ""
    assert [(Whole(rate_limit="7"), None)] == SEEN
    assert said(some, "--quick", "--rate-limit", "1", "--first", "x") == ""
    assert [(Whole(rate_limit="1", quick=True), "x")] == SEEN
    assert said(some, "--depth", "3") == "exit 2"


def test_a_part_that_the_group_lacks_is_a_mistake_of_the_code() -> None:
    def wrong(*, group: Whole = part("width")) -> int:
        return len(str(group))

    with pytest.raises(KeyError):
        opened(wrong)


def test_a_command_is_called_from_python_as_from_a_shell() -> None:
    SEEN.clear()
    assert everything(name="me", to="there", depth="2") == 0
    assert [("me", None, Whole("2"), "there", False)] == SEEN
    with pytest.raises(TypeError):
        everything(name="me", to="there", width="2")
