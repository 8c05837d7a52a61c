"""`p2smt synthesize`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.guide.progress import tell_sizes
from p2smt.cli.output import is_default
from p2smt.cli.parameters import Text, flag, opened, option
from p2smt.cli.schedules.size_options import SizeOptions
from p2smt.cli.schedules.throughput_options import AskedForest, ThroughputOptions, show_throughput

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from p2smt.cluster.topology import Topology
    from p2smt.errors import InputError
    from p2smt.result import SearchLimits, StopWatch
    from p2smt.solvers.ask import Solver
    from p2smt.synthesis.bounds import RateBound
    from p2smt.synthesis.frontier import ScheduleFrontier
    from p2smt.synthesis.setting import Answer, ScheduleSize, Synthesis, SynthesisSetting

Written = dict[str, str | None]
"""Paths by kind (output, certificate, svg); None: nothing was written."""
BoundPaths = dict[int | None, str]
"""Paths of certificates by the steps they are for; None: for any number of steps."""
_POINT = r"-(\d+-\d+-\d+|\d+|limit)"
"""What stands before the ending of the names of a frontier's files."""
FILES_TOLD = 4
"""Lines on files below a frontier or schedules by size, unless all is shown."""
_MOST_STEPS, _MOST_ROUNDS, _MOST_CHUNKS, _MOST_MESSAGES = 1_000, 100_000, 10_000, 100


