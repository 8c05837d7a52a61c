"""Files of p2smt's own that are given where another is wanted: what they are, and what takes them.

Asked where a command line has failed alone: a good one pays nothing for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2smt.cli.guide.defaults import NEVER
from p2smt.cli.guide.places import PlacedWord, found_command, is_option, places
from p2smt.errors import InputError

MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A kind of file: what takes it as an argument, which options do, and what to type."""

    title: str
    commands: frozenset[str]
    options: frozenset[str]
    remedy: str

    def is_for(self, command: str, word: PlacedWord) -> bool:
        """Whether it may stand there; what writes a file takes any name."""
        one = word.parameter
        if one is None or not is_option(one):
            return one is not None and command in self.commands
        return not self.options.union(NEVER).isdisjoint(one.opts)


def _kind(title: str, commands: str, options: str, remedy: str) -> OwnFile:
    return OwnFile(title, frozenset(commands.split(", ")), frozenset(options.split()), remedy)


_ANSWERS = "--compare --launched --measured --model --hosts"
PLAN = _kind(
    "a plan",
    "verify, run, cost, compare, show, report, export, order, convert, estimate",
    _ANSWERS,
    "p2smt show {0}, p2smt verify {0}, p2smt run {0} or p2smt export {0} take it",
)
REDISTRIBUTION = _kind(
    "a redistribution",
    "verify, run, cost, show, report, export, convert",
    "",
    "p2smt show {0}, p2smt verify {0} or p2smt run {0} take it",
)
TRANSFER = _kind(
    "a transfer",
    "verify, run, show, report",
    "",
    "p2smt show {0}, p2smt verify {0} or p2smt run {0} take it",
)
SCHEDULE = _kind(
    "a schedule",
    "verify, convert, run, cost, show, report, export",
    "",
    "p2smt verify {0}, p2smt cost {0}, p2smt run {0} or p2smt convert {0} take it",
)
CERTIFICATE = _kind("a certificate", "verify, cost, show, report", "", "p2smt verify {0} takes it")
LEAST_SET = _kind("a least sufficient set", "verify, show, report", "", "p2smt verify {0} takes it")
JOURNAL = _kind(
    "a journal", "verify", "--journal", "p2smt verify {0} takes it, and --journal {0} goes on"
)
ANSWER = _kind(
    "what a command printed with --json",
    "show, report, compare, estimate, cost, export, order",
    _ANSWERS,
    "p2smt show {0} or p2smt report {0} take it; -o writes a plan",
)
TOPOLOGY = _kind(
    "a topology",
    "topology import, topology export, topology fabric, topology show, topology check",
    "--topology --fabric --node",
    "give it as --topology {0}, or to p2smt topology show {0}",
)
FABRIC = _kind(
    "a fabric",
    "topology fabric",
    "--fabric",
    "give it as --fabric {0}; --topology takes a file with levels (p2smt docs topology)",
)
PAGE_PART = '<script type="application/json" id="data">'
PAGE = _kind("a page that p2smt report made", "", "", "give the file that it shows")


def kind_of(path: str) -> OwnFile | None:
    """What a file is; None: none of p2smt's own, or it cannot be read."""
    from p2smt.interop.schedule_files import format_of
    from p2smt.parallel_search.journal import is_journal

    if "\0" in path or not os.path.isfile(path) or os.path.getsize(path) > MAX_BYTES:
        return None
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return None
    if text.startswith("<!doctype html>") and PAGE_PART in text:
        return PAGE
    if format_of(text) is not None:
        return SCHEDULE if "<algo" in text or not text.lstrip().startswith("<") else None
    if text.lstrip()[:1] != "{":
        keys = f"\n{text}"
        links = "\nranks:" in keys and "\nlinks:" in keys
        return TOPOLOGY if "\nlevels:" in keys else FABRIC if links else None
    if is_journal(path):
        return JOURNAL
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _json_kind(data)


def _json_kind(data: Mapping[str, Any]) -> OwnFile | None:
    from p2smt.plans.crossings import least_set_file as least_set
    from p2smt.plans.file import REDISTRIBUTION as MOVED
    from p2smt.plans.file import TRANSFER as SENT
    from p2smt.synthesis.certificate import certificate, sizes

    if "schema_version" not in data:
        return None
    if not {"ranks", "matrix"}.isdisjoint(data):
        return PLAN
    if "kind" not in data:
        return ANSWER
    named = {
        MOVED: REDISTRIBUTION,
        SENT: TRANSFER,
        certificate.KIND: CERTIFICATE,
        sizes.KIND: CERTIFICATE,
        least_set.KIND: LEAST_SET,
    }
    return named.get(str(data["kind"]))


def misplaced(arguments: Sequence[str]) -> InputError | None:
    """What to say of the first file that is p2smt's own and given where it is not taken."""
    command, rest = found_command(arguments)
    if command is None or hasattr(command, "commands"):
        return None
    name = " ".join(arguments[: len(arguments) - len(rest)])
    for word in places(command, rest):
        kind = kind_of(word.value)
        if kind is not None and not kind.is_for(name, word):
            return _told(name, word, kind)
    return None


def _told(command: str, word: PlacedWord, kind: OwnFile) -> InputError:
    """The error: what was given where, what it is, what takes it."""
    one, shown = word.parameter, word.value[:200]
    where = f"{max(one.opts, key=len)} of p2smt" if one and is_option(one) else "p2smt"
    rule = f"is {kind.title}, which {where} {command} does not take"
    return InputError(f"file {shown!r}", rule, kind.remedy.format(shown))
