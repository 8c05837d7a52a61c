"""The page of ``p2smt`` alone, the help, its examples, and systems that are not POSIX."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from p2smt.cli.app import command_named
from p2smt.cli.guide.commands import COMMANDS, MOST_SUMMARY, PATHS, SUMMARIES, emphasized
from p2smt.cli.guide.headings import EXAMPLES, HEADINGS, OTHERWISE
from p2smt.cli.guide.places import found_command
from tests.cli.tools import cli, process
from tests.interpreter import assert_silent


def leaves() -> Iterator[tuple[str, Any]]:
    """Every command that has no others, by what is typed for it."""
    for name in COMMANDS:
        command = command_named(name)
        inner = getattr(command, "commands", None)
        yield from (
            [(name, command)]
            if inner is None
            else ((f"{name} {part}", one) for part, one in inner.items())
        )


def test_the_first_page_has_a_command_for_each_way_in() -> None:
    shown = cli()
    assert (shown.code, shown.err) == (0, "")
    assert all(whose in shown.out for whose in PATHS)
    assert max(map(len, shown.out.splitlines())) <= 80


@pytest.mark.parametrize("whose", PATHS)
def test_the_first_commands_work_as_printed(whose: str) -> None:
    page = cli().out.partition(f"{whose}:\n")[2].partition("\n\n")[0]
    program, *words = shlex.split(page.replace("\\\n", " "))
    done = cli(*words)
    assert program == "p2smt"
    assert done.code in {0, 1}, done.err
    assert done.out


def test_pages_load_nothing_that_reads_options() -> None:
    for words in ([], ["--help"], ["-h"]):
        assert_silent(
            "import io, sys\n"
            "from contextlib import redirect_stdout\n"
            "from p2smt.cli import run\n"
            "with redirect_stdout(io.StringIO()):\n"
            f"    assert run({words}) == 0\n"
            "assert not {'typer', 'rich', 'numpy', 'p2smt.cli.app'} & {*sys.modules}\n"
        )


def test_summaries_are_whole() -> None:
    shown = cli("--help").out
    for name, text in SUMMARIES.items():
        assert len(text) < MOST_SUMMARY, name
        assert re.search(rf"^  {name} +{re.escape(text)}$", shown, re.M), name
    assert "..." not in cli("topology", "-h").out.partition("Commands:")[2]
    assert "-h, --help" in shown


@pytest.mark.parametrize(("name", "command"), [*leaves()], ids=lambda one: str(one)[:20])
def test_every_option_has_a_heading(name: str, command: Any) -> None:
    options = [one for one in command.params if one.param_type_name == "option"]
    assert not [one.opts for one in options if one.rich_help_panel not in HEADINGS], name
    shown = cli(*name.split(), "-h")
    assert shown.code == 0
    assert "Options:" not in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "\033" not in shown.out


def test_headings_are_of_options_that_exist() -> None:
    known = {option for _, one in leaves() for param in one.params for option in param.opts}
    named = {option for options in HEADINGS.values() for option in options}
    assert named - known == {"--help"}
    assert {option for _, option in OTHERWISE} <= known


def test_help_is_as_wide_as_the_terminal() -> None:
    widths = [
        max(map(len, process("plan", "-h", COLUMNS=str(columns)).out.splitlines()))
        for columns in (80, 100)
    ]
    assert widths[0] <= 80 < widths[1] <= 100


def test_every_command_has_two_examples() -> None:
    assert {name for name, _ in leaves()} == {*EXAMPLES}
    assert {len(examples) for examples in EXAMPLES.values()} == {2}


@pytest.mark.parametrize(("name", "example"), [(k, e) for k, es in EXAMPLES.items() for e in es])
def test_examples_are_read(name: str, example: str) -> None:
    program, *words = shlex.split(example)
    command, rest = found_command(words)
    assert program == "p2smt"
    assert " ".join(words[: len(words) - len(rest)]) == name
    command.make_context(name, list(rest))


@pytest.mark.parametrize(
    "words",
    [
        "solve -t dgx-a100:2 --axes dp=2,tp=8 --reduce dp=1MiB",
        "plan -m llama-3-8b -t dgx-h100:1 --global-batch 8 --seq 8192 --max-cp 1",
        "verify -t dgx-a100:2 --program 'all-reduce inside root'",
    ],
)
def test_answers_need_no_module_of_posix_alone(words: str) -> None:
    assert_silent(
        "import io, sys\n"
        "from contextlib import redirect_stdout\n"
        "for name in ('fcntl', 'resource', 'pwd', 'grp', 'termios'):\n"
        "    sys.modules[name] = None\n"
        "from p2smt.cli import run\n"
        "with redirect_stdout(io.StringIO()):\n"
        f"    code = run({shlex.split(words)!r})\n"
        "assert code == 0, code\n"
    )


def test_pages_of_the_documentation() -> None:
    assert "planning" in cli("docs").out
    assert cli("docs", "planning").out.startswith("# ")
    refused = cli("docs", "plannin")
    assert refused.code == 2
    assert "did you mean 'planning'" in refused.err


@pytest.mark.parametrize(
    ("terminal", "environment", "bold"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_headings_are_bold_on_terminals_alone(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environment: dict[str, str], bold: bool
) -> None:
    for name, value in {"TERM": "xterm", "NO_COLOR": "", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    assert ("\033[1m" in emphasized("Problem")) == bold