@dataclass(frozen=True)
class QuestionOptions:
    """What is asked about, and how much of it."""

    fabric: Text = option(
        "NAME[:N]|FILE", "Such as dgx1, dgx1:2, ring:8, torus:4x4, cube:3, mesh:4, or a file."
    )
    collective: Text = option(
        "NAME",
        "all-gather, all-reduce, all-to-all, broadcast, gather, reduce, reduce-scatter or scatter.",
    )
    steps: Text = option("S", "Steps, one after the other.")
    rounds: Text = option(
        "R", "Rounds of all steps; in a round a link of bandwidth 1 carries a chunk."
    )
    chunks: Text = option(
        "C",
        "Chunks per rank (all-gather, reduce-scatter), per pair (all-to-all, scatter, gather), or "
        "in all (all-reduce, broadcast, reduce).",
    )
    root: Text = option("RANK", "Of a broadcast, scatter ..; default: 0.")
    pareto: bool = flag("For every number of steps the fewest rounds a chunk, with proofs.")
    max_steps: Text = option(
        "N", "With --pareto and --size: the most steps; default: 4 more than the fewest."
    )
    max_chunks: Text = option("N", "With --pareto and --size: the most chunks; default: 24 a rank.")
    symmetry: str = option(
        "auto|none",
        "Try schedules with symmetries first, or search without.",
        default="auto",
    )
    messages: Text = option(
        "K", "Of an all-reduce: of a chunk over an edge in a step, at most; default: 1."
    )

    def check(self) -> None:
        """Refuse early what is missing, does not go together or does not read.

        Raises:
            InputError: it is so.
        """
        self.named_collective()
        if not self.pareto:
            self.size()
            return
        self._refuse_for_frontier()
        self.most_steps()
        self.most_chunks()

    def check_sizes(self, sizes: SizeOptions, parts: o.PartOptions) -> None:
        """The same where payloads are asked about, and the rest is found.

        Raises:
            InputError: something is missing, or does not go with --size.
        """
        found = {"--pareto": self.pareto, "--steps": self.steps, "--rounds": self.rounds}
        sizes.check(
            {**found, "--chunks": self.chunks, **dict.fromkeys([parts.first] * parts.wanted, 1)}
        )
        replace(self, fabric=self.fabric or sizes.topology).named_collective()
        self.most_steps()
        self.most_chunks()

    def check_parts(self, parts: o.PartOptions) -> None:
        """Refuse early what is not searched in parts, and options of parts that do not read.

        Raises:
            InputError: a frontier, or symmetries, are to be searched in parts; or an option is bad.
        """
        from p2smt.errors import InputError

        if not parts.wanted:
            return
        if self.pareto:
            rule = "does not go with --pareto: one size is searched in parts, not a frontier"
            raise InputError(parts.first, rule, "drop one of them")
        if self.symmetry != "none":
            rule = "asks for parts of the complete search, which knows no symmetries"
            raise InputError(parts.first, rule, "add --symmetry none")
        parts.spread()

    def named_collective(self, *, needs_fabric: bool = True) -> str:
        """The collective, where nothing is missing.

        Raises:
            InputError: fabric or collective are missing, or symmetry or collective is none.
        """
        from p2smt.errors import InputError
        from p2smt.synthesis.setting import synthesized_collective

        if self.fabric is None and needs_fabric:
            raise InputError("--fabric", "is missing", "give --fabric dgx1, or another")
        if self.collective is None:
            rule = "give --collective all-gather, or another"
            raise InputError("--collective", "is missing", rule)
        if self.symmetry not in ("auto", "none"):
            raise InputError(f"--symmetry {self.symmetry[:40]!r}", "must be auto or none")
        return synthesized_collective(self.collective)

    def setting(
        self, rates: o.FabricOptions, watch: StopWatch, levels: Topology | None = None
    ) -> SynthesisSetting:
        """What is asked about; ``watch``: of the making of the fabric, ``levels``: as for that.

        Raises:
            InputError: an option is missing or not understood, or they do not go together.
            OutOfTimeError: the time came before the fabric was made.
        """
        from p2smt.synthesis.setting import SynthesisSetting

        collective = self.named_collective()
        root = self.from_rank()
        text = self.messages
        many = 1 if text is None else given.count_of(text, "messages", _MOST_MESSAGES)
        made = rates.fabric(str(self.fabric), watch, levels)
        return SynthesisSetting(made, collective, root, self.symmetry == "auto", many)

    def from_rank(self) -> int:
        """The rank of --root; 0 where none is given."""
        return 0 if self.root is None else given.count_of(self.root, "root", least=0)

    def size(self) -> ScheduleSize:
        """The steps, rounds and chunks of one question.

        Raises:
            InputError: one is missing or no number, or one was given that goes with --pareto.
        """
        from p2smt.errors import InputError
        from p2smt.synthesis.setting import ScheduleSize

        for name, text in (("--max-steps", self.max_steps), ("--max-chunks", self.max_chunks)):
            if text is not None:
                raise InputError(name, "goes with --pareto or --size", "add one, or drop it")
        if self.steps is None or self.rounds is None or self.chunks is None:
            rule = "are all needed for one schedule"
            raise InputError("--steps, --rounds and --chunks", rule, "give them, or --pareto")
        return ScheduleSize(
            given.count_of(self.steps, "steps", _MOST_STEPS),
            given.count_of(self.rounds, "rounds", _MOST_ROUNDS),
            given.count_of(self.chunks, "chunks", _MOST_CHUNKS),
        )

    def _refuse_for_frontier(self) -> None:
        """The frontier chooses sizes itself.

        Raises:
            InputError: one was given.
        """
        from p2smt.errors import InputError

        named = {"--steps": self.steps, "--rounds": self.rounds, "--chunks": self.chunks}
        for name, text in named.items():
            if text is not None:
                raise InputError(name, "is found by --pareto", "drop one of them")

    def most_steps(self) -> int | None:
        """The most steps of a frontier; None: as many as it looks at by itself."""
        text = self.max_steps
        return None if text is None else given.count_of(text, "max-steps", _MOST_STEPS)

    def most_chunks(self) -> int | None:
        """The most chunks of a frontier, as its collective counts them; None: the default."""
        text = self.max_chunks
        return None if text is None else given.count_of(text, "max-chunks", _MOST_CHUNKS)


