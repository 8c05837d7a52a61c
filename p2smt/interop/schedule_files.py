"""Schedule files of every format: which one a file is, and reading and writing it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.interop.msccl.read import read_msccl_xml
from p2smt.interop.msccl.write import write_msccl_xml
from p2smt.interop.mscclpp.read import read_mscclpp_json
from p2smt.interop.mscclpp.write import write_mscclpp_json
from p2smt.schedules.language.instance import parse_schedule as parse_yaml
from p2smt.schedules.language.write import dump_schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from p2smt.schedules.model import Schedule

MAX_BYTES = 64 * 1024 * 1024
WRITERS: Mapping[str, Callable[[Schedule], str]] = {
    ".xml": write_msccl_xml,
    ".json": write_mscclpp_json,
    ".yaml": dump_schedule,
    ".yml": dump_schedule,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file does not say, or says wrongly for this use.

    root: of rooted collectives.  collective: instead of the file's.  in_place: for files made for
    both uses.  iterations: of pipelines.  parameters: of symbolic YAML files.
    """

    root: int = 0
    collective: str | None = None
    in_place: bool | None = None
    iterations: int = 3
    parameters: Mapping[str, int] = field(default_factory=dict)


def schedule_text(path: str) -> str | None:
    """The text of a file if it is a schedule; None if it is a plan, or cannot be read.

    Raises:
        InputError: it is larger than 64 MiB, or looks like a schedule and is not UTF-8.
    """
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError:
        return None
    given = f"schedule {path!r}"
    if len(raw) > MAX_BYTES:
        raise InputError(given, f"is larger than {MAX_BYTES >> 20} MiB", "split it")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if form_of(raw.decode("utf-8", "replace")) is None:
            return None
        rule = f"is not UTF-8 text (byte {error.start})"
        raise InputError(given, rule, "save it as UTF-8") from None
    if form_of(text) is None and os.path.splitext(path)[1].lower() in (".yaml", ".yml", ".xml"):
        rule = "is not a schedule: YAML has the key p2smt_schedule, MSCCL XML starts with <"
        raise InputError(given, rule, "docs/schedule-file.md shows one")
    return text if form_of(text) is not None else None


def require_json(path: str) -> None:
    """A file that is no schedule may be a plan, if it is JSON.

    Raises:
        InputError: it is missing, not a regular file, or begins like neither.
    """
    given = f"file {path!r}"
    if not os.path.exists(path):
        raise InputError(given, "does not exist", "check the path")
    if not os.path.isfile(path):
        raise InputError(given, "is not a regular file", "name a plan or a schedule")
    with open(path, "rb") as file:
        start = file.read(1024).lstrip()[:1]
    if start != b"{":
        rule = "is neither a plan (JSON) nor a schedule (MSCCL XML, MSCCL++ JSON, YAML)"
        raise InputError(given, rule, "see docs/schedules.md")


def form_of(text: str) -> str | None:
    """The format of a schedule by its first characters and keys; None: something else."""
    start = text.lstrip()[:1]
    if start == "<":
        return "msccl-xml"
    if start == "{":
        return "mscclpp-json" if '"gpus"' in text else None
    return "yaml" if "p2smt_schedule" in text[:10_000] else None


def parse_schedule(text: str, source: str, reading: Reading) -> Schedule:
    """The schedule that a text holds; ``source`` names the file in messages.

    Raises:
        InputError: the text is in none of the formats, or breaks the rules of its own.
    """
    form = form_of(text)
    if reading.parameters and form != "yaml":
        raise InputError(f"schedule {source!r}", "has no parameters: it is not YAML", "drop --set")
    match form:
        case "msccl-xml":
            return read_msccl_xml(
                text,
                source,
                root=reading.root,
                collective=reading.collective,
                in_place=reading.in_place,
            )
        case "mscclpp-json":
            return read_mscclpp_json(
                text,
                source,
                root=reading.root,
                collective=reading.collective,
                iterations=reading.iterations,
            )
        case "yaml":
            return parse_yaml(text, source, reading.parameters)
        case _:
            raise InputError(f"file {source!r}", "is not a schedule", "see docs/schedules.md")


def read_schedule(path: str, reading: Reading | None = None) -> Schedule:
    """The schedule in a file of any format.

    Raises:
        InputError: it cannot be read or is not a schedule.
    """
    text = schedule_text(path)
    if text is None:
        raise InputError(f"file {path!r}", "is missing, or not a schedule", "name a schedule file")
    return parse_schedule(text, path, reading or Reading())


def written(schedule: Schedule, path: str) -> str:
    """The schedule as text in the format that the file's name asks for.

    Raises:
        InputError: the format is not known, or cannot express the schedule without loss.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in WRITERS:
        known = ".xml (MSCCL), .json (MSCCL++) and .yaml"
        raise InputError(f"file {path!r}", f"formats are {known}", "name it so")
    return WRITERS[suffix](schedule)
