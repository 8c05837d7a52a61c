"""Schedule files of every format: which one a file is, and reading and writing it.

A format is a row of FORMATS.  The first row that recognises a text reads it; how a file's name
ends says which row writes it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2smt.collectives.contract import RULES
from p2smt.collectives.names import COLLECTIVES
from p2smt.errors import InputError
from p2smt.files.text_kind import seems
from p2smt.interop.msccl.parse import begins_late
from p2smt.interop.msccl.read import FORMAT as MSCCL_XML
from p2smt.interop.msccl.read import msccl_refusals, rccl_refusals, read_msccl
from p2smt.interop.msccl.write import write_msccl
from p2smt.interop.mscclpp.read import FORMAT as MSCCLPP_JSON
from p2smt.interop.mscclpp.read import mscclpp_refusals, read_mscclpp
from p2smt.interop.mscclpp.write import write_mscclpp
from p2smt.interop.reading import AS_IT_STANDS
from p2smt.schedules.language.instance import fold, parse_schedule
from p2smt.schedules.language.schedule_file import parse_symbolic
from p2smt.schedules.language.schedule_text import dump_schedule
from p2smt.schedules.model import Runnable

if TYPE_CHECKING:
    from collections.abc import Callable

    from p2smt.interop.reading import Reading
    from p2smt.schedules.folded import Folded
    from p2smt.schedules.model import Schedule


MAX_BYTES = 64 * 1024 * 1024
YAML = "yaml"


@dataclass(frozen=True, slots=True)
class Format:
    """A format of schedule files.

    name: what a schedule calls the format it came from.
    runtime, syntax: what runs such files (empty: p2smt alone), and what they are written in.
    suffixes: how their names end, in lower case; messages show the first.
    recognises: whether a text looks like one, well formed or not.
    sign: what it looks at, for messages; empty where a file without it may be a plan.
    read: text, what messages call it, and what it does not say; InputError if it is malformed.
    write: InputError if the format cannot express the schedule without loss.
    wants: what of a ``Reading`` it has use for.
    """

    name: str
    runtime: str
    syntax: str
    suffixes: tuple[str, ...]
    recognises: Callable[[str], bool]
    sign: str
    read: Callable[[str, str, Reading], Schedule]
    write: Callable[[Schedule], str]
    wants: frozenset[str]

    @property
    def symbolic(self) -> bool:
        """Whether a file may have parameters."""
        return "parameters" in self.wants

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"{self.runtime} {self.syntax}".strip()


def _is_msccl(text: str) -> bool:
    return _start(text) == "<" or begins_late(text)


def _is_mscclpp(text: str) -> bool:
    return _start(text) == "{" and re.search(r'"gpus"\s*:', text) is not None


def _is_yaml(text: str) -> bool:
    return _start(text) not in ("<", "{") and "p2smt_schedule" in text[:10_000]


def _start(text: str) -> str:
    return text.lstrip()[:1]


def _read_yaml(text: str, source: str, reading: Reading) -> Schedule:
    """The schedule; its format is that of the file, whatever that was converted from."""
    return replace(parse_schedule(text, source, reading.parameters), form=YAML)


FORMATS = (
    Format(
        name=MSCCL_XML,
        runtime="MSCCL",
        syntax="XML",
        suffixes=(".xml",),
        recognises=_is_msccl,
        sign="starts with <",
        read=read_msccl,
        write=write_msccl,
        wants=frozenset(("collective", "root", "in_place")),
    ),
    Format(
        name=MSCCLPP_JSON,
        runtime="MSCCL++",
        syntax="JSON",
        suffixes=(".json",),
        recognises=_is_mscclpp,
        sign="",
        read=read_mscclpp,
        write=write_mscclpp,
        wants=frozenset(("collective", "root", "iterations")),
    ),
    Format(
        name=YAML,
        runtime="",
        syntax="YAML",
        suffixes=(".yaml", ".yml"),
        recognises=_is_yaml,
        sign="has the key p2smt_schedule",
        read=_read_yaml,
        write=dump_schedule,
        wants=frozenset(("parameters",)),
    ),
)


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
        if format_of(raw.decode("utf-8", "replace")) is None:
            return None
        rule = f"is not UTF-8 text (byte {error.start})"
        raise InputError(given, rule, "save it as UTF-8") from None
    if format_of(text) is not None:
        return text
    named = _named(path)
    if named is not None and named.sign:
        signs = ", ".join(f"{row.title} {row.sign}" for row in reversed(FORMATS) if row.sign)
        rule = f"{seems(text)}, and is not a schedule: {signs}"
        raise InputError(given, rule, "docs/schedule-file.md shows one")
    return None


def require_json(path: str) -> None:
    """A file that is no schedule may be a plan or a certificate, if it is JSON.

    Raises:
        InputError: it is missing, not a regular file, empty, or begins like neither.
    """
    given = f"file {path!r}"
    if not os.path.exists(path):
        raise InputError(given, "does not exist", "check the path")
    if not os.path.isfile(path):
        raise InputError(given, "is not a regular file", "name a plan, a certificate or a schedule")
    with open(path, "rb") as file:
        start = file.read(1024).lstrip()[:1]
    if not start:
        raise InputError(given, "is empty", "name a plan, a certificate or a schedule")
    if start != b"{":
        known = ", ".join(row.title for row in FORMATS)
        rule = f"is neither a plan or certificate (JSON) nor a schedule ({known})"
        raise InputError(given, rule, "see docs/schedules.md")


def format_of(text: str) -> Format | None:
    """The format of a schedule by its first characters and keys; None: something else."""
    return next((row for row in FORMATS if row.recognises(text)), None)


def _named(path: str) -> Format | None:
    """The format that a file's name asks for."""
    suffix = os.path.splitext(path)[1].lower()
    return next((row for row in FORMATS if suffix in row.suffixes), None)