@dataclass(frozen=True)
class FileOptions:
    """Where to write what."""

    output: Text = option(
        "FILE",
        "Write the schedule: .xml (MSCCL), .json (MSCCL++) or .yaml; with --pareto and --size of a "
        "range (also a folder) one file each, such as algo-2-3-2.xml.",
        "-o",
    )
    certificate: Text = option("FILE", "Write the proof of the bound, for verify.")
    svg: Text = option(
        "FILE",
        "Draw ranks, steps and messages; with --size of a range the times by payload, too; with "
        "--objective trees and how busy links are.",
    )
    force: bool = o.FORCE

    def check(self, collective: str, root: int) -> None:
        """Refuse early what could not be written.

        Raises:
            InputError: no file can be there, or no format is named so, or it lacks the collective,
                or two files have one name.
        """
        from p2smt.cli.output import writable
        from p2smt.errors import InputError
        from p2smt.files.write import check_svg_name
        from p2smt.interop.schedule_files import format_named

        named = [path for path in (self.output, self.certificate, self.svg) if path is not None]
        for path in named:
            writable(path)
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

    def check_kept(self, *others: Text, sized: bool) -> None:
        """Refuse early what would be written over ``others``, files that are read or written too.

        ``sized``: a schedule's size will stand before the ending of the names.

        Raises:
            InputError: something would.
        """
        from p2smt.errors import InputError

        for path in (self.output, self.certificate, self.svg):
            o.check_kept(path, *others)
            if path is None or not sized:
                continue
            stem, ending = os.path.splitext(os.path.realpath(path))
            name = re.compile(re.escape(stem) + _POINT + re.escape(ending))
            for other in filter(None, others):
                if name.fullmatch(os.path.realpath(other)):
                    rule = f"could be written over by a schedule of {path[:200]!r}"
                    raise InputError(f"file {other[:200]!r}", rule, "rename one")

    def of(self, size: ScheduleSize) -> FileOptions:
        """The files of a point of a frontier: its steps, rounds and chunks before the ending."""
        return replace(
            self,
            output=_named(self.output, _size_text(size)),
            certificate=_named(self.certificate, _size_text(size)),
            svg=_named(self.svg, _size_text(size)),
        )

    def in_folder(self, setting: SynthesisSetting) -> FileOptions:
        """The same; of a folder a file in it, such as all-reduce-dgx-a100-2.xml."""
        from p2smt.synthesis.setting import question_name

        if self.output is None or not os.path.isdir(self.output):
            return self
        return replace(self, output=os.path.join(self.output, f"{question_name(setting)}.xml"))

    def write_all(
        self, found: Sequence[Synthesis], *, named: bool = True
    ) -> tuple[dict[int, Written], list[InputError]]:
        """Write what there is to write of each; ``named``: its size before the ending of files.

        Returns the paths by steps, and why some schedules were not written.
        """
        from p2smt.errors import InputError

        written: dict[int, Written] = {one.size.steps: {} for one in found}
        refused: list[InputError] = []
        for one in found:
            try:
                (self.of(one.size) if named else self).write(one, written[one.size.steps])
            except InputError as error:
                refused.append(error)
        return written, refused

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
        words = "limit" if steps is None else str(steps)
        return _put(str(_named(self.certificate, words)), bound.certificate.text())

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
        from p2smt.interop.schedule_files import written

        if self.output is None or found.schedule is None:
            return None
        return _put(self.output, written(found.schedule, self.output, force=self.force))

    def _certificate(self, found: Synthesis) -> str | None:
        if self.certificate is None or found.bound is None:
            return None
        return _put(self.certificate, found.bound.certificate.text())

    def _picture(self, found: Synthesis) -> str | None:
        from p2smt.report.schedules.space_time import space_time_svg
        from p2smt.synthesis.setting import owners, schedule_name

        if self.svg is None or found.sums is None:
            return None
        text = space_time_svg(
            found.sums,
            fabric=found.setting.fabric,
            roots=owners(found.setting, found.size),
            title=schedule_name(found.setting, found.size),
        )
        return _put(self.svg, text)


def _put(path: str, text: str) -> str:
    """Write a file; returns its path."""
    from p2smt.files.write import write_atomically

    write_atomically(path, text)
    return path


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


def _all_written(every: Iterable[Written], shown: o.ShownOptions) -> list[str]:
    """The same of several, of which a first screen has but a few."""
    from p2smt.report.screen import fitted

    lines = [line for each in every for line in written_lines(each)]
    return lines if shown.details else fitted(lines, FILES_TOLD, "files")


def asked_forest(
    question: QuestionOptions,
    ask: ThroughputOptions,
    sizes: SizeOptions,
    parts: o.PartOptions,
    files: FileOptions,
) -> AskedForest:
    """What is asked of a question of throughput.

    Raises:
        InputError: the collective is missing or none, or a file could not be written.
    """
    kept = ("fabric", "collective", "root", "topology")
    rest = {n: v for n, v in (vars(question) | vars(sizes)).items() if n not in kept}
    named = (f"--{n.replace('_', '-')}" for n, v in rest.items() if v not in (None, False, "auto"))
    others = [name for name in named if not is_default(name)]
    others += [parts.first] if parts.first else []
    collective, root = question.named_collective(needs_fabric=False), question.from_rank()
    if ask.many() is not None:
        files.check(collective, root)
    spare = question.fabric is not None and is_default("--topology")
    topology = None if spare else sizes.topology
    where = question.fabric, topology, collective, root
    paths = files.output, files.certificate, files.svg
    return AskedForest(*where, *paths, files.force, tuple(others))


