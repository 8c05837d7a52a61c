"""Names of hosts as text: ``node[01-05,09],login1``, as Slurm writes and reads them.

Brackets hold numbers and ranges; their zeros are kept, and several brackets multiply.  How many
names a text stands for is counted before they are written out.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, product

from p2smt.errors import InputError
from p2smt.files.yaml_text import read_text

MAX_HOSTS = 2**20
"""Most names that one text may stand for."""
MAX_TEXT = 2**24
MAX_NAME = 255
"""Longest name of a host, as in the domain name system."""
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_LAST_NUMBER = re.compile(r"(.*?)(\d{1,15})(\D*)")
_REMEDY = "write it like node[01-05,09]"


def parse_hostlist(text: str) -> tuple[str, ...]:
    """The hosts that a text names, in its order; names may repeat.

    Raises:
        InputError: brackets that do not close, ranges that fall, odd characters, or too many names.
    """
    if len(text) > MAX_TEXT:
        raise InputError("host list", f"is longer than {MAX_TEXT} characters")
    entries = [entry.strip() for entry in _split(text)]
    if any(not entry for entry in entries):
        raise InputError(f"host list {_shown(text)}", "has an empty name", _REMEDY)
    parts = [_parts(entry, text) for entry in entries]
    if any(sum(map(_length, found)) > MAX_NAME for found in parts):
        raise InputError(f"host list {_shown(text)}", f"a name is longer than {MAX_NAME}")
    if sum(math.prod(map(_count, found)) for found in parts) > MAX_HOSTS:
        rule = f"names more than {MAX_HOSTS} hosts"
        raise InputError(f"host list {_shown(text)}", rule, "name those of one cluster")
    return tuple(name for found in parts for name in _names(found))


def format_hostlist(names: Sequence[str]) -> str:
    """A text that stands for these names in this order, runs of numbers in brackets.

    Raises:
        InputError: a name has characters that no host list can hold.
    """
    for name in names:
        if not _NAME.fullmatch(name):
            raise InputError(f"host {name[:80]!r}", "has characters that no host list can hold")
        if len(name) > MAX_NAME:
            raise InputError(f"host {name[:80]!r}", f"is longer than {MAX_NAME} characters")
    return ",".join(_folded(names))


_Part = str | tuple[tuple[int, int, int], ...]
"""Plain text, or the ranges of a bracket: first, last, digits."""


def _shown(text: str) -> str:
    return repr(text[:80]) if len(text) <= 80 else repr(text[:80] + "..")


def _split(text: str) -> Iterator[str]:
    """The entries between commas outside brackets."""
    depth = start = 0
    for at, character in enumerate(text):
        if character in "[]":
            depth += 1 if character == "[" else -1
            if depth not in (0, 1):
                raise InputError(f"host list {_shown(text)}", "has odd brackets", _REMEDY)
        elif character == "," and not depth:
            yield text[start:at]
            start = at + 1
    if depth:
        raise InputError(f"host list {_shown(text)}", "has a bracket that does not close", _REMEDY)
    yield text[start:]


def _parts(entry: str, text: str) -> list[_Part]:
    found: list[_Part] = []
    for piece in re.split(r"(\[[^\]]*\])", entry):
        if piece.startswith("["):
            found.append(tuple(_range(one, text) for one in piece[1:-1].split(",")))
        elif piece:
            if not _NAME.fullmatch(piece):
                rule = f"has characters that no host has ({piece[:40]!r})"
                raise InputError(f"host list {_shown(text)}", rule, _REMEDY)
            found.append(piece)
    return found


def _range(piece: str, text: str) -> tuple[int, int, int]:
    found = _RANGE.fullmatch(piece.strip())
    if found is None:
        rule = f"has {piece[:40]!r} in brackets, which is no number or range"
        raise InputError(f"host list {_shown(text)}", rule, _REMEDY)
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise InputError(f"host list {_shown(text)}", f"has the range {piece[:40]}, which falls")
    return first, last, len(found[1])


def _length(part: _Part) -> int:
    """Characters of a part, at most."""
    if isinstance(part, str):
        return len(part)
    return max(max(digits, len(str(last))) for _, last, digits in part)


def _count(part: _Part) -> int:
    return 1 if isinstance(part, str) else sum(last - first + 1 for first, last, _ in part)


def _names(parts: Iterable[_Part]) -> Iterator[str]:
    each = [(part,) if isinstance(part, str) else tuple(_numbers(part)) for part in parts]
    return map("".join, product(*each))


def _numbers(ranges: tuple[tuple[int, int, int], ...]) -> Iterator[str]:
    for first, last, digits in ranges:
        for number in range(first, last + 1):
            yield f"{number:0{digits}d}"


def _folded(names: Sequence[str]) -> Iterator[str]:
    """Entries of successive names that differ in their last number alone."""
    for (head, tail), run in groupby(map(_ends, names), key=lambda found: found[:2]):
        numbers = [digits for *_, digits in run]
        if tail is None:
            yield from (head for _ in numbers)
            continue
        ranges = list(_ranges(numbers))
        single = len(numbers) == 1
        yield f"{head}{numbers[0]}{tail}" if single else f"{head}[{','.join(ranges)}]{tail}"


def _ends(name: str) -> tuple[str, str | None, str]:
    """What stands before and after the last number of a name, and its digits.

    Without a number: the name, None and an empty text.
    """
    found = _LAST_NUMBER.fullmatch(name)
    return (name, None, "") if found is None else (found[1], found[3], found[2])


def _ranges(numbers: Sequence[str]) -> Iterator[str]:
    """Runs of numbers that follow each other when written with the digits of the first."""
    start = last = numbers[0]
    for digits in [*numbers[1:], ""]:
        if digits and digits == f"{int(last) + 1:0{len(start)}d}":
            last = digits
            continue
        yield start if start == last else f"{start}-{last}"
        start = last = digits


# Hosts as people give them: a file with one on a line, or a host list.
# Launchers' own files are read as well: ``n01 slots=8`` (Open MPI, DeepSpeed), ``n01:8`` (MPICH,
# mpirun -H), ``rank 0=n01 slot=0`` (rankfiles), ``n01 8 n02 8`` (LSF), a line for each rank (PBS),
# the lines that p2smt export writes for torchrun, and lists as variables, YAML, JSON and kubectl
# have them.


MAX_BYTES = 2**24
_MARK = "\ufeff"  # some editors put it before UTF-8
_FILE_REMEDY = "name a file with a host on each line"


def hosts_named(text: str) -> tuple[str, ...]:
    """The hosts in the file of that name, or else of a host list such as ``n[01-16]`` or ``a,b``.

    What has a directory before it is a file, whether it is there or not.

    Raises:
        InputError: it is neither, or names no host.
    """
    if os.path.exists(text) or os.sep in text:
        return read_hosts(text)
    if not text.strip():
        raise InputError("hosts", "are an empty text", "name a file, or node[01-05,09]")
    return _hosts_of(text)


def read_hosts(path: str) -> tuple[str, ...]:
    """The hosts that a file names, in its order; empty lines, and what follows a #, are skipped.

    A file that names each as often, for each of its ranks, names each once.

    Raises:
        InputError: the file cannot be read, names no host or too many, or a line is no host list.
    """
    text = read_text(path, "hosts file", MAX_BYTES).removeprefix(_MARK)
    source = f"hosts file {path[:200]!r}"
    names = hosts_in(content_lines(text), source)
    if not names:
        raise InputError(source, "names no host", _FILE_REMEDY)
    alike = len(set(Counter(names).values())) == 1
    return tuple(dict.fromkeys(names)) if alike else names


def offered_by(text: str) -> tuple[int, ...]:
    """How many ranks :func:`hosts_named` of the same text has on a host, ascending, each once.

    That is what launchers are told of it (``slots=8``, ``n01:8``, ``n01 8``), or how often its line
    is there; empty: nothing is said.
    """
    of_file = os.path.exists(text) or os.sep in text
    whole = read_text(text, "hosts file", MAX_BYTES).removeprefix(_MARK) if of_file else text
    lines = [line for _, line in content_lines(whole)]
    if told := {int(count) for line in lines for count in _OFFERED.findall(line)}:
        return tuple(sorted(told))
    often = Counter(name for line in lines for name in _hosts_of(line))
    return tuple(sorted({*often.values()} - {1}))


_OFFERED = re.compile(r"(?<![\w.=-])[\w.-]+(?::|\s+|\s+slots\s*=\s*)(\d{1,6})(?=[\s,]|$)")
_WORD = re.compile(r"[A-Za-z0-9_.:,-]+")
_SETTING = re.compile(r"[A-Za-z][\w-]*=\S*")
_COUNTED = re.compile(r"([^:]+):\d{1,6}")
_RANK = re.compile(r"rank\s+\d+\s*=\s*(\S+)(?:\s+slots?\s*=\s*\S+)?", re.IGNORECASE)
_ABOUT = re.compile(
    r"^(?:- +|(?:export\s+)?\w*(?:nodelist|hosts?)=|nodes?/)|[\"']|"
    r"(?<![\w.@-])[\w.-]+@(?=[\w.-]+(?:[\s:,]|$))",
    re.IGNORECASE,
)
"""What may stand before hosts or around them: a dash, a variable, a kind, a user, quotes."""
_TORCHRUN = re.compile(r"(\S+) torchrun (?!.*--no-python)")


def _hosts_of(line: str) -> tuple[str, ...]:
    """The hosts of a line, without what a launcher is told of each."""
    if one := _RANK.fullmatch(line) or _TORCHRUN.match(line):
        return (one[1],)
    if line[:1] + line[-1:] == "[]" and ("'" in line or '"' in line):
        line = line[1:-1]  # a list in JSON
    line = _ABOUT.sub("", re.sub(r"\s*=\s*", "=", line))
    words = [word for word in line.split() if not _SETTING.fullmatch(word)]
    if "[" in line or not words or not all(map(_WORD.fullmatch, words)):
        return parse_hostlist(line)
    if len(words) > 1:
        words = [word for word in words if not word.isdecimal()]
        if not all(any(map(str.isdecimal, word)) for word in words):
            return parse_hostlist(line)  # which refuses it: prose has words without numbers
    entries = [entry for word in words for entry in word.split(",") if entry]
    bare = (counted[1] if (counted := _COUNTED.fullmatch(one)) else one for one in entries)
    return parse_hostlist(",".join(bare))


def content_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers, without comments, empty ones left out."""
    for number, line in enumerate(text.splitlines(), start=1):
        if content := line.partition("#")[0].strip():
            yield number, content


def hosts_in(lines: Iterable[tuple[int, str]], source: str) -> tuple[str, ...]:
    """The hosts of numbered lines, each a host list.

    Raises:
        InputError: a line is none, or there are too many; names ``source`` and the line.
    """
    names: list[str] = []
    for number, line in lines:
        try:
            names += _hosts_of(line)
        except InputError as error:
            where = f"{source}: line {number}: {error.given}"
            raise InputError(where, error.rule, error.remedy) from None
        if len(names) > MAX_HOSTS:
            raise InputError(source, f"names more than {MAX_HOSTS} hosts", _FILE_REMEDY)
    return tuple(names)
