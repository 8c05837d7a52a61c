"""Journals as text, and back: each line by itself, the last one perhaps torn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, assert_never

from p2smt.errors import InputError, did_you_mean
from p2smt.files.json_text import parse_json
from p2smt.files.plain import to_plain
from p2smt.files.validation import validated
from p2smt.parallel_search.journal import SIGN
from p2smt.parallel_search.journal.file_model import (
    JOURNAL_VERSION,
    LINES,
    AnyLine,
    ClosedLine,
    ContinuedLine,
    HeaderLine,
    IncumbentLine,
    SplitLine,
    WitnessPart,
)
from p2smt.parallel_search.journal.record import (
    Continuation,
    JournalEntry,
    JournalHeader,
    JournalRecord,
    JournalText,
    SplitRecord,
)
from p2smt.parallel_search.subproblem import Closure, Member, Subproblem, SubproblemVerdict

MAX_LINE_BYTES = 64 * 1024 * 1024
REMEDY = "give a file that --journal wrote"


def header_line(header: JournalHeader) -> bytes:
    """The first line of a journal, with its end."""
    data = {
        "record": "header",
        "journal_version": JOURNAL_VERSION,
        **header.asked(),
        "digest": header.digest(),
        "options": header.options,
        "versions": dict(header.versions),
    }
    return _line(data)


def record_line(record: JournalRecord, at_s: float) -> bytes:
    """A line of a journal, with its end.

    Raises:
        InputError: a closure contradicts itself, so that nobody could read it again.
    """
    return _line(_data(record, round(at_s, 6)))


def _line(data: dict[str, Any]) -> bytes:
    validated(LINES[data["record"]], data, f"record {data['record']}")
    return json.dumps(data, allow_nan=False).encode() + b"\n"


def _data(record: JournalRecord, at_s: float) -> dict[str, Any]:
    data: dict[str, Any]
    match record:
        case SplitRecord(cube, children):
            paths = {"cube": list(cube.path), "children": [list(one.path) for one in children]}
            data = {"record": "split", **to_plain(record), **paths}
        case Continuation():
            data = {"record": "continued", **to_plain(record)}
        case Member():
            data = {"record": "incumbent", "member": to_plain(record)}
        case Closure():
            data = _closure_data(record)
        case _:
            assert_never(record)
    return {**data, "at_s": at_s}


def _closure_data(one: Closure) -> dict[str, Any]:
    data: dict[str, Any] = {"record": "closed", **to_plain(one), "cube": list(one.cube.path)}
    return data if one.deaths else {key: data[key] for key in data if key != "deaths"}


def read_journal(path: str) -> JournalText:
    """A journal from its file, whether a search still writes to it or not.

    Raises:
        InputError: it cannot be read, or a line that is not the torn last one is none of a
            journal's; it names the line.
    """
    source = f"journal {path[:200]!r}"
    try:
        if not Path(path).is_file():
            rule = "is not a regular file" if Path(path).exists() else "does not exist"
            raise InputError(source, rule, REMEDY)
        raw = Path(path).read_bytes()
    except OSError as error:
        raise InputError(source, f"cannot be read ({error.strerror})", REMEDY) from None
    return parse_journal(raw, source)


def parse_journal(raw: bytes, source: str) -> JournalText:
    """A journal from its bytes; ``source`` names it in messages.

    A last line that lacks only its end counts: an object that is closed was written whole.

    Raises:
        InputError: a line that is not the torn last one is none of a journal's.
    """
    size = raw.rfind(b"\n") + 1
    unended = raw.startswith(SIGN) and _is_whole(raw[size:])
    size = len(raw) if unended else size
    header, entries = None, []
    for number, line in _lines(raw[:size]):
        where = f"{source}: line {number}"
        if len(line) > MAX_LINE_BYTES:
            raise InputError(where, f"is longer than {MAX_LINE_BYTES >> 20} MiB", REMEDY)
        found = _model(line, where)
        if isinstance(found, HeaderLine) is not (number == 1):
            rule = "is not a header" if number == 1 else "is a second header"
            raise InputError(where, rule, REMEDY)
        if isinstance(found, HeaderLine):
            header = _header(found, where)
        else:
            entries.append(JournalEntry(number, found.at_s, _record(found)))
    if header is None and raw and not raw.startswith(SIGN[: len(raw)]):
        raise InputError(source, "is not a journal", REMEDY)
    return JournalText(header, tuple(entries), size, len(raw) - size, unended)


def _lines(raw: bytes) -> Iterator[tuple[int, bytes]]:
    return enumerate(raw.removesuffix(b"\n").split(b"\n") if raw else (), start=1)


def _is_whole(line: bytes) -> bool:
    """Whether a line without its end is a whole object, of a journal or not."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _model(line: bytes, where: str) -> AnyLine:
    data = parse_json(line, where, REMEDY)
    kind = data.get("record") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in LINES:
        rule = f"is none of a journal's ({', '.join(LINES)})"
        raise InputError(where, rule, did_you_mean(str(kind), LINES) or REMEDY)
    return validated(LINES[kind], data, where)


def _header(found: HeaderLine, where: str) -> JournalHeader:
    header = JournalHeader(
        found.space,
        found.kind(),
        found.description,
        found.top,
        found.scale,
        found.cube_rule,
        _cubes(found.roots),
        found.options,
        found.versions,
    )
    if header.digest() != found.digest:
        raise InputError(where, "its digest is not that of its question", "it was changed")
    return header


def _record(found: AnyLine) -> JournalRecord:
    match found:
        case ContinuedLine():
            return Continuation(found.options, found.versions)
        case SplitLine():
            return SplitRecord(
                _cube(found.cube), _cubes(found.children), found.seconds, found.worker
            )
        case IncumbentLine():
            return _member(found.member)
        case ClosedLine():
            return _closure(found)
        case HeaderLine():
            raise TypeError("a header is no record")
        case _:
            assert_never(found)


def _closure(found: ClosedLine) -> Closure:
    return Closure(
        _cube(found.cube),
        SubproblemVerdict(found.verdict),
        found.bound,
        tuple(map(_member, found.best)),
        found.by_formula,
        found.count,
        found.digest,
        found.seed,
        found.seconds,
        found.worker,
        found.deaths,
    )


def _member(found: WitnessPart) -> Member:
    return Member(found.value, tuple(found.tie), found.witness)


def _cube(path: Sequence[str]) -> Subproblem:
    return Subproblem(tuple(path))


def _cubes(paths: Sequence[Sequence[str]]) -> tuple[Subproblem, ...]:
    return tuple(map(_cube, paths))