@opened
def synthesize(
    *,
    question: QuestionOptions,
    sizes: SizeOptions,
    ask: ThroughputOptions,
    rates: o.FabricOptions,
    how: o.SearchOptions,
    parts: o.PartOptions,
    files: FileOptions,
    shown: o.ShownOptions,
) -> int:
    """Which rank sends which chunk over which link when: a schedule, or a proof that there is none.

    Every schedule is checked in every interleaving.  Exit codes: 0 a schedule (with --pareto and
    --size: all proved); 4 none, by a bound or by a complete search; 3 none with symmetries,
    unknown, or an open gap.  Parts (--processes, --journal ..) are those of the search with
    --symmetry none.
    """
    from p2smt.errors import OutOfTimeError
    from p2smt.result import StopWatch

    watch = StopWatch.start(how.limits())  # a large fabric takes seconds to make
    if ask.wanted(sizes.size is not None):
        forest = asked_forest(question, ask, sizes, parts, files)
        return show_throughput(ask, forest, rates, watch.left(), shown)
    if sizes.size is not None:
        question.check_sizes(sizes, parts)
        asked = replace(question, fabric=question.fabric or sizes.topology)
        return show_sizes(asked, sizes, rates, watch, how.by(), files, shown)
    sizes.refuse()
    question.check()
    parts.check_apart(files.output, files.certificate, files.svg)
    question.check_parts(parts)
    try:
        setting = question.setting(rates, watch)
    except OutOfTimeError:
        return show_unmade(question, watch.elapsed_s(), shown.json)
    files.check(setting.collective, setting.root)
    files.check_kept(question.fabric, sized=question.pareto)
    limits = watch.left()
    if question.pareto:
        return show_frontier(setting, question, limits, how.by(), files, shown)
    return show_synthesis(setting, question.size(), limits, how.by(), files, parts, shown)


def show_frontier(
    setting: SynthesisSetting,
    asked: QuestionOptions,
    limits: SearchLimits,
    solver: Solver,
    files: FileOptions,
    shown: o.ShownOptions,
) -> int:
    """The exit code; files are written first, one of each kind for every point.

    Raises:
        InputError: a file cannot be written, or its runtime would not run it; said at last.
    """
    from p2smt.cli.codes import INTERRUPTED, NOT_SETTLED, OK
    from p2smt.cli.output import tell_tables
    from p2smt.report.schedules.synthesis_data import frontier_data, frontier_tables
    from p2smt.synthesis.frontier import Ending, frontier

    found = frontier(setting, asked.most_steps(), asked.most_chunks(), limits, solver, tell_sizes)
    written, refused = files.write_all(found.schedules)
    bounds = files.write_bounds(found)
    proofs: list[Written] = [{"certificate": path} for path in bounds.values()]
    tell_tables(
        shown.json,
        lambda: frontier_data(found, written, bounds),
        lambda: (frontier_tables(found),),
        _all_written([*written.values(), *proofs], shown),
        details=shown.details,
    )
    if refused:
        raise refused[0]
    if found.ending is Ending.STOPPED:
        return INTERRUPTED
    return OK if found.proved else NOT_SETTLED


