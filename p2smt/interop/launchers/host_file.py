"""Hosts as people give them: a file with one on a line, or a host list."""

from __future__ import annotations

import os
from pathlib import Path

from p2smt.cluster.nodes.hostlist import MAX_HOSTS, parse_hostlist
from p2smt.errors import InputError

MAX_BYTES = 2**24
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
    source = f"hosts file {path[:200]!r}"
    names: list[str] = []
    for number, line in enumerate(_text(path, source).splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if content:
            try:
                names += parse_hostlist(content)
            except InputError as error:
                where = f"{source}: line {number}: {error.given}"
                raise InputError(where, error.rule, error.remedy) from None
        if len(names) > MAX_HOSTS:
            raise InputError(source, f"names more than {MAX_HOSTS} hosts", _REMEDY)
    if not names:
        raise InputError(source, "names no host", _REMEDY)
    return tuple(names)


def _text(path: str, source: str) -> str:
    try:
        if not Path(path).is_file():
            kind = "is not a regular file" if Path(path).exists() else "does not exist"
            raise InputError(source, kind, _REMEDY)
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise InputError(source, f"is larger than {MAX_BYTES} bytes", _REMEDY)
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(source, f"is not UTF-8 text (byte {error.start})", _REMEDY) from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(source, f"cannot be read ({reason})", _REMEDY) from None