def read_schedule(text: str, source: str, reading: Reading) -> Schedule:
    """The schedule that a text holds; ``source`` names the file in messages.

    Raises:
        InputError: the text is in none of the formats, breaks the rules of its own, or says
            itself what ``reading`` says.
    """
    found = format_of(text)
    if reading.parameters and not (found and found.symbolic):
        raise InputError(f"schedule {source!r}", "has no parameters: it is not YAML", "drop --set")
    if found is None:
        raise InputError(f"file {source!r}", "is not a schedule", "see docs/schedules.md")
    for name, (option, what) in _OPTIONS.items():
        if getattr(reading, name) is not None and name not in found.wants:
            others = " and ".join(row.title for row in FORMATS if name in row.wants)
            raise InputError(option, f"{what} of {others}; {source} is {found.title}", "drop it")
    return found.read(text, source, reading)


def folded_schedule(text: str, source: str, reading: Reading) -> Folded | None:
    """The programs and symmetries of a schedule that is told by orbits; None: of another text.

    Raises:
        InputError: it breaks the rules of such files.
    """
    found = format_of(text)
    if found is None or not found.symbolic or not re.search(r"^symmetry\s*:", text, re.MULTILINE):
        return None
    symbolic = parse_symbolic(text, source)
    return fold(symbolic, reading.parameters) if symbolic.model.symmetry else None


MAX_STEPS_AGAIN = 10_000
"""Steps of a schedule that is still tried as what its file does not say."""
MAX_ROOTS = 64


def valid_as(
    text: str, source: str, reading: Reading, wrong: Schedule | None, fifo_depth: int
) -> tuple[str, ...]:
    """As what a schedule that is invalid as its file says would be valid, with how to say so.

    Tried are other collectives, the same one in place, and other roots, if none was asked for; if
    it is none of these, other collectives in place.  ``wrong``: None where the file names no kind.
    """
    found = format_of(text)
    steps = len(wrong.steps) if wrong else text.count("<step")
    if found is None or steps > MAX_STEPS_AGAIN:
        return ()
    is_wrong, wants = wrong.contract.collective if wrong else "", found.wants
    others = {
        f"{name} (--collective {name})": replace(reading, collective=name)
        for name in COLLECTIVES
        if "collective" in wants and reading.collective is None and name != is_wrong
    }
    tried, here = dict(others), 'in place (write inplace="1" into <algo>)'
    if "in_place" not in wants or (wrong and wrong.in_place) or reading.in_place is not None:
        others = {}
    elif is_wrong:
        tried[f"{is_wrong} {here}"] = replace(reading, in_place=True)
    if wrong and is_wrong in RULES and RULES[is_wrong].rooted and "root" in wants:
        roots = range(1, min(wrong.ranks, MAX_ROOTS)) if reading.root is None else ()
        tried |= {f"{is_wrong} (--root {r})": replace(reading, root=r) for r in roots}
    inside = {f"{what}, {here}": replace(one, in_place=True) for what, one in others.items()}
    for each in (tried, inside):
        right = tuple(k for k, one in each.items() if _is_valid(text, source, one, fifo_depth))
        if right:
            return right
    return ()