def show_sizes(
    asked: QuestionOptions,
    sizes: SizeOptions,
    rates: o.FabricOptions,
    watch: StopWatch,
    solver: Solver,
    files: FileOptions,
    shown: o.ShownOptions,
) -> int:
    """The exit code where payloads are asked about; files are written first.

    Raises:
        InputError: what is asked cannot be, a file cannot be written, or its runtime would not run
            it; of the schedules that is said at last.
    """
    from p2smt.api.synthesis import size_search
    from p2smt.cli.codes import INTERRUPTED, NOT_SETTLED, OK
    from p2smt.cli.output import tell_tables
    from p2smt.errors import OutOfTimeError
    from p2smt.fabric.fabric_file import has_wiring
    from p2smt.report.outputs.shape import printed
    from p2smt.report.page.reading import Fields
    from p2smt.report.schedules.size_data import PricedSchedules, sizes_data, sizes_tables
    from p2smt.report.schedules.size_picture import SizeCurves, size_svg
    from p2smt.report.screen import full_width
    from p2smt.report.text import printable
    from p2smt.schedules.cost.against import LEFT_OUT, LibraryPrices
    from p2smt.synthesis.by_size import SizesEnding

    payloads, topology = sizes.payloads(), sizes.under()
    try:
        own = topology if asked.fabric == sizes.topology else None
        setting = asked.setting(rates, watch, own)
    except OutOfTimeError:
        return show_unmade(asked, watch.elapsed_s(), shown.json, (topology.name, payloads))
    files = files.in_folder(setting)
    files.check(setting.collective, setting.root)
    ranging, read = len(payloads) > 1, (sizes.topology, sizes.library, asked.fabric)
    files.check_kept(*read, sized=ranging)
    replace(files, certificate=None).check_kept(files.certificate, sized=ranging)
    most = asked.most_steps(), asked.most_chunks()
    ends = payloads[0], payloads[-1]
    found = size_search(setting, topology, ends, most, solver, watch, tell_sizes).run()
    meant = [one.meant if ranging else one.found for one in found.pieces]
    written, refused = replace(files, certificate=None).write_all(meant, named=ranging)
    proof = None
    if files.certificate is not None and (claim := found.certificate) is not None:
        proof = _put(files.certificate, claim.text())
    priced = PricedSchedules.of(found, LibraryPrices(topology, setting.collective), payloads)
    answer = sizes_data(priced, written, proof, files.svg if ranging and found.pieces else None)
    if answer.svg is not None:
        _put(answer.svg, size_svg(SizeCurves.of_answer(Fields(printed(answer), "the answer"))))
    ports = f"fabric: ports of the levels of {sizes.topology}; --fabric names one of single links"
    other = f"prices are by the levels of {sizes.topology}: links of {asked.fabric} may be others"
    lines = [
        *full_width([LEFT_OUT]),
        *(full_width([printable(other)]) if own is None else []),
        *([] if own is None or has_wiring(str(sizes.topology)) else [printable(ports)]),
        *_all_written([{"certificate": proof, "svg": answer.svg}, *written.values()], shown),
    ]
    tell_tables(
        shown.json,
        lambda: answer,
        lambda: (sizes_tables(priced, short=not shown.details),),
        lines,
        details=shown.details,
    )
    if refused:
        raise refused[0]
    if found.ending is SizesEnding.STOPPED:
        return INTERRUPTED
    return OK if found.proved else NOT_SETTLED


def show_synthesis(
    setting: SynthesisSetting,
    size: ScheduleSize,
    limits: SearchLimits,
    solver: Solver,
    files: FileOptions,
    parts: o.PartOptions,
    shown: o.ShownOptions,
) -> int:
    """The exit code; files are written first, as what is shown may go to a closed pipe."""
    from p2smt.cli.codes import INTERRUPTED
    from p2smt.cli.output import tell_tables
    from p2smt.report.schedules.synthesis_data import synthesis_data, synthesis_tables
    from p2smt.synthesis.setting import tell_nobody
    from p2smt.synthesis.synthesize import synthesize

    spread = parts.over()
    tell = tell_nobody if spread else tell_sizes
    found = synthesize(setting, size, limits, solver, tell, spread)
    written: Written = {}
    try:
        files.write(found, written)
    finally:  # what was found is shown also where a runtime would not run its file
        tell_tables(
            shown.json,
            lambda: synthesis_data(found, written),
            lambda: (synthesis_tables(found),),
            written_lines(written),
            details=shown.details,
        )
    return INTERRUPTED if found.interrupted else answer_code(found.status)


def answer_code(answer: Answer) -> int:
    """The exit code of an answer."""
    from p2smt.cli.codes import INFEASIBLE, NOT_SETTLED, OK
    from p2smt.synthesis.setting import Answer

    match answer:
        case Answer.SCHEDULE:
            return OK
        case Answer.NO_SCHEDULE:
            return INFEASIBLE
        case Answer.NO_SYMMETRIC | Answer.UNKNOWN:
            return NOT_SETTLED


def show_unmade(
    asked: QuestionOptions,
    wall_s: float,
    as_json: bool,
    sized: tuple[str, tuple[int, ...]] | None = None,
) -> int:
    """The exit code where the time limit came before the fabric was made.

    ``sized``: the topology and the payloads, where these are asked about.
    """
    from p2smt.cli.codes import NOT_SETTLED
    from p2smt.cli.output import tell
    from p2smt.report.schedules.size_data import unmade_sizes_data
    from p2smt.report.schedules.synthesis_data import UNMADE, unmade_data
    from p2smt.report.text import printable
    from p2smt.synthesis.setting import shown_collective

    fabric, collective = str(asked.fabric), asked.named_collective()
    root, size = asked.from_rank(), None if asked.pareto or sized else asked.size()
    tell(
        as_json,
        lambda: (
            unmade_sizes_data(fabric, collective, root, *sized, wall_s)
            if sized
            else unmade_data(fabric, collective, root, size, wall_s)
        ),
        lambda: (
            f"unknown: {UNMADE}",
            printable(f"{shown_collective(collective)} on {fabric}"),
        ),
    )
    return NOT_SETTLED
