"""What a user sees is what it was: ``make record`` renews the texts where a change is meant."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.imports import ROOT
from tests.record.golden import (
    MARKS,
    Kept,
    changes,
    entries_of,
    kept,
    kept_of,
    kept_of_all,
    now,
    text_of,
)
from tests.record.masks import masked, rounded
from tests.record.pages import UNRECORDED, unrecorded
from tests.record.play import Outcome, as_process, play
from tests.record.renew import recorded
from tests.record.scenes import FILES, GOLDEN, Scene, scene_of, scenes
from tests.record.schemas import Schemas
from tests.record.shown import Entries

SCENES = scenes()
BY_NAME = {scene.name: scene for scene in SCENES}
CASES = [
    pytest.param(
        scene, id=scene.name, marks=[getattr(pytest.mark, scene.tier)] if scene.tier else []
    )
    for scene in SCENES
]


@pytest.mark.parametrize("scene", CASES)
def test_nothing_that_a_user_sees_has_changed(scene: Scene) -> None:
    old = kept_of(scene)
    new = now(old, recorded(scene))
    found = "\n".join(changes(old, new))
    assert not found, f"{found}\nif this is meant: make record"
    assert text_of(new) == scene.golden.read_text(encoding="utf-8")


def test_every_text_has_its_commands() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {*BY_NAME}
    assert {name for scene in SCENES for name in scene.files} == {p.name for p in FILES.iterdir()}


def test_every_command_of_the_pages_is_recorded() -> None:
    """Those that are not have a reason."""
    assert unrecorded(SCENES) == {*UNRECORDED}


def test_every_command_of_the_program_has_its_help_recorded() -> None:
    entries = {entry.command: entry.lines for entry in kept_of(BY_NAME["help"])}
    waiting = [""]
    while waiting:
        name = waiting.pop()
        lines = entries[f"{name} --help".strip()]
        at = lines.index("| Commands:") if "| Commands:" in lines else len(lines)
        waiting += [
            f"{name} {found[1]}" for x in lines[at:] if (found := re.match(r"\|   (\w+)", x))
        ]
    assert len(entries) > 25


def test_nothing_of_this_machine_is_recorded() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.txt"))
    here = (str(ROOT), tempfile.gettempdir() + "/", os.path.expanduser("~/"), platform.platform())
    assert [word for word in here if word in text] == []
    assert [line for line in text.split("\n") if re.search(r"^= (70|130|143)\b", line)] == []


@pytest.mark.parametrize("name", ["run", "verify-journals"])
def test_another_machine_records_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host, other versions, other numbers of processors, another terminal and a job.

    p2smt's own version belongs to the question of a journal, so its digest changes with it.
    """
    own = importlib.metadata.version("p2smt")
    monkeypatch.setattr(platform, "node", lambda: "elsewhere")
    monkeypatch.setattr(platform, "platform", lambda: "Elsewhere-1.0")
    monkeypatch.setattr(platform, "python_version", lambda: "3.99.0")
    other = property(lambda of: own if of.metadata["Name"] == "p2smt" else "9.9")
    monkeypatch.setattr(importlib.metadata.Distribution, "version", other)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    for variable, value in (("COLUMNS", "33"), ("FORCE_COLOR", "1"), ("SLURM_JOB_NODELIST", "n1")):
        monkeypatch.setenv(variable, value)
    old = kept_of(BY_NAME[name])
    assert [*changes(old, now(old, recorded(BY_NAME[name])))] == []


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["classics", "page-tutorial", "placements", "topology"])
def test_a_process_of_its_own_says_the_same(name: str) -> None:
    old = kept_of(BY_NAME[name])
    assert [*changes(old, now(old, recorded(BY_NAME[name], start=as_process)))] == []


def outcome(command: str) -> Outcome:
    """The last outcome of a small scene of one command."""
    (found,) = play(replace(BY_NAME["topology"], commands=(command,)))
    return found


def lines_of(found: Outcome) -> tuple[str, ...]:
    return Entries().entry(found).lines


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        ("topology show --help", "Show this message", "Show that message"),
        ("topology show --help", "[OPTIONS]", "[OPTION]"),
        ("topology show tiny.yaml --json", '"levels"', '"level"'),
        ("topology show tiny.yaml --json", "10 us", "10.0 us"),
        ("topology show tiny.yaml --json", '"name": "tiny", ', ""),
        ("topology show tiny.yaml --json", ", ", ","),
        ("topology check tiny.yaml --json", "8", "8.0"),
        ("topology check tiny.yaml", "8", "9"),
        ("topology check tiny.yaml", "\n", " \n"),
        ("topology check tiny.yaml", "\n", "\n\n"),
        ("topology list", "\n", "\r\n"),
        ("schema topology", '"maximum": 1048576', '"maximum": 1048577'),
        ("schema topology", '"default": 1', '"default": 2'),
        ("schema topology", '"latency"', '"latencies"'),
    ],
)
def test_a_change_on_stdout_is_seen(command: str, before: str, after: str) -> None:
    found = outcome(command)
    at = found.out.rindex(before)
    other = found.out[:at] + after + found.out[at + len(before) :]
    assert lines_of(replace(found, out=other)) != lines_of(found)