def _is_valid(text: str, source: str, reading: Reading, fifo_depth: int) -> bool:
    from p2smt.schedules.races.decide import DEFAULT_EFFORT
    from p2smt.schedules.verify.report import Verdict
    from p2smt.schedules.verify.verify import verify

    try:
        schedule = read_schedule(text, source, reading)
    except InputError:  # its buffers are of no such collective
        return False
    return verify(schedule, fifo_depth, effort=DEFAULT_EFFORT // 12).verdict is Verdict.VALID


_OPTIONS = {
    "collective": ("--collective", "names the collective"),
    "root": ("--root", "names the root"),
    "in_place": ("--out-of-place", "is for files made for both uses,"),
    "iterations": ("--iterations", "is for the pipelines"),
}
"""How people say what a file does not, and for what."""


def written(schedule: Schedule, path: str, *, force: bool = False) -> str:
    """The schedule as text in the format that the file's name asks for.

    force: also where the runtime of that format would not run it.

    Raises:
        InputError: the format is not known, cannot express the schedule without loss, or its
            runtime would not run the file.
    """
    named = format_named(path)
    _refuse_loss(schedule)
    for step in schedule.steps:
        if step.unannounced:
            rule = "waits for a step that is never announced, which no other file could say"
            raise InputError(f"{step}", rule, "set hasdep=1 where it waits")
    text = named.write(schedule)
    if not force:
        _require_runnable(text, path, named)
    return text


def _refuse_loss(schedule: Schedule) -> None:
    """Pipelines are unrolled and in-switch operations spelt out when they are read."""
    switch = any(step.kind in ("glres", "gstore", "gstorepkt") for step in schedule.steps)
    if switch or any("pipelines are checked" in warning for warning in schedule.warnings):
        raise InputError(
            f"schedule {schedule.name[:60]!r}",
            "has pipelines or in-switch operations, which no other file can express",
            "verify it as it is",
        )


def steps_in(text: str, path: str, schedule: Schedule) -> int:
    """How many steps a file has that was written from a schedule, as they are read back.

    Formats of runtimes may say one step by several; YAML has them as they are.
    """
    if not format_named(path).runtime:
        return len(schedule.steps)
    return len(read_schedule(text, path, AS_IT_STANDS).steps)


def format_named(path: str) -> Format:
    """The format that a file's name asks for; InputError if there is none."""
    named = _named(path)
    if named is not None:
        return named
    *most, last = (
        f"{row.suffixes[0]} ({row.runtime})" if row.runtime else row.suffixes[0] for row in FORMATS
    )
    known = f"{', '.join(most)} and {last}"
    raise InputError(f"file {path!r}", f"formats are {known}", "name it so")


def _require_runnable(text: str, path: str, written_as: Format) -> None:
    """Refuses a text that the runtime of its format would not run."""
    runtime = runtime_of(written_as.name)
    reasons = runtime.refusals(text, path) if runtime else ()
    if runtime and reasons:
        more = f", and {len(reasons) - 1} more reasons" if len(reasons) > 1 else ""
        rule = f"{runtime.title} would not run it ({reasons[0]}{more})"
        raise InputError(f"file {path!r}", rule, "use --force to write it all the same, or YAML")


# Would a runtime run a schedule?  That is about its tables, and says nothing about meaning.


@dataclass(frozen=True, slots=True)
class Runtime:
    """What runs files of a format.

    name: for options.  title: for people.  form: the format that it runs.
    refusals: why it does not run a text; takes the text and what messages call it.
    write: a schedule as such a text; InputError if that cannot be said in the format.
    """

    name: str
    title: str
    form: str
    refusals: Callable[[str, str], tuple[str, ...]]
    write: Callable[[Schedule], str]


RUNTIMES = (
    Runtime("msccl", "MSCCL", MSCCL_XML, msccl_refusals, write_msccl),
    Runtime("rccl", "RCCL", MSCCL_XML, rccl_refusals, write_msccl),
    Runtime("mscclpp", "MSCCL++", MSCCLPP_JSON, mscclpp_refusals, write_mscclpp),
)
"""Of those that run a format the first is meant where none is named."""


def runtime_named(name: str) -> Runtime:
    """The runtime of a name; InputError if there is none."""
    found = next((runtime for runtime in RUNTIMES if runtime.name == name), None)
    if found is None:
        known = ", ".join(runtime.name for runtime in RUNTIMES)
        raise InputError(f"runtime {name[:40]!r}", "is not known", f"one of {known}")
    return found


def runtime_of(form: str) -> Runtime | None:
    """The runtime that is meant by a format; None: p2smt alone."""
    return next((runtime for runtime in RUNTIMES if runtime.form == form), None)


def runnable(
    schedule: Schedule,
    runtime: Runtime | str | None = None,
    text: str | None = None,
    source: str = "schedule",
) -> Runnable:
    """Whether a runtime would run a schedule.

    A schedule of another format, or one without its text, is judged as it would be written for
    the runtime; one of the runtime's own format always as the file that it was read from.

    Args:
        schedule: what is judged.
        runtime: msccl, rccl or mscclpp; None: that of the schedule's own format.
        text, source: what it was read from, and what messages call that.

    Raises:
        InputError: no such runtime.
    """
    own = runtime_of(schedule.form)
    runtime = runtime_named(runtime) if isinstance(runtime, str) else runtime or own
    if runtime is None:
        return Runnable()
    if runtime is own:
        return Runnable(runtime.name, runtime.title, schedule.refused)
    if text is not None and runtime.form == schedule.form:
        return Runnable(runtime.name, runtime.title, runtime.refusals(text, source))
    try:
        reasons = runtime.refusals(runtime.write(schedule), f"as {runtime.form}")
    except InputError as error:
        reasons = (str(error),)
    return Runnable(runtime.name, runtime.title, reasons, rewritten=True)
