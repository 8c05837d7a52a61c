"""What is printed at once: commands in a row, the first page, ``--help``, scripts for shells.

All of it is text: no command, and nothing that reads options, is loaded for it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from textwrap import wrap
from types import MappingProxyType

WIDEST = 120
"""Characters of a line of help, however wide the terminal is: longer ones are hard to read."""
_NARROWEST = 40
MOST_SUMMARY = 60
"""A summary is shorter: beside the longest name it fits into 80 columns, whole."""

KINDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Train a model": {
            "plan": "Find the fastest strategy and placement to train a model.",
            "estimate": "Time and memory of one training run, by their parts.",
            "models": "The models that are known by name.",
            "export": "A plan as files for launchers, frameworks or libraries.",
            "order": "Order the hosts of a job for a plan.",
        },
        "Place axes on a cluster": {
            "solve": "The best placement and programs, with a proof.",
            "compare": "Rank orders, or two answers, side by side.",
            "placements": "Every placement of axes on a cluster, each once.",
            "programs": "Every valid reduction program, or the best ones.",
            "cost": "The predicted time of requests, programs and plans.",
            "crossings": "Which program is best, for which latencies and sizes.",
        },
        "Write or check a collective": {
            "verify": "Check a schedule, plan, program, journal or tuner file.",
            "synthesize": "Find a schedule for a fabric, or prove there is none.",
            "convert": "Write a schedule, or a plan's groups, in another format.",
            "classics": "The classic algorithms, listed or written as schedules.",
        },
        "Reshard an array": {
            "redistribute": "The fastest steps from one sharding to another.",
            "transfer": "A model's tensors from one mesh to another, with a bound.",
        },
        "Clusters, and running on them": {
            "topology": "Presets and topology files; make them of what tools print.",
            "run": "Run a plan, schedule or transfer on real ranks, checked.",
            "calibrate": "Fit a topology, or efficiencies, to measured times.",
        },
        "Hand an answer on": {
            "report": "One page of a plan, a schedule or two answers.",
            "show": "The same in the terminal.",
        },
        "Reference": {
            "docs": "The pages of the documentation, listed or shown.",
            "schema": "The JSON Schemas of files, and of what --json prints.",
        },
    }
)
"""Commands by what they are for, in the order of ``p2smt --help``, each in a line."""
SUMMARIES: Mapping[str, str] = MappingProxyType(
    {name: text for rows in KINDS.values() for name, text in rows.items()}
)
COMMANDS = tuple(SUMMARIES)

PATHS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "I train a model": (
            "p2smt plan -m llama-3-70b -t dgx-h100:8 --global-batch 128 --seq 8192",
            "--zero 0,1",
        ),
        "I write or check a collective": (
            "p2smt verify -t dgx-a100:2 --program",
            "'reduce-scatter inside node; all-reduce inside root; all-gather inside node'",
        ),
        "I reshard an array": (
            "p2smt redistribute -t dgx-h100:2 --mesh dp=2,tp=8 --shape 128000,8192",
            "--dtype bf16 --from 'S(dp,tp),R' --to 'R,S(dp,tp)'",
        ),
        "I run MPI jobs": (
            "p2smt solve -t azure-ndv2:4 --library openmpi-5 --axes dp=32 --reduce dp=64MiB",
        ),
    }
)
"""What one may come for, and the words of a first command."""
_OPTIONS = {
    "-h, --help": "Show this page, or that of a command.",
    "--version": "Show the version.",
    "--show-completion bash|zsh": "A script that completes words in that shell.",
}
PURPOSE = "Find, prove and cost parallelism placements and collective programs."
EXIT_CODES = (
    "Exit codes: 0 optimal, complete or verified; 1 refuted; 2 bad input; 3 not settled (a limit "
    "was reached); 4 infeasible; 5 a backend is missing; 6 execution failed; 70 an error of p2smt "
    "itself; 130 interrupted; 143 terminated."
)


def shown_at_once(arguments: Sequence[str]) -> str | None:
    """What to print where no command is asked for; None: the arguments ask for one."""
    match list(arguments):
        case []:
            return first_page()
        case ["-h" | "--help"]:
            return root_help()
        case ["--show-completion", *shells]:
            return completion_script(shells)
    return None


def first_page() -> str:
    """The three ways in, with a command each."""
    lines = [PURPOSE, ""]
    for whose, parts in PATHS.items():
        lines += [heading(whose), *command_lines(parts), ""]
    return "\n".join([*lines, "All commands: p2smt --help.  Pages to read: p2smt docs."])


def command_lines(parts: Sequence[str], indent: str = "  ") -> list[str]:
    """A command over several lines, as a shell reads it."""
    first, *others = parts
    lines = [indent + first, *(f"{indent}  {part}" for part in others)]
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def root_help() -> str:
    """``p2smt --help``."""
    lines = ["Usage: p2smt [OPTIONS] COMMAND [ARGS]...", "", *_wrapped(PURPOSE)]
    for kind, rows in KINDS.items():
        lines += ["", heading(kind), *_rows(rows, max(map(len, COMMANDS)))]
    lines += ["", heading("Options"), *_rows(_OPTIONS, max(map(len, _OPTIONS)))]
    more = "Results go to stdout, progress and errors to stderr.  " + EXIT_CODES
    return "\n".join([*lines, "", *_wrapped(more)])


def _rows(rows: Mapping[str, str], name_width: int) -> list[str]:
    """Names and what they are, side by side; what does not fit beside a name stands below it."""
    lines, inner = [], " " * (name_width + 4)
    for name, text in rows.items():
        first, *others = wrap(text, max(text_width() - len(inner), _NARROWEST // 2))
        lines += [f"  {name:<{name_width}}  {first}", *(inner + line for line in others)]
    return lines


def _wrapped(text: str) -> list[str]:
    indent = "  "
    return wrap(text, text_width(), initial_indent=indent, subsequent_indent=indent)


def text_width() -> int:
    """Characters of a line: two less than the terminal has (80, where there is none)."""
    return max(min(shutil.get_terminal_size().columns, WIDEST) - 2, _NARROWEST - 2)


def heading(text: str) -> str:
    """A heading, bold on a terminal."""
    return f"{emphasized(text)}:"


def emphasized(text: str) -> str:
    """The text in bold on a terminal that shows it, unless NO_COLOR says otherwise."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain or not sys.stdout.isatty() else f"\033[1m{text}\033[0m"


# What shells read to complete words: they ask p2smt, by an environment variable.
# The line up to the cursor is given as it is typed.  A word that ends in "=" waits for its value.
_BASH = """\
_p2smt_completion() {
    local IFS=$'\\n'
    COMPREPLY=($(_P2SMT_COMPLETE=bash COMP_LINE="${COMP_LINE:0:COMP_POINT}" \\
        COMP_WORDBREAKS="$COMP_WORDBREAKS" "$1" 2> /dev/null))
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
    return 0
}
complete -o default -F _p2smt_completion p2smt
"""
_ZSH = """\
#compdef p2smt
_p2smt_completion() {
    local -a found
    found=("${(@f)$(_P2SMT_COMPLETE=zsh COMP_LINE="${(j: :)words[1,CURRENT]}" $words[1] \\
        2> /dev/null)}")
    if [[ -z ${found[1]} ]]; then
        _files
    elif [[ ${found[1]%%:*} == *= ]]; then
        _describe -V p2smt found -S ''
    else
        _describe -V p2smt found
    fi
}
compdef _p2smt_completion p2smt
"""
SCRIPTS: Mapping[str, str] = MappingProxyType({"bash": _BASH, "zsh": _ZSH})


def completion_script(shells: Sequence[str]) -> str:
    """The script of the one shell that is named.

    Raises:
        InputError: there is none, or none for it.
    """
    from p2smt.errors import InputError

    named = " ".join(shells)
    if named not in SCRIPTS:
        rule = f"takes one of {', '.join(SCRIPTS)}"
        remedy = 'write eval "$(p2smt --show-completion bash)" into ~/.bashrc'
        raise InputError(f"--show-completion {named[:40]}".rstrip(), rule, remedy)
    return SCRIPTS[named].rstrip("\n")
