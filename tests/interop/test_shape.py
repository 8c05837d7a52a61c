"""Every schedule format has the same files with the same entries, and a row in the table."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from p2smt import interop
from p2smt.interop.reading import AS_IT_STANDS
from p2smt.interop.schedule_files import FORMATS, Format, format_of
from p2smt.schedules.classics import classic
from p2smt.schedules.language.schedule_text import dump_schedule
from tests.interop.msccl.texts import ring
from tests.interop.mscclpp.plans import all_gather

MEASUREMENTS = ("nccl_tests",)
# not of schedules
OTHERS = (
    *("arrays", "clusters", "fabrics", "jobs", "launchers", "meshes", "models", "orders", "shell"),
    *("trainers", "tuners", "weights"),
)
FOLDERS = sorted(
    path.parent.name
    for path in Path(interop.__path__[0]).glob("*/__init__.py")
    if path.parent.name not in MEASUREMENTS + OTHERS
)
TYPES = ("parse", "elements", "execution_plan")
"""Where the elements of a file may stand as types."""

# By file, the entry ("X": the folder's name), what it takes first, and what it returns.
ENTRIES = {
    "parse": ("parse_X", ("text", "source"), None),
    "read": ("read_X", ("text", "source", "reading"), "Schedule"),
    "write": ("write_X", ("schedule",), "str"),
}

TEXTS = {
    "msccl-xml": ring(),
    "mscclpp-json": json.dumps(all_gather()),
    "yaml": dump_schedule(dataclasses.replace(classic("ring-all-reduce", 3), form="yaml")),
}


def faults(folder: str) -> Iterator[str]:
    """What a folder of interop lacks of the shape."""
    for name in TYPES:
        yield from _loose_types(_module(folder, name))
    if not hasattr(_module(folder, "read"), "warnings_of"):
        yield "read.warnings_of"
    for name, (entry, takes, returns) in ENTRIES.items():
        entry = entry.replace("X", folder)
        function = getattr(_module(folder, name), entry, None)
        if function is None:
            yield f"{name}.{entry}"
            continue
        signature = inspect.signature(function)
        if tuple(signature.parameters)[: len(takes)] != takes:
            yield f"{name}.{entry}: takes {', '.join(takes)}"
        if returns is not None and signature.return_annotation != returns:
            yield f"{name}.{entry}: returns {returns}"


def _module(folder: str, name: str) -> ModuleType | None:
    path = f"{interop.__name__}.{folder}.{name}"
    return import_module(path) if find_spec(path) else None


def _loose_types(module: ModuleType | None) -> Iterator[str]:
    """Classes of a module that can be changed after they are made."""
    for name, kind in inspect.getmembers(module, inspect.isclass):
        own = kind.__module__ == getattr(module, "__name__", None) and not name.startswith("_")
        if own and not issubclass(kind, tuple):
            frozen = dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
            if not (frozen and hasattr(kind, "__slots__")):
                yield f"{name} frozen and with slots"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_format_has_the_same_files_with_their_entries(folder: str) -> None:
    assert list(faults(folder)) == []


def test_what_is_not_of_the_shape_is_noticed() -> None:
    folder = MEASUREMENTS[0]
    found = list(faults(folder))
    missing = {"parse.parse_nccl_tests", "read.read_nccl_tests", "write.write_nccl_tests"}
    assert missing | {"read.warnings_of"} <= set(found)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_format_is_in_the_table_once(folder: str) -> None:
    read, write = (_module(folder, name) for name in ("read", "write"))
    rows = [row for row in FORMATS if row.read is getattr(read, f"read_{folder}")]
    assert [row.name for row in rows] == [getattr(read, "FORMAT", None)]
    assert [row.write for row in rows] == [getattr(write, f"write_{folder}")]


def test_no_name_or_suffix_stands_for_two_formats() -> None:
    names = [row.name for row in FORMATS]
    suffixes = [suffix for row in FORMATS for suffix in row.suffixes]
    assert len(set(names)) == len(names)
    assert len(set(suffixes)) == len(suffixes)
    assert all(suffix.startswith(".") and suffix.islower() for suffix in suffixes)


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_what_a_format_writes_it_alone_recognises_and_reads(row: Format) -> None:
    schedule = row.read(TEXTS[row.name], "f", AS_IT_STANDS)
    text = row.write(schedule)
    assert [other.name for other in FORMATS if other.recognises(text)] == [row.name]
    assert format_of(text) is row
    again = row.read(text, "f", AS_IT_STANDS)
    assert (schedule.form, again.form) == (row.name, row.name)
    assert (again.contract, len(again.steps)) == (schedule.contract, len(schedule.steps))
