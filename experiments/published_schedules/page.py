"""Writes README.md and BUGS.md from ``results.json``.

python -m experiments.published_schedules.page
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from experiments.published_schedules.bug_page import bug_page
from experiments.published_schedules.sources import REPOSITORIES
from experiments.published_schedules.store import HERE, Row, read
from experiments.testbed.script import ended
from p2smt.errors import InputError

PAGE, BUGS_PAGE, TEMPLATE = HERE / "README.md", HERE / "BUGS.md", HERE / "README.in.md"
_LONGEST = 220


def page(rows: Sequence[Row]) -> str:
    """The page with all rows."""
    judged = [row for row in rows if row["verdict"] != "unreadable"]
    wrong = [row for row in rows if row["verdict"] == "invalid"]
    generated = [row for row in judged if row["program"]]
    return TEMPLATE.read_text(encoding="utf-8").format(
        total=len(judged),
        repositories=len({row["repository"] for row in rows}),
        files=len(judged) - len(generated),
        generated=len(generated),
        programs=sum(len(one.programs) for one in REPOSITORIES),
        summary=_summary(rows),
        own_check=_own_check(rows),
        repository_table=_repositories(),
        wrong_table=_wrong(wrong),
        unreadable_table=_unreadable([row for row in rows if row["verdict"] == "unreadable"]),
        tables_table=_beyond([row for row in judged if row.get("refused_by_runtime")]),
        slowest_s=max((row["cpu_s"] for row in judged), default=0),
        all_s=round(sum(row["cpu_s"] for row in judged)),
        all_table=_all(rows),
    )


def _own_check(rows: Sequence[Row]) -> str:
    """How often MSCCLang's check and this one say the same."""
    asked = [row for row in rows if row.get("own_check") in ("passed", "refused")]
    wrong = [row for row in asked if row["verdict"] == "invalid"]
    passed = sum(row["own_check"] == "passed" for row in wrong)
    refused = sum(row["own_check"] == "refused" for row in asked if row["verdict"] == "valid")
    return (
        f"MSCCLang's own check was asked about {len(asked)} of these schedules. It passed "
        f"{passed} of the {len(wrong)} wrong ones among them, and refused {refused} right ones."
    )


def _table(head: str, lines: Sequence[str]) -> str:
    if not lines:
        return "None."
    return "\n".join((head, "|---" * (head.count("|") - 1) + "|", *lines))


def _summary(rows: Sequence[Row]) -> str:
    counts = Counter((row["repository"], row["verdict"]) for row in rows)
    verdicts = ("valid", "invalid", "unknown", "unreadable")
    lines = [
        f"| {one.name} | " + " | ".join(str(counts[one.name, word]) for word in verdicts) + " |"
        for one in REPOSITORIES
    ]
    return _table("| repository | right | wrong | unknown | not judged |", lines)


def _repositories() -> str:
    lines = [f"| [{one.name}]({one.url}) | `{one.commit}` |" for one in REPOSITORIES]
    return _table("| repository | commit |", lines)


def _proof(row: Row) -> str:
    if not row["proof"]:
        return "every"
    return f"{row['proof']}" if row["shortest"] is not False else f"{row['proof']} or fewer"


def _reason(row: Row) -> str:
    text: str = row["reason"].replace("|", "/")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _wrong(rows: Sequence[Row]) -> str:
    lines = [
        f"| {row['repository']} | `{row['path']}` | {row['kind']}: {_reason(row)} | "
        f"{_proof(row)} | {row.get('own_check', '-')} | {row['cpu_s']:.2f} |"
        for row in rows
    ]
    head = "| repository | path or command | violation | shortest proof | own check | CPU s |"
    return _table(head, lines)


def _unreadable(rows: Sequence[Row]) -> str:
    lines = [f"| {row['repository']} | `{row['path']}` | {_reason(row)} |" for row in rows]
    return _table("| repository | path or command | why |", lines)


def _beyond(rows: Sequence[Row]) -> str:
    lines = [
        f"| {row['repository']} | `{row['path']}` | {'; '.join(row['refused_by_runtime'])} |"
        for row in rows
    ]
    return _table("| repository | path or command | why it would not run |", lines)


def _all(rows: Sequence[Row]) -> str:
    lines = [
        f"| {row['repository']} | `{row['path']}` | {row['collective']} | {row['ranks']} | "
        f"{row['steps']} | {row['verdict']} | {row['cpu_s']:.2f} |"
        for row in rows
        if row["verdict"] != "unreadable"
    ]
    head = "| repository | path or command | collective | ranks | steps | verdict | CPU s |"
    return _table(head, lines)


def main(arguments: Sequence[str]) -> None:
    """Write the pages.

    Raises:
        InputError: arguments are given.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    rows = read()
    PAGE.write_text(page(rows), encoding="utf-8")
    BUGS_PAGE.write_text(bug_page(rows), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
