"""Lists of programs for people and for ``--json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from p2smt.parallelism.request import Request
from p2smt.plans.solution import ProgramGain
from p2smt.report.costs.request_table import after_comma, choice_lines, how_of
from p2smt.report.outputs.programs import (
    BestPrograms,
    BestProgramsOfRequest,
    BestProgramsOutput,
    CountedPrograms,
    EveryProgram,
    EveryProgramOfRequest,
    EveryProgramOutput,
    ProgramEntry,
    ProgramsOutput,
    RequestProgramsOutput,
    TimedProgramEntry,
)
from p2smt.report.outputs.shape import range_data
from p2smt.report.screen import COLUMNS, LINES, full_width, wrapped
from p2smt.result import Status
from p2smt.search.gain import SinglePrice
from p2smt.search.program_synthesis import ListedProgram, ProgramList
from p2smt.units import counted, format_time


@dataclass(frozen=True, slots=True)
class Catalog:
    """Programs of a request (None: of plain factors), beside its single collective if priced."""

    found: ProgramList
    request: Request | None = None
    single: SinglePrice | None = None

    @property
    def gain(self) -> ProgramGain | None:
        """What the best program gains over the single collective; None: nothing, or not priced."""
        seconds = [one.seconds for one in self.found.programs[:1] if one.seconds is not None]
        return self.single.gain_of(seconds[0]) if self.single and seconds else None


def list_data(listing: Catalog, best: bool) -> EveryProgram | BestPrograms:
    """Status, counts and programs; of the best ones each with its time (None: not priced)."""
    found = listing.found
    counted = CountedPrograms(
        status=found.status,
        basis=[found.basis] if found.basis and found.status is Status.COMPLETE else [],
        count=len(found.programs),
        count_by_length=found.count_by_length,
    )
    if best:
        return _best(listing, counted)
    programs = [ProgramEntry(**_words(one)) for one in found.programs]
    return EveryProgram(**vars(counted), checked=found.checked, programs=programs)


def _best(listing: Catalog, counted: CountedPrograms) -> BestPrograms:
    """Beside them the single collective, and what the best and naming an algorithm gain over it."""
    from p2smt.report.solution_data import named_data  # with all that a plan's file knows

    single, gain = listing.single, listing.gain
    named = gain.named if gain is not None else ()
    return BestPrograms(
        **vars(counted),
        single_collective_s=None if single is None else single.step.seconds,
        **range_data(None if single is None else single.within, "range_basis"),
        program_gain=None if gain is None else gain.over_singles,
        gain_by_choice=None if gain is None else gain.by_choice,
        named_algorithm=next((named_data(way) for _, way in named), None),
        programs=[
            TimedProgramEntry(
                **_words(one), seconds=one.seconds, checked=one.checked, **range_data(one.within)
            )
            for one in listing.found.programs
        ],
    )


def _words(listed: ListedProgram) -> dict[str, Any]:
    program = listed.program
    return {"text": str(program), "instructions": [str(one) for one in program.instructions]}


def lists_data(listings: Sequence[Catalog], best: bool) -> ProgramsOutput:
    """The lists of several requests, one as it is."""
    if len(listings) == 1:
        alone = BestProgramsOutput if best else EveryProgramOutput
        return alone(**vars(list_data(listings[0], best)))
    several = BestProgramsOfRequest if best else EveryProgramOfRequest
    requests: list[Any] = [
        several(**_asked(one.request), **vars(list_data(one, best))) for one in listings
    ]
    cut = [one.status for one in requests if one.status is not Status.COMPLETE]
    return RequestProgramsOutput(status=cut[0] if cut else Status.COMPLETE, requests=requests)


def _asked(request: Request | None) -> dict[str, Any]:
    return {} if request is None else {"kind": request.kind, "axes": request.axes}


def list_lines(listing: Catalog, best: bool) -> list[str]:
    """What there is in all, then a line per program."""
    return [*_verdict(listing, best), *map(_line, listing.found.programs)]


def _line(listed: ListedProgram) -> str:
    if listed.seconds is None:
        return str(listed.program)
    return f"{format_time(listed.seconds):>12}{after_comma(listed.within)}  {listed.program}"


def _verdict(listing: Catalog, best: bool) -> Iterator[str]:
    """How many there are, why none is missed, and the single collective beside the best."""
    found = listing.found
    status, count = found.status.value, _counted(found)
    if found.note:
        yield f"{status}: no programs, {found.note}"
    elif found.status is not Status.COMPLETE and not found.programs:
        yield f"{status}: none found in time, of up to {found.max_length} instructions"
    elif best:
        which = "the best " if found.programs else ""
        order = "least time first" if found.by_time else "shortest first"
        yield f"{status}: {which}{count}, {order}"
        yield from _basis(found)
        yield from _beside(listing)
    else:
        early = "" if found.status is Status.COMPLETE else "stopped early with "
        yield f"{status}: {early}{count}, checked on {found.checked}"
        yield from _basis(found)


def _basis(found: ProgramList) -> Iterator[str]:
    """What it rests on that none is missed, in words."""
    if found.basis is not None and found.status is Status.COMPLETE:
        yield f"programs {found.basis.text}"


def _beside(listing: Catalog) -> Iterator[str]:
    """The single collective beside the best program."""
    if listing.single is None:
        return
    step, gain = listing.single.step, listing.gain
    within = after_comma(listing.single.within)
    yield f"single collective {format_time(step.seconds)}, {how_of(step)}{within}"
    if gain is not None:
        yield from choice_lines(gain)


def lists_lines(listings: Sequence[Catalog], best: bool, *, details: bool = False) -> Iterator[str]:
    """The lines of several requests, each under its name; one as it is.

    Without ``details`` as many as fit on a screen.
    """
    for n, one in enumerate(listings):
        name = one.request.name if one.request is not None and len(listings) > 1 else ""
        if details:
            yield from ("",) * (n > 0)
            yield from (name,) * bool(name)
            yield from list_lines(one, best)
        else:
            most = LINES // len(listings) + (n < LINES % len(listings))
            yield from _short(one, best, f"{name}: " if name else "", most)


def _short(listing: Catalog, best: bool, name: str, most: int) -> list[str]:
    """The verdict, and of the programs as many as fit whole."""
    head, *others = _verdict(listing, best)
    lines = full_width([name + head, *others])
    programs = listing.found.programs
    for shown, listed in enumerate(programs):
        added = _lines(listed)
        if len(lines) + len(added) + (shown + 1 < len(programs)) > most:
            return [*lines, f".. {counted(len(programs) - shown, 'more program')}: --details"][
                :most
            ]
        lines += added
    return lines[:most]


def _lines(listed: ListedProgram) -> list[str]:
    """A program on a screen, beside its time and the range of that."""
    if listed.seconds is None:
        return wrapped(str(listed.program), COLUMNS)
    within = "" if listed.within is None else listed.within.ends
    margin = f"{format_time(listed.seconds):>9}  {within:<16}"
    lines = wrapped(str(listed.program), COLUMNS - len(margin) - 2)
    heads = [margin, *[" " * len(margin)] * len(lines)]
    return [f"{head}  {line}" for head, line in zip(heads, lines, strict=False)]


def _counted(found: ProgramList) -> str:
    count = len(found.programs)
    if not count:
        return f"no program of up to {found.max_length} instructions"
    counts = [f"{n} of length {i}" for i, n in enumerate(found.count_by_length, 1) if n]
    return f"{counted(count, 'program')} ({', '.join(counts)})"
