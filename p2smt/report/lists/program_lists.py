"""Lists of programs for people and for ``--json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from p2smt.parallelism.request import Request
from p2smt.result import Status
from p2smt.search.programs import ListedProgram, ProgramList
from p2smt.units import format_time


def list_data(found: ProgramList, best: bool) -> dict[str, Any]:
    """Status, counts and programs; of the best ones each with its time (None: not priced)."""
    counts = {"count": len(found.programs), "count_by_length": list(found.count_by_length)}
    data: dict[str, Any] = {"status": found.status.value, **counts}
    if not best:
        data["checked"] = found.checked
    return {**data, "programs": [_program(listed, best) for listed in found.programs]}


def lists_data(
    found: Sequence[ProgramList], asked: Sequence[Request | None], best: bool
) -> dict[str, Any]:
    """The lists of several requests (``asked``; None: plain factors), one as it is."""
    if len(found) == 1:
        return list_data(found[0], best)
    requests = [
        {**_asked(request), **list_data(one, best)}
        for request, one in zip(asked, found, strict=True)
    ]
    cut = [one.status.value for one in found if one.status is not Status.COMPLETE]
    return {"status": cut[0] if cut else Status.COMPLETE.value, "requests": requests}


def _asked(request: Request | None) -> dict[str, Any]:
    return {} if request is None else {"kind": request.kind.value, "axes": list(request.axes)}


def _program(listed: ListedProgram, best: bool) -> dict[str, Any]:
    program = listed.program
    data = {"text": str(program), "instructions": [str(i) for i in program.instructions]}
    return {**data, "seconds": listed.seconds, "checked": listed.checked} if best else data


def list_lines(found: ProgramList, best: bool) -> Iterator[str]:
    """A line per program, then what there is in all."""
    for listed in found.programs:
        time = "" if listed.seconds is None else f"{format_time(listed.seconds):>12}  "
        yield f"{time}{listed.program}"
    status, counted = found.status.value, _counted(found)
    if found.note:
        yield f"{status}: no programs, {found.note}"
        return
    if found.status is not Status.COMPLETE and not found.programs:
        yield f"{status}: none found in time, of up to {found.max_length} instructions"
        return
    if best:
        which = "the best " if found.programs else ""
        order = "least time first" if found.by_time else "shortest first"
        yield f"{status}: {which}{counted}, {order}"
        return
    if found.status is not Status.COMPLETE:
        counted = f"stopped early with {counted}"
    yield f"{status}: {counted}, checked on {found.checked}"


def lists_lines(
    found: Sequence[ProgramList], asked: Sequence[Request | None], best: bool
) -> Iterator[str]:
    """The lists of several requests, each under its name; one as it is."""
    if len(found) == 1:
        yield from list_lines(found[0], best)
        return
    for n, (request, one) in enumerate(zip(asked, found, strict=True)):
        yield from ("",) * (n > 0)
        yield "" if request is None else request.name
        yield from list_lines(one, best)


def _counted(found: ProgramList) -> str:
    count = len(found.programs)
    if not count:
        return f"no program of up to {found.max_length} instructions"
    counts = [f"{n} of length {i}" for i, n in enumerate(found.count_by_length, 1) if n]
    return f"{count} program{'s' * (count != 1)} ({', '.join(counts)})"
