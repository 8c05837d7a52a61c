"""Restrictions on programs and algorithms as options give them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from p2smt.cli.given import CHEAPEST
from p2smt.cluster.topology import ROOT, Algorithm
from p2smt.collectives.names import Form
from p2smt.errors import InputError
from p2smt.units import parse_count


def forms(texts: Sequence[str] | None) -> frozenset[Form]:
    """Forms by name; the canonical form of a grouping counts."""
    known = {form.value: form for form in Form}
    for text in texts or []:
        if text not in known:
            raise InputError(f"form {text[:40]!r}", f"must be one of {', '.join(known)}")
    return frozenset(known[text] for text in texts or [])


def step_limits(texts: Sequence[str] | None, levels: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Limits such as ``node=1``: at most one step with groups that span several nodes."""
    found = []
    for text in texts or []:
        name, equals, count = text.partition("=")
        if not equals or name not in levels or name == ROOT:
            known = [level for level in levels if level != ROOT]
            rule = "must be LEVEL=N: at most N steps of a program whose groups cross that level"
            remedy = f"write it like {known[0]}=1; levels are {', '.join(known)}"
            raise InputError(f"--max-steps-at {text[:40]!r}", rule, remedy)
        what = f"--max-steps-at {text[:40]!r}: N"
        steps = 0 if count.strip() == "0" else parse_count(count, what, 100)
        found.append((name, steps))
    return tuple(found)


def algorithms(text: str | None) -> tuple[Algorithm, ...] | None:
    """Algorithms by name, separated by commas; None: any, as where the cheapest way is taken."""
    if text is None or text in CHEAPEST:
        return None
    known = {algorithm.value: algorithm for algorithm in Algorithm}
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known or names.count(name) > 1:
            raise InputError(
                f"algorithm {name[:40]!r}", f"must be best or some of {', '.join(known)}, once each"
            )
    return tuple(known[name] for name in names)


def writable(path: str | None) -> None:
    """Raise InputError early if a file could not be written there."""
    if path is None:
        return
    given, target = f"output {path[:200]!r}", Path(os.path.realpath(path.replace("\0", "/")))
    if not path or path.endswith(os.sep) or "\0" in path or not target.parent.is_dir():
        raise InputError(given, "is not a file in an existing folder", "give another path")
    if target.exists() and not target.is_file():
        raise InputError(given, "exists and is not a regular file", "give another path")
    if not os.access(target.parent, os.W_OK):
        raise InputError(given, "is in a folder that cannot be written", "give another path")
