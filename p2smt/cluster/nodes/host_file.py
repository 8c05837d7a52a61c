"""Hosts as people give them: a file with one on a line, or a host list."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from p2smt.cluster.nodes.hostlist import MAX_HOSTS, parse_hostlist
from p2smt.errors import InputError
from p2smt.files.yaml_text import read_text

MAX_BYTES = 2**24
_MARK = "\ufeff"  # some editors put it before UTF-8
_REMEDY = "name a file with a host on each line"


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
    return parse_hostlist(text)


def read_hosts(path: str) -> tuple[str, ...]:
    """The hosts that a file names, in its order; empty lines, and what follows a #, are skipped.

    Raises:
        InputError: the file cannot be read, names no host or too many, or a line is no host list.
    """
    text = read_text(path, "hosts file", MAX_BYTES).removeprefix(_MARK)
    source = f"hosts file {path[:200]!r}"
    names = hosts_in(content_lines(text), source)
    if not names:
        raise InputError(source, "names no host", _REMEDY)
    return names


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
            names += parse_hostlist(line)
        except InputError as error:
            where = f"{source}: line {number}: {error.given}"
            raise InputError(where, error.rule, error.remedy) from None
        if len(names) > MAX_HOSTS:
            raise InputError(source, f"names more than {MAX_HOSTS} hosts", _REMEDY)
    return tuple(names)
