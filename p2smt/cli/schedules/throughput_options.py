"""`p2smt synthesize --objective throughput`: a forest of the greatest rate, and schedules of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, Texts, option

if TYPE_CHECKING:
    from p2smt.result import SearchLimits, StopWatch
    from p2smt.synthesis.forests.network import ForestGround
    from p2smt.synthesis.forests.pieces import PieceSchedule
    from p2smt.synthesis.forests.throughput import Throughput

_MOST_PIECES, _MOST_HEIGHT = 10_000, 10_000


@dataclass(frozen=True, slots=True)
class AskedForest:
    """What is asked beside :class:`ThroughputOptions`; ``others``: options that do not go with it.

    ``collective``: by its name in schedules.
    """

    fabric: Text
    topology: Text
    collective: str
    root: int
    output: Text
    certificate: Text
    svg: Text
    force: bool
    others: tuple[str, ...]


@dataclass(frozen=True)
class ThroughputOptions:
    """What a question of throughput has beside fabric and collective."""

    objective: Text = option(
        "throughput", "The greatest rate of all trees, proved, instead of one size or --pareto."
    )
    without: Texts = option(
        "FAILED",
        "With --objective: what has failed: 'link 0-4' (all wires, both ways) or 'card 3'.",
    )
    pieces: Text = option(
        "K", "With --objective: a schedule that cuts each rank's data in so many pieces."
    )

    height: Text = option(
        "H", "With --objective: trees of at most so many messages from the root; default: any."
    )

    def wanted(self, sized: bool) -> bool:
        """Whether the question is one of throughput; ``sized``: payloads are given.

        Raises:
            InputError: the objective is another, or other options need it.
        """
        from p2smt.errors import InputError

        if self.objective is not None:
            if self.objective != "throughput":
                given_, rule = f"--objective {self.objective[:40]!r}", "must be throughput"
                raise InputError(given_, rule, "or leave it out, for one size or --pareto")
            return True
        if self.without and sized:
            rule = "goes with --objective throughput: prices of payloads know no failed links"
            remedy = "replace --size by that, or give a --fabric FILE that lacks them"
            raise InputError("--without", rule, remedy)
        named = {"--without": self.without, "--pieces": self.pieces, "--height": self.height}
        for name, value in named.items():
            if value is not None:
                rule = "goes with --objective throughput"
                raise InputError(name, rule, "add that, or drop it")
        return False

    def check(self, asked: AskedForest) -> None:
        """Refuse early what does not go with a question of throughput, or could not be written.

        Raises:
            InputError: it is so.
        """
        from p2smt.cli.output import writable
        from p2smt.errors import InputError
        from p2smt.files.write import check_svg_name

        if asked.others:
            rule = "does not go with --objective throughput, which needs no size"
            raise InputError(asked.others[0], rule, "drop one of them")
        if (asked.fabric is None) == (asked.topology is None):
            rule = "one of them says what carries the data"
            raise InputError("--fabric and --topology", rule, "give one of them")
        for path in (asked.output, asked.certificate, asked.svg):
            o.check_kept(path, asked.fabric, asked.topology)
        if asked.svg is not None:
            writable(asked.svg)
            check_svg_name(asked.svg)
        if self.many() is not None:
            return
        for path in (asked.output, asked.certificate):
            writable(path)
            if path is not None and not path.endswith(".json"):
                rule = "must end in .json: it is a forest without --pieces"
                raise InputError(f"output {path[:200]!r}", rule, "add --pieces, or rename it")
        if asked.force:
            raise InputError("--force", "goes with --pieces and --output", "drop it")

    def highest(self) -> int | None:
        """The most messages of a tree from its root; None: any."""
        return None if self.height is None else given.count_of(self.height, "height", _MOST_HEIGHT)

    def many(self) -> int | None:
        """The pieces; None: no schedule is asked for."""
        return None if self.pieces is None else given.count_of(self.pieces, "pieces", _MOST_PIECES)


def show_throughput(
    ask: ThroughputOptions,
    asked: AskedForest,
    rates: o.FabricOptions,
    limits: SearchLimits,
    shown: o.ShownOptions,
) -> int:
    """The exit code; files are written first.

    Raises:
        InputError: an option is missing or does not go with the others, failures cut ranks off, or
            a file cannot be written.
    """
    from p2smt.cli.codes import NOT_SETTLED, OK
    from p2smt.cli.output import tell_tables
    from p2smt.report.schedules.forest_data import throughput_data, throughput_tables
    from p2smt.report.text import printable
    from p2smt.result import StopWatch
    from p2smt.synthesis.forests.throughput import forest_collective, throughput

    watch = StopWatch.start(limits)
    ask.check(asked)
    collective, many, height = forest_collective(asked.collective), ask.many(), ask.highest()
    ground = _ground(ask, asked, rates, collective.rooted, watch)
    found = None if ground is None else throughput(ground, collective, watch.left(), height)
    made = _pieces(ground, found, many, watch)
    written = _write(asked, found, made, many)
    spec = str(asked.fabric or asked.topology)
    words = {"output": "forest" if many is None else "schedule", "certificate": "forest"}
    words["svg"] = "picture"
    lines = [f"{words[k]} written to {printable(path)}" for k, path in written.items()]
    tell_tables(
        shown.json,
        lambda: throughput_data(spec, collective, found, made, written),
        lambda: (throughput_tables(spec, collective, found, made, many),),
        lines,
        details=shown.details,
    )
    done = found is not None and found.claim.optimal and (many is None) == (made is None)
    return OK if done else NOT_SETTLED


def _ground(
    ask: ThroughputOptions,
    asked: AskedForest,
    rates: o.FabricOptions,
    rooted: bool,
    watch: StopWatch,
) -> ForestGround | None:
    """Where trees grow; None: the time came before it was made."""
    from p2smt.errors import InputError, OutOfTimeError
    from p2smt.synthesis.forests.network import failures_of, ground_of_fabric, ground_of_levels

    failed = failures_of(ask.without or ())
    root = asked.root
    if root and not rooted:
        raise InputError(f"root {root} of {asked.collective}", "it has no root", "leave it out")
    at = root if rooted else None
    if asked.topology is not None:
        for name, value in vars(rates).items():
            if value is not None:
                rule = "goes with --fabric: a topology says its rates"
                raise InputError(f"--{name.replace('_', '-')}", rule, "drop it")
        from p2smt.cluster.allocation import check_stated
        from p2smt.cluster.file import load_topology

        topology = load_topology(asked.topology)
        check_stated(topology)
        topology = replace(topology, name=asked.topology)
        return ground_of_levels(topology, at, failed)
    try:
        return ground_of_fabric(rates.fabric(str(asked.fabric), watch), at, failed)
    except OutOfTimeError:
        return None


def _pieces(
    ground: ForestGround | None, found: Throughput | None, many: int | None, watch: StopWatch
) -> PieceSchedule | None:
    from p2smt.synthesis.forests.pieces import in_pieces

    if ground is None or found is None or many is None:
        return None
    return in_pieces(ground, found, many, watch.left())


def _write(
    asked: AskedForest, found: Throughput | None, made: PieceSchedule | None, many: int | None
) -> dict[str, str]:
    """Write the forest, and the schedule if one was asked for; returns the paths by kind."""
    from p2smt.files.write import write_all_atomically
    from p2smt.interop.schedule_files import written as schedule_text
    from p2smt.report.schedules.forest_data import claim_words
    from p2smt.report.schedules.forest_picture import forest_svg

    texts: dict[str, str] = {}
    done: dict[str, str] = {}
    if asked.output is not None and made is not None:
        texts[asked.output] = schedule_text(made.schedule, asked.output, force=asked.force)
        done["output"] = asked.output
    forest = {"output": asked.output if many is None else None, "certificate": asked.certificate}
    for kind, path in forest.items():
        if path is not None and found is not None:
            texts[path], done[kind] = found.claim.text(), path
    if asked.svg is not None and found is not None:
        texts[asked.svg] = forest_svg(found.claim, claim_words(found.claim))
        done["svg"] = asked.svg
    write_all_atomically(texts)
    return done
