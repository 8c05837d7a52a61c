"""Would a runtime run a schedule?  That is about its tables, and says nothing about meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.interop.msccl.read import FORMAT as MSCCL_XML
from p2smt.interop.msccl.runtime_limits import msccl_refusals, rccl_refusals
from p2smt.interop.msccl.write import write_msccl
from p2smt.interop.mscclpp.read import FORMAT as MSCCLPP_JSON
from p2smt.interop.mscclpp.runtime_warnings import mscclpp_refusals
from p2smt.interop.mscclpp.write import write_mscclpp
from p2smt.schedules.model import Runnable

if TYPE_CHECKING:
    from collections.abc import Callable

    from p2smt.schedules.model import Schedule


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
