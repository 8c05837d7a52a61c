"""Options of the commands that take schedules, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.interop.reading import Reading
    from p2smt.interop.schedule_files import Runtime

DepthOption = Annotated[
    str | None,
    typer.Option("--fifo-depth", metavar="N", help="Messages that a connection holds; default: 8."),
]
CollectiveOption = Annotated[
    str | None,
    typer.Option(
        "--collective",
        metavar="NAME",
        help="Of XML and JSON: such as allreduce, if not the file's.",
    ),
]
RootOption = Annotated[
    str | None,
    typer.Option(
        "--root",
        metavar="RANK",
        help="Of XML and JSON: root of a reduce, broadcast ..; default: 0.",
    ),
]
OutOfPlaceOption = Annotated[
    bool,
    typer.Option("--out-of-place", help="Of XML made for both uses: input and output apart."),
]
RepairOption = Annotated[
    bool,
    typer.Option(
        "--fix",
        help="Look for a change of one step that makes it valid (default time limit: 60 s).",
    ),
]
TraceOption = Annotated[
    str | None,
    typer.Option("--trace", metavar="FILE", help="Write the interleaving as a Chrome trace."),
]
CostOption = Annotated[
    str | None,
    typer.Option(
        "--cost", metavar="SIZE", help="Predict the time for such a payload on --topology."
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option("--force", help="Write also what the runtime of that format would not run."),
]
RuntimeOption = Annotated[
    str | None,
    typer.Option(
        "--runtime",
        metavar="NAME",
        help="Exit 1 unless it would run the schedule: msccl, rccl or mscclpp.",
    ),
]
UptoOption = Annotated[
    str | None,
    typer.Option(
        "--upto",
        metavar="N",
        help="Symbolic files, and --program: check every size of at most N ranks.",
    ),
]
SizesOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=N", help="Symbolic files: the value of a parameter."),
]

IterationsOption = Annotated[
    str | None,
    typer.Option(
        "--iterations", metavar="N", help="Of MSCCL++ pipelines: units per chunk; default: 3."
    ),
]
CheckedProgramOption = Annotated[
    str | None,
    typer.Option(
        "--program", metavar="TEXT", help="A program instead of FILE; with --levels or --topology."
    ),
]
LoweringOption = Annotated[
    str | None,
    typer.Option(
        "--algorithm", metavar="NAME", help="Of a program: ring (default), tree or direct."
    ),
]

_MAX_DEPTH = 1_000_000
_MAX_RANK = 1_000_000
_REPAIR_S = 60.0


def check_subject(
    file: str | None,
    program: str | None,
    levels: str | None,
    kind: str | None,
    algorithm: str | None,
) -> None:
    """A file or a program; the options of programs go with a program.

    Raises:
        InputError: neither or both are given, or an option does not fit.
    """
    from p2smt.errors import InputError

    if (file is None) == (program is None):
        raise InputError("verify", "takes either a file or --program", "give one of them")
    if file is not None and any(option is not None for option in (levels, kind, algorithm)):
        rule = "are for --program"
        raise InputError("--levels, --kind and --algorithm", rule, "drop them, or the file")


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """The options of `verify` that concern schedules, as given."""

    fifo_depth: str | None = None
    collective: str | None = None
    root: str | None = None
    out_of_place: bool = False
    iterations: str | None = None
    fix: bool = False
    trace: str | None = None
    time_limit: str | None = None
    cost: str | None = None
    topology: str | None = None
    upto: str | None = None
    sizes: tuple[str, ...] = ()
    runtime: str | None = None

    def depth(self) -> int:
        """Messages that a connection holds."""
        from p2smt.cli import given
        from p2smt.schedules.model import DEFAULT_DEPTH

        if self.fifo_depth is None:
            return DEFAULT_DEPTH
        return given.count_of(self.fifo_depth, "fifo depth", _MAX_DEPTH)

    def limit_s(self) -> float | None:
        """Wall seconds for the check; None: as long as the solver's effort lasts."""
        from p2smt.cli import given

        if self.time_limit is None:
            return None
        return given.limits_of(self.time_limit, "0").time_limit_s

    def repair_s(self) -> float:
        """Wall seconds for the search for a repair."""
        limit_s = self.limit_s()
        return _REPAIR_S if limit_s is None else limit_s

    def reading(self) -> Reading:
        """What the file does not say itself."""
        from p2smt.cli import given
        from p2smt.interop.reading import Reading

        root = None if self.root is None else given.count_of(self.root, "root", _MAX_RANK, least=0)
        in_place = False if self.out_of_place else None
        units = self.iterations
        steps = None if units is None else given.count_of(units, "iterations", 999)
        return Reading(root, self.collective, in_place, steps, self.parameters())

    def parameters(self) -> dict[str, int]:
        """The values of a symbolic file's parameters."""
        from p2smt.cli import given
        from p2smt.cli.settings import settings

        return {
            name: given.count_of(value, f"parameter {name[:40]}", least=0)
            for name, value in settings(self.sizes, "n=8").items()
        }

    def wanted(self) -> Runtime | None:
        """The runtime that must be able to run the schedule, if one is named."""
        from p2smt.interop.schedule_files import runtime_named

        return None if self.runtime is None else runtime_named(self.runtime)

    def bound(self) -> int:
        """The largest size of a symbolic schedule that is checked."""
        from p2smt.cli import given

        return given.count_of(self.upto or "", "upto", _MAX_RANK, least=2)

    def scene(self) -> tuple[Topology, int] | None:
        """Where to predict the time of which payload, if that is asked for.

        Raises:
            InputError: only one of --cost and --topology is given, or one is not understood.
        """
        from p2smt.cli import given
        from p2smt.errors import InputError
        from p2smt.units import parse_bytes

        if self.cost is None and self.topology is None:
            return None
        if self.cost is None or self.topology is None:
            raise InputError("--cost and --topology", "go together", "give both, or neither")
        return given.topology_of(self.topology), parse_bytes(self.cost, "payload")

    def refuse_for_family(self) -> None:
        """Options that need one size.

        Raises:
            InputError: one was given.
        """
        from p2smt.errors import InputError

        one = (self.fix, self.trace, self.cost, self.topology, self.sizes, self.runtime)
        if any(one):
            raise InputError(
                "--upto",
                "checks many sizes; --fix, --trace, --cost, --topology, --runtime and --set need "
                "one",
                "drop them, or --upto",
            )
        if any((self.collective, self.root, self.out_of_place, self.iterations)):
            raise InputError(
                "--collective, --root, --out-of-place and --iterations",
                "are for XML and JSON; symbolic files say these things themselves",
                "drop them",
            )

    def refuse_for_program(self) -> None:
        """A program says itself what it computes, and is checked at every size as it is.

        Raises:
            InputError: an option was given that only a file has a use for.
        """
        from p2smt.errors import InputError

        kept = ScheduleOptions(
            fifo_depth=self.fifo_depth,
            topology=self.topology,
            upto=self.upto,
        )
        if self != kept:
            raise InputError(
                "--program",
                "takes no other options of schedules than --fifo-depth, --topology and --upto",
                "drop them, or the program",
            )

    def refuse_for_journal(self) -> None:
        """A journal has no use for any of these but a time limit.

        Raises:
            InputError: one was given.
        """
        from p2smt.errors import InputError

        if self != ScheduleOptions(time_limit=self.time_limit):
            rule = "takes no options of schedules (--fifo-depth, --fix, --trace ..)"
            raise InputError("a journal", rule, "drop them")

    def refuse_for_plan(self) -> None:
        """A plan has no use for any of these.

        Raises:
            InputError: one was given.
        """
        from p2smt.errors import InputError

        if self != ScheduleOptions():
            raise InputError(
                "a plan file",
                "takes no options of schedules (--fifo-depth, --fix, --trace ..)",
                "drop them, or lower the plan with `p2smt convert` first",
            )
