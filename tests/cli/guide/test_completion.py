"""What a shell completes: words by themselves, and in real shells with a terminal."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from p2smt.cli.guide.commands import COMMANDS
from p2smt.cli.guide.completion import candidates, typed_words
from p2smt.cluster.file import load_topology, preset_names
from p2smt.training.model_names import model_names
from tests.cli.tools import cli, process

LINES = (
    ("p2smt plan --model gpt-3-1", "plan --model gpt-3-175b"),
    ("p2smt redistr", "redistribute"),
    ("p2smt topology sho", "topology show"),
    ("p2smt solve -t dgx-h100:4 --max-steps-at no", "solve -t dgx-h100:4 --max-steps-at node="),
    ("p2smt solve --topology gb300", "solve --topology gb300-nvl72"),
    ("p2smt solve --sensi", "solve --sensitivity"),
    ("p2smt verify only-fi", "verify only-file.xml"),
)
"""What is typed, and what stands there after a tab."""


def words(line: str) -> list[str]:
    typed = typed_words(line)
    return [word for word, _ in candidates(typed.before, typed.last, quoted=typed.quoted)]


def test_commands_are_completed() -> None:
    assert words("p2smt ") == list(COMMANDS)
    assert words("p2smt cr") == ["crossings"]
    assert words("p2smt solve plan") == []
    assert words("p2smt topology ") == [
        *["import", "detect", "export", "fabric", "list", "show", "check"]
    ]
    assert words("p2smt nothing ") == []


@pytest.mark.parametrize("line", ["solve -t ", "plan --topology ", "topology show "])
def test_presets_are_completed(line: str) -> None:
    assert words(f"p2smt {line}") == list(preset_names())


@pytest.mark.parametrize("line", ["plan -m ", "estimate --model ", "models "])
def test_models_are_completed(line: str) -> None:
    assert words(f"p2smt {line}") == list(model_names())


def test_levels_are_those_of_the_topology() -> None:
    for name in ("dgx-h100:4", "gb200-nvl72:2", "dgx-a100"):
        levels = load_topology(name).names
        assert words(f"p2smt solve -t {name} --use ") == [f"{level}=" for level in levels]
        quoted = words(f"p2smt solve --topology={name} --require 'tp within ")
        assert quoted == [f"tp within {level}" for level in levels]
    assert words("p2smt solve --use ") == []
    assert words("p2smt solve -t nothing --use ") == []


def test_a_word_with_a_space_is_for_quotes() -> None:
    assert words("p2smt solve -t dgx-h100 --require 'tp within no") == ["tp within node"]
    assert words("p2smt solve -t dgx-h100 --require tp\\ within\\ no") == []


def test_an_option_is_offered_until_it_is_given() -> None:
    assert "--model" in words("p2smt plan --m")
    assert "--model" not in words("p2smt plan -m llama-3-8b --m")
    assert "--require" in words("p2smt plan --require 'tp within node' --r")  # may be repeated
    assert "--json" in words("p2smt models --")
    assert words("p2smt plan --model=gpt-3-1") == ["--model=gpt-3-175b"]


def test_other_values_are_left_to_the_shell() -> None:
    assert words("p2smt plan -o ") == []
    assert words("p2smt verify ") == []


@pytest.mark.parametrize("line", ["", "p2smt", "p2smt 'a", 'p2smt "a', "p2smt \\", "p2smt a\\"])
def test_any_line_is_read(line: str) -> None:
    assert isinstance(words(line), list)


def test_a_shell_asks_by_the_environment() -> None:
    line = "p2smt solve -t dgx-h100:4 --use=gp"
    bash = process(_P2SMT_COMPLETE="bash", COMP_LINE=line, COMP_WORDBREAKS=" =:")
    assert (bash.code, bash.out, bash.err) == (0, "gpu=\n", "")
    zsh = process(_P2SMT_COMPLETE="zsh", COMP_LINE="p2smt mode")
    assert zsh.out == "models:The models that are known by name.\n"


def test_a_shell_that_is_not_known_is_refused() -> None:
    for words_given in ((), ("fish",), ("bash", "zsh")):
        refused = cli("--show-completion", *words_given)
        assert refused.code == 2
        assert "takes one of bash, zsh" in refused.err
        assert refused.err.count("\n") == 1


# In shells.


def typed_into(shell: Sequence[str], lines: Sequence[str], folder: Path) -> str:
    """What a shell with a terminal shows for lines of keys."""
    terminal, its_end = pty.openpty()
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "TERM": "dumb"}
    running = subprocess.Popen(
        shell,
        cwd=folder,
        env=environment,
        start_new_session=True,
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
    )
    os.close(its_end)
    shown = b""
    for number, line in enumerate(lines):
        os.write(terminal, f"{line}\necho end-of-$(({number}))\n".encode())
        while f"\nend-of-{number}\r".encode() not in shown:
            try:
                shown += os.read(terminal, 65536)
            except OSError as error:  # the shell has ended
                raise AssertionError(shown.decode()) from error
    os.write(terminal, b"exit\n")
    running.wait()
    os.close(terminal)
    return shown.decode()


def completed_by(shell: Sequence[str], setup: Sequence[str], folder: Path) -> list[str]:
    """What each of LINES becomes by a tab: the command is a program that prints its words."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "p2smt"
    asked = f'exec {sys.executable} -m p2smt.cli "$@"'
    program.write_text(
        f'#!/bin/sh\nif [ -n "$_P2SMT_COMPLETE" ] || [ "$1" = --show-completion ]; then {asked}; '
        'fi\necho "words: $*;"\n'
    )
    program.chmod(0o755)
    (folder / "only-file.xml").touch()
    lines = [*setup, *(f"{typed}\t" for typed, _ in LINES)]
    return re.findall(r"\nwords: (.*?);\r", typed_into(shell, lines, folder))


def test_bash_completes(tmp_path: Path) -> None:
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("bash is not installed")
    setup = ['eval "$(p2smt --show-completion bash)"']
    done = completed_by([shell, "--norc", "--noprofile", "-i"], setup, tmp_path)
    assert [*map(str.strip, done)] == [wanted for _, wanted in LINES]


def test_zsh_completes(tmp_path: Path) -> None:
    shell = shutil.which("zsh")
    if shell is None:
        pytest.skip("zsh is not installed")
    setup = ["autoload -Uz compinit && compinit -u -D", 'eval "$(p2smt --show-completion zsh)"']
    done = completed_by([shell, "-f", "-i"], setup, tmp_path)
    assert [*map(str.strip, done)] == [wanted for _, wanted in LINES]
