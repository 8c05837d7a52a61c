"""The story of what any command printed with --json, by its shape alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from p2smt.errors import InputError
from p2smt.report.page.reading import Fields, Names
from p2smt.report.page.story import Figure, Section, Story, Table, clean, sentence
from p2smt.report.page.words import format_time3
from p2smt.units import plain

MOST_ROWS, MOST_COLUMNS = 500, 8


def answer_story(data: Fields, names: Names) -> Story:
    """Status and single values first, then each list of objects as a table.

    Raises:
        InputError: it has no schema_version; or names are to be left out, which this cannot tell
            from words.
    """
    if "schema_version" not in data.data:
        rule = "is no answer of p2smt: it has no schema_version"
        raise InputError(data.what, rule, "give a plan, a schedule, or what --json printed")
    if names.anonymous:
        rule = "is of no kind whose names are known, so that none can be replaced"
        raise InputError(f"--anonymous {data.what}", rule, "give a plan file")
    single = {key: _words(key, one) for key, one in data.data.items() if _is_plain(one)}
    kind = single.get("kind")  # certificates and forests say what they are, and claim it only
    status = single.get("status") or single.get("verdict") or "answered"
    timed = [(key, text) for key, text in single.items() if key.endswith("_s")]
    sections = [Section("All values", "What the answer says, key by key.", first=_values(single))]
    sections += _tables(data.data)
    return Story(
        title=f"A {clean(kind)}" if kind else "An answer of p2smt",
        verdict="Claimed, not checked: p2smt verify does that." if kind else f"Status: {status}.",
        figures=tuple(Figure(text, key.removesuffix("_s")) for key, text in timed[:3]),
        sections=tuple(sections),
        lacks=() if kind else ("what was asked, and how: a plan file has it, which `-o` writes",),
        kind="report of an answer",
    )


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _words(key: str, value: object) -> str:
    if isinstance(value, float) and key.endswith("_s") and value >= 0:
        return format_time3(value)
    return sentence(plain(value, 6, grouped=True) if isinstance(value, float) else value)


def _values(single: Mapping[str, str]) -> Table:
    rows = tuple((clean(key), text) for key, text in single.items() if key != "schema_version")
    return Table(("key", "value"), rows)


def _tables(data: Mapping[str, Any]) -> Iterator[Section]:
    for key, value in data.items():
        if (
            not isinstance(value, list)
            or not value
            or not all(isinstance(one, dict) for one in value)
        ):
            continue
        heads = [name for name in value[0] if _is_plain(value[0][name])][:MOST_COLUMNS]
        if not heads:
            continue
        rows = tuple(
            tuple(_words(name, one.get(name, "")) for name in heads) for one in value[:MOST_ROWS]
        )
        lead = f"{clean(key)}: {len(value):,} of them" + (
            f", the first {MOST_ROWS}" * (len(value) > MOST_ROWS)
        )
        yield Section(clean(key), f"{lead}.", first=Table(tuple(map(clean, heads)), rows))
