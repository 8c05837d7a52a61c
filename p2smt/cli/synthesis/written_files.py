"""The files that `p2smt synthesize` writes: schedule, certificate, picture."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.synthesis.bounds import RateBound
    from p2smt.synthesis.frontier import ScheduleFrontier
    from p2smt.synthesis.question import ScheduleSize, Synthesis

Written = dict[str, str | None]
"""Paths by kind (output, certificate, svg); None: nothing was written."""
BoundPaths = dict[int | None, str]
"""Paths of certificates by the steps they are for; None: for any number of steps."""


@dataclass(frozen=True, slots=True)
class FileTexts:
    """Where to write what, as given."""

    output: str | None
    certificate: str | None
    svg: str | None
    force: bool

    def check(self, collective: str, root: int) -> None:
        """Refuse early what could not be written.

        Raises:
            InputError: no file can be there, or no format is named so, or it lacks the collective,
                or two files have one name.
        """
        from p2smt.cli import restrictions
        from p2smt.errors import InputError
        from p2smt.files.write import check_svg_name
        from p2smt.interop.schedule_files import format_named

        named = [path for path in (self.output, self.certificate, self.svg) if path is not None]
        for path in named:
            restrictions.writable(path)
        if len({os.path.realpath(path) for path in named}) < len(named):
            raise InputError("two outputs of one name", "would overwrite each other", "rename one")
        if self.output is not None and format_named(self.output).syntax == "XML":
            _check_known(self.output, collective, root)
        if self.svg is not None:
            check_svg_name(self.svg)
        if self.certificate is not None and not self.certificate.endswith(".json"):
            raise InputError(f"certificate {self.certificate[:200]!r}", "must end in .json")
        if self.force and self.output is None:
            raise InputError("--force", "goes with --output", "add that, or drop it")

    def of(self, size: ScheduleSize) -> FileTexts:
        """The files of a point of a frontier: its steps, rounds and chunks before the ending."""
        return replace(
            self,
            output=_named(self.output, _size_text(size)),
            certificate=_named(self.certificate, _size_text(size)),
            svg=_named(self.svg, _size_text(size)),
        )

    def write_bounds(self, found: ScheduleFrontier) -> BoundPaths:
        """Write what no schedule comes with: the bounds of other numbers of steps, and of any.

        Raises:
            InputError: a file cannot be written.
        """
        bounds: dict[int | None, RateBound] = {
            point.steps: point.bound for point in found.points if point.found is None
        }
        if found.limit is not None:
            bounds[None] = found.limit
        if self.certificate is None:
            return {}
        return {steps: self._bound(steps, bound) for steps, bound in bounds.items()}

    def _bound(self, steps: int | None, bound: RateBound) -> str:
        from p2smt.files.write import write_atomically

        path = str(_named(self.certificate, "limit" if steps is None else str(steps)))
        write_atomically(path, bound.certificate.text())
        return path

    def write(self, found: Synthesis, done: Written) -> None:
        """Write what there is to write, the schedule last; ``done`` gets each path.

        Raises:
            InputError: the runtime of its format would not run the schedule, or no file can be
                written.
        """
        done["certificate"] = self._certificate(found)
        done["svg"] = self._picture(found)
        done["output"] = self._schedule(found)

    def _schedule(self, found: Synthesis) -> str | None:
        from p2smt.files.write import write_atomically
        from p2smt.interop.schedule_files import written

        if self.output is None or found.schedule is None:
            return None
        text = written(found.schedule, self.output, force=self.force)
        write_atomically(self.output, text)
        return self.output

    def _certificate(self, found: Synthesis) -> str | None:
        from p2smt.files.write import write_atomically

        if self.certificate is None or found.bound is None:
            return None
        write_atomically(self.certificate, found.bound.certificate.text())
        return self.certificate

    def _picture(self, found: Synthesis) -> str | None:
        from p2smt.files.write import write_atomically
        from p2smt.report.schedules.space_time import space_time_svg
        from p2smt.synthesis.question import owners, schedule_name

        if self.svg is None or found.sums is None:
            return None
        text = space_time_svg(
            found.sums,
            edges=found.setting.edges,
            ranks=found.setting.fabric.ranks,
            roots=owners(found.setting, found.size),
            title=schedule_name(found.setting, found.size),
        )
        write_atomically(self.svg, text)
        return self.svg


def _check_known(path: str, collective: str, root: int) -> None:
    from p2smt.collectives.names import MSCCL_NAMES
    from p2smt.errors import InputError

    if collective not in MSCCL_NAMES:
        known = ", ".join(MSCCL_NAMES)
        rule = f"MSCCL XML has no {collective}; it has {known}"
        raise InputError(f"output {path[:200]!r}", rule, "name a file .json or .yaml")
    if root:
        rule = f"is rank 0 where MSCCL XML says {collective}"
        raise InputError(f"root {root}", rule, "name a file .json or .yaml, or root 0")


def _named(path: str | None, words: str) -> str | None:
    """A path with words before its ending."""
    if path is None:
        return None
    stem, ending = os.path.splitext(path)
    return f"{stem}-{words}{ending}"


def _size_text(size: ScheduleSize) -> str:
    return f"{size.steps}-{size.rounds}-{size.chunks}"


def written_lines(written: Written) -> list[str]:
    """What to say of the files."""
    from p2smt.report.text import printable

    names = {"output": "schedule", "certificate": "certificate", "svg": "picture"}
    paths = [(name, written.get(kind)) for kind, name in names.items()]
    return [f"{name} written to {printable(path)}" for name, path in paths if path is not None]
