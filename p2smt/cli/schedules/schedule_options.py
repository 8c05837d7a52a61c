"""Options of the commands that take schedules, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, Texts, flag, option
from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.interop.reading import Reading
    from p2smt.interop.schedule_files import Runtime

_MAX_DEPTH = 1_000_000
_MAX_RANK = 1_000_000

SIZES = option("NAME=N", "Symbolic files: the value of a parameter.", "--set")


@dataclass(frozen=True)
class ScheduleOptions:
    """What a schedule file does not say, and what is asked of it."""

    fifo_depth: Text = option("N", "Messages that a connection holds; default: 8.")
    collective: Text = option("NAME", "Of XML and JSON: such as allreduce, if not the file's.")
    root: Text = option("RANK", "Of XML and JSON: root of a reduce, broadcast ..; default: 0.")
    out_of_place: bool = flag("Of XML made for both uses: input and output apart.")
    iterations: Text = option("N", "Of MSCCL++ pipelines: units per chunk; default: 3.")
    fix: bool = flag(
        "Look for a change of one step, or equal ones of several, that makes it valid (default "
        "time limit: 60 s)."
    )
    trace: Text = option("FILE", "Write the interleaving as a Chrome trace.")
    cost: Text = option("SIZE", "Predict the time for such a payload on --topology.")
    topology: Text = o.TOPOLOGY
    use: Texts = o.USE
    ranks_on: Text = option(
        "LEVEL=N|LIST",
        "With --cost: N ranks on each of that level, such as node=1, or the device of each rank, "
        "such as 0,8,16,24; default: rank r is device r.",
    )
    sizes: Texts = SIZES
    upto: Text = option("N", "Symbolic files, and --program: check every size of at most N ranks.")
    runtime: Text = option(
        "NAME", "Exit 1 unless it would run the schedule: msccl, rccl or mscclpp."
    )

    def depth(self) -> int:
        """Messages that a connection holds."""
        from p2smt.schedules.model import DEFAULT_DEPTH

        if self.fifo_depth is None:
            return DEFAULT_DEPTH
        return given.count_of(self.fifo_depth, "fifo depth", _MAX_DEPTH)

    def reading(self) -> Reading:
        """What the file does not say itself."""
        from p2smt.interop.reading import Reading

        root = None if self.root is None else given.count_of(self.root, "root", _MAX_RANK, least=0)
        in_place = False if self.out_of_place else None
        units = self.iterations
        steps = None if units is None else given.count_of(units, "iterations", 999)
        return Reading(root, self.collective, in_place, steps, self.parameters())

    def parameters(self) -> dict[str, int]:
        """The values of a symbolic file's parameters."""
        return {
            name: given.count_of(value, f"parameter {name[:40]}", least=0)
            for name, value in given.settings_of(self.sizes or [], "n=8").items()
        }

    def wanted(self) -> Runtime | None:
        """The runtime that must be able to run the schedule, if one is named."""
        from p2smt.interop.schedule_files import runtime_named

        return None if self.runtime is None else runtime_named(self.runtime)

    def bound(self) -> int:
        """The largest size of a symbolic schedule that is checked."""
        return given.count_of(self.upto or "", "upto", _MAX_RANK, least=2)

    def scene(self) -> tuple[Topology, int] | None:
        """Where to predict the time of which payload, if that is asked for.

        Raises:
            InputError: only one of --cost and --topology is given, or one is not understood.
        """
        from p2smt.units import parse_bytes

        if self.cost is None and self.topology is None and not self.use:
            return None
        if self.cost is None or self.topology is None:
            rule = "go together, and --use with them"
            raise InputError("--cost and --topology", rule, "give both, or neither")
        return given.topology_of(self.topology, use=self.use), parse_bytes(self.cost, "payload")

    def devices(self, scene: tuple[Topology, int] | None, ranks: int) -> tuple[int, ...]:
        """The device of each rank, where a time is predicted.

        Raises:
            InputError: it is not, and --ranks-on is given; or they cannot lie so.
        """
        from p2smt.schedules.cost.ranks import devices_of

        if scene is not None:
            return devices_of(self.ranks_on, scene[0], ranks)
        if self.ranks_on is not None:
            raise InputError("--ranks-on", "goes with --cost and --topology", "add these")
        return ()

    @property
    def needs_steps(self) -> bool:
        """Whether something is asked for that needs the steps of all ranks."""
        return self != ScheduleOptions(self.fifo_depth, sizes=self.sizes)

    def refuse_for_family(self) -> None:
        """Options that need one size.

        Raises:
            InputError: one was given.
        """
        one = (self.fix, self.trace, self.cost, self.topology, self.use, self.sizes, self.runtime)
        if any((*one, self.ranks_on)):
            raise InputError(
                "--upto",
                "checks many sizes; --fix, --trace, --cost, --topology, --use, --ranks-on, "
                "--runtime and --set need one",
                "drop them, or --upto",
            )
        if any((self.collective, self.root, self.out_of_place, self.iterations)):
            raise InputError(
                "--collective, --root, --out-of-place and --iterations",
                "are for XML and JSON; symbolic files say these things themselves",
                "drop them",
            )

    def refuse_for_program(self, time_limit: Text) -> None:
        """A program says itself what it computes, and is checked at every size as it is.

        Raises:
            InputError: an option was given that only a file has a use for.
        """
        kept = ScheduleOptions(
            self.fifo_depth, topology=self.topology, use=self.use, upto=self.upto
        )
        if self != kept or time_limit is not None:
            raise InputError(
                "--program",
                "takes of the options of schedules --fifo-depth, --topology, --use and --upto",
                "drop them, or the program",
            )

    def refuse_for_plan(self) -> None:
        """A plan has no use for any of these."""
        self.refuse("a plan file", "drop them, or lower the plan with `p2smt convert` first")

    def refuse(self, file: str, remedy: str) -> None:
        """Such a file has no use for any of these.

        Raises:
            InputError: one was given.
        """
        none = ScheduleOptions()
        names = [
            one.name for one in fields(self) if getattr(self, one.name) != getattr(none, one.name)
        ]
        if names:
            flags = ("set" if one == "sizes" else one.replace("_", "-") for one in names)
            rule = "takes no options of schedules: " + ", ".join(f"--{one}" for one in flags)
            raise InputError(file, rule, remedy)