def test_a_change_anywhere_else_is_seen() -> None:
    found = outcome("topology check small.yaml")
    assert found.code == 2
    files: dict[str, bytes | None] = {"a.json": b'{"a": 1}\n', "b": b"x" * 9999, "c": b"x\n" * 999}
    found = replace(found, written=files)
    others = [
        replace(found, code=1),
        replace(found, err=found.err.replace(";", ",")),
        replace(found, err=found.err + "note\n"),
        *(replace(found, written={**files, k: v}) for k, v in (("a.json", b'{"a": 1.0}\n'),)),
        *(replace(found, written={**files, k: v}) for k, v in (("b", b"x" * 9998 + b"y"),)),
        *(replace(found, written={**files, k: v}) for k, v in (("c", b"x\n" * 998 + b"y\n"),)),
        *(replace(found, written={**files, k: v}) for k, v in (("c", b"x\n" * 998 + b"x"),)),
        replace(found, written={**files, "a.json": None}),
        replace(found, written={**files, "d": b""}),
        replace(found, written={}),
    ]
    assert lines_of(found) not in [lines_of(other) for other in others]
    assert len({lines_of(other) for other in others}) == len(others)


def test_an_answer_of_several_is_held_to_what_all_share() -> None:
    found = outcome("topology check tiny.yaml")
    data = {"status": "optimal", "plan": {"objective_s": 0.5, "ranks": [0, 1]}, "notes": []}
    one = replace(found, out=json.dumps(data) + "\n", written={"a": b"1"})
    filed = replace(one, written={"a": b"2"})
    other = replace(one, out=one.out.replace("[0, 1]", "[1, 0]"))
    worse = replace(one, out=one.out.replace("0.5", "0.6"))
    entries = [Entries().entry(outcome) for outcome in (one, filed, other, worse)]
    assert (
        kept_of_all(entries[:1] * 4) == kept(entries[0], 0) == Kept(found.command, entries[0].lines)
    )
    assert kept_of_all(entries[:2]) == kept(entries[0], 1) == kept(entries[1], 1)
    vary = kept_of_all(entries[:3])
    head, status, objective, file = (
        "= 0 {}",
        '| status: "optimal"',
        "| plan.objective_s: 0.5",
        "+ a",
    )
    assert vary.lines == (MARKS[2], head, status, objective, file)
    assert now([vary], entries[2:3]) == [vary]
    (line, *_) = changes([vary], now([vary], entries[3:]))
    assert line == "changed  topology check tiny.yaml"


def test_only_what_is_measured_is_masked() -> None:
    for text in (
        '{"seconds": 0.5, "bound_s": 0.25}',
        "proved bound 223.5 ms (gap 0 %), link-level bound 214.7 ms",
        "in 12 steps",
        '{"name": "p2smt", "hosts": "n1"}',
    ):
        assert masked(text) == text
    for one, other in (
        ("in 292.9 ms\n", "in 1.2 s\n"),
        ('"wall_s": 0.1}', '"wall_s": 1e-05}'),
        ('"samples_s": [0.1, 0.2]', '"samples_s": [0.3]'),
        ('"python": "3.11.7"', '"python": "3.12.1"'),
    ):
        assert masked(one) == masked(other) != one


def test_numbers_of_a_fit_are_rounded() -> None:
    text = '{"a": 0.12345678, "b": 1234567.891, "c": 1.5, "d": 1.23456789e-07, "e": "v1.234567.8"}'
    data = {"a": 0.123457, "b": 1234567.891, "c": 1.5, "d": 1.23457e-07, "e": "v1.234567.8"}
    assert json.loads(rounded(text, 6)) == data


def test_texts_are_read_as_they_were_written() -> None:
    entries = [
        Kept("a", ("= 0", "|", "| $ x", "! y")),
        Kept("a", (MARKS[2], "= 3")),
        Kept("b", ("= 0",)),
    ]
    assert entries_of(text_of(entries)) == entries


def test_names_and_titles_of_a_schema_do_not_count_its_shape_does() -> None:
    node = {
        "type": "object",
        "title": "Node",
        "properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    }
    schema = {"$defs": {"Node": node}, "properties": {"x": {"$ref": "#/$defs/Node"}}}
    text = json.dumps(schema)
    renamed = json.loads(text.replace("Node", "Vertex").replace('"title"', '"description"'))
    assert Schemas().shown("a", renamed) == Schemas().shown("a", schema)
    spelt_out = {"properties": {"x": node}, "$defs": {"Node": node}}
    assert Schemas().shown("a", spelt_out) != []
    for before, after in (("array", "string"), ("of", "off"), ("object", "array")):
        changed = json.loads(text.replace(f'"{before}"', f'"{after}"'))
        assert Schemas().shown("a", changed) != Schemas().shown("a", schema)


def test_a_file_of_commands_is_read(tmp_path: Path) -> None:
    path = tmp_path / "small.txt"
    path.write_text("# Two.\nfiles: shared pods\nalso: --json -x\n\na b: c\n! sed x\n# no\n")
    scene = scene_of(path)
    assert scene.commands == ("a b: c", "a b: c --json -x", "! sed x")
    assert (scene.files, scene.tier, scene.name) == (("shared", "pods"), None, "small")
