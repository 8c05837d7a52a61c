"""Lines of ``KEY=VALUE`` words, as Slurm's topology.conf has them and ``scontrol`` prints them.

A ``#`` begins a comment, a backslash at the end joins the next line, case does not matter in keys
(topology.conf(5), slurm.schedmd.com).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from p2smt.cluster.nodes.hostlist import MAX_HOSTS, parse_hostlist
from p2smt.errors import InputError

MAX_CHARACTERS = 16 * 1024 * 1024
"""Of a text that Slurm writes or reads: 10,000 nodes take a tenth of a megabyte."""
_INCLUDE = re.compile(r"include\s", re.IGNORECASE)
_WORD = re.compile(r"([A-Za-z]+)=(\"[^\"]*\"|\S*)")


@dataclass(frozen=True, slots=True)
class SlurmLine:
    """Words of a line in order by lower-case key, and where it stands."""

    words: Mapping[str, str]
    where: str
    number: int

    def only(self, known: tuple[str, ...]) -> None:
        """Refuses keys that are none of these.

        Raises:
            InputError: there is one.
        """
        for key in self.words:
            if key not in known:
                rule = f"has the key {key[:40]!r}: none of {', '.join(known)}"
                raise InputError(self.where, rule, "keep what describes switches or blocks")


def lines_of(text: str, source: str) -> Iterator[SlurmLine]:
    """The lines of a text that hold something.

    Raises:
        InputError: the text is too long, or a line is not made of words KEY=VALUE, each key once.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(source, f"is longer than {MAX_CHARACTERS} characters", "shorten it")
    for number, line in _joined(text):
        bare = line.partition("#")[0].strip()
        if bare:
            where = f"{source}, line {number}"
            yield SlurmLine(_words(bare, where), where, number)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines with those that they go on with, by the number of the first."""
    start, parts = 1, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        if not parts:
            start = number
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        yield start, "".join([*parts, line])
        parts = []
    if parts:
        yield start, "".join(parts)


def _words(line: str, where: str) -> dict[str, str]:
    if _INCLUDE.match(line):
        rule = f"includes another file ({line[:60]!r}), and one file is read"
        raise InputError(where, rule, "put the lines of that file in its place")
    found: dict[str, str] = {}
    at = 0
    while at < len(line):
        word = _WORD.match(line, at)
        if word is None:
            rule = f"has {line[at : at + 40]!r} where a word KEY=VALUE must stand"
            raise InputError(where, rule, "write it like SwitchName=s0 Nodes=n[1-8]")
        key = word[1].lower()
        if key in found:
            raise InputError(where, f"has {word[1][:40]} twice", "keep one of them")
        found[key] = word[2].strip('"')
        at = word.end()
        while at < len(line) and line[at].isspace():
            at += 1
    return found


class HostNames:
    """Reads the host lists of one file, which stand for a bounded number of names together."""

    def __init__(self) -> None:
        self.count = 0

    def named(self, text: str, where: str) -> tuple[str, ...]:
        """The names that a host list stands for; none for an empty text.

        Raises:
            InputError: it is no host list, or the file names too many by now.
        """
        if not text or text == "(null)":
            return ()
        try:
            found = parse_hostlist(text)
        except InputError as error:
            raise InputError(f"{where}: {error.given}", error.rule, error.remedy) from None
        self.count += len(found)
        if self.count > MAX_HOSTS:
            rule = f"names more than {MAX_HOSTS} hosts and switches by here"
            raise InputError(where, rule, "name those of one cluster")
        return found
