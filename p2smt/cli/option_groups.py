"""Options that several commands share, alone and in groups that say what they mean together.

Numbers are read by p2smt itself, so that a bad one is reported like every other bad value.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.cli.guide.progress import tell_parts, teller
from p2smt.cli.output import note, writable
from p2smt.cli.parameters import Text, Texts, flag, option
from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.cluster.topology import Algorithm, Topology
    from p2smt.collectives.dispatch import AnyKind
    from p2smt.collectives.names import Form, RequestKind
    from p2smt.fabric.fabric import Fabric
    from p2smt.parallel_search.parallel_options import Spread
    from p2smt.parallelism.placement import AxisRule, FixedEntry, ParallelismAxis, Placement
    from p2smt.parallelism.request import Problem, Request
    from p2smt.result import SearchLimits, StopWatch
    from p2smt.solvers.ask import Solver

# Single options.

AXES = option("NAME=N,..", "Axes such as dp=8,tp=4 (or sizes: 8,4).", "-a")
FORBID = option("RULE", 'Rule such as "dp across rack".')
FORCE = flag("Write also what the runtime of that format would not run.")
HOSTS = option(
    "FILE|LIST",
    "Hosts that the job got: a file with one (or a host list) a line, or a list such as "
    "n[01-05,09]; default: $SLURM_JOB_NODELIST, else all of the topology, which 'all' says.",
)
JSON = flag("Print one JSON object.")
DETAILS = flag("All tables behind the first screen.")
KIND = option("KIND", "all-reduce (default), reduce-scatter or all-gather.")
LENGTH = option("N", "Most instructions of a program.", default="5")
LEVELS = option("N,N,..", "Level sizes such as 4,16, outermost first.")
LIMIT = option("N", "Stop after so many.")
OBJECTIVE = option("NAME", "sum or max.", default="sum")
PLACEMENT = option("MATRIX", "Matrix such as [[4,1],[1,16]].")
PLAN_FILE = option("FILE", "Write the plan here, as JSON.", "-o")
PROGRAM = option("TEXT", "Program text, or single; default: single collectives.")
REQUIRE = option("RULE", 'Rule such as "tp within node".')
SPEC_HELP = "Preset, preset:NODES, preset@PROFILE:NODES, or a YAML file."
TOPOLOGY = option("NAME[:N]|FILE", SPEC_HELP, "-t")
WHAT_IF = option(
    "CHANGE",
    "What it would gain, solved anew: leaf*2 (a level's bandwidth), leaf=3 (its number), "
    "hosts=30, memory=141GB (of a device), batch=2048; a level's name comes first.",
)
USE = option(
    "LEVEL=N", "Only the first N of each entity's: gpu=6 of a node of 8, gpu=64 of a rack of 72."
)


def plan_writable(output: Text, *others: Text) -> None:
    """Raise InputError early where a file could not be written, or a plan's name is none."""
    for path in (output, *others):
        writable(path)
    if output is not None:
        from p2smt.plans.file import check_plan_name

        check_plan_name(output)


def check_kept(output: Text, *read: Text) -> None:
    """That nothing that is read is written over.

    Raises:
        InputError: the output is one of these files.
    """
    from p2smt.files.write import same_file

    if output is not None and any(same_file(output, path) for path in read if path):
        raise InputError(f"output {output[:200]!r}", "is a file that is read", "name another")


# What is asked about.


@dataclass(frozen=True)
class ClusterOptions:
    """Where ranks are."""

    topology: Text = TOPOLOGY
    use: Texts = USE

    def under(self, prices: PriceOptions) -> Topology:
        """The topology, which must be given, with what says how collectives run there."""
        spec, library, how = self.topology, prices.library, prices.algorithm
        nominal, use = prices.nominal, self.use
        return given.topology_of(spec, library, nominal=nominal, algorithm=how, use=use)


@dataclass(frozen=True)
class ShownOptions:
    """How much of an answer is printed, and as what."""

    details: bool = DETAILS
    json: bool = JSON


@dataclass(frozen=True)
class FabricOptions:
    """What a unit of a fabric's bandwidth is."""

    unit: Text = option("RATE", "Bandwidth of one unit, such as 25GB/s.")
    link_bandwidth: Text = option(
        "RATE", "Of one NVLink in each direction, for what nvidia-smi topo -m printed."
    )

    def fabric(
        self, spec: str, watch: StopWatch | None = None, levels: Topology | None = None
    ) -> Fabric:
        """The fabric of that name or file; ``levels``: of what is one where no fabric is called so.

        Raises:
            InputError: there is none, or a rate is not understood.
            OutOfTimeError: the time of ``watch`` came before it was made.
        """
        from p2smt.fabric.fabric_file import fabric_of_levels, has_wiring
        from p2smt.interop.fabrics import read_fabric
        from p2smt.units import exact_rate

        link = self.link_bandwidth
        unit = None if self.unit is None else exact_rate(self.unit, "--unit")
        if levels is not None and link is None and not has_wiring(spec):
            return replace(fabric_of_levels(levels, unit, watch), name=spec[:60])
        return read_fabric(
            spec,
            unit=unit,
            link_bandwidth=None if link is None else exact_rate(link, "--link-bandwidth"),
            watch=watch,
        )


@dataclass(frozen=True)
class PriceOptions:
    """How collectives run, which says what they cost."""

    algorithm: Text = option(
        "NAMES",
        "Such as ring or ring,tree: no others run, where these can; best (or auto): the cheapest; "
        "default: the library's choice, without one the cheapest.",
    )
    library: Text = option(
        "NAME|FILE|none",
        "Communication library such as nccl-2.30, rccl or gloo, instead of the topology's.",
    )
    nominal: bool = flag("The links' nominal rates: no library, nothing measured.")
    pipeline: Text = option(
        "M|auto", "Chunks in which programs of several steps run, overlapping; default: 1."
    )

    def given(self) -> bool:
        """Whether any of them is."""
        return self != PriceOptions()

    def algorithms(self) -> tuple[Algorithm, ...] | None:
        """Those that may run; None: any."""
        return given.algorithms_of(self.algorithm)

    def chunks(self) -> int | None:
        """A number of chunks, or None for ``auto``."""
        return given.pipeline_of(self.pipeline)


@dataclass(frozen=True)
class RequestOptions:
    """What is sent; --kind is what --reduce asks for."""

    reduce: Texts = option("AXES[=SIZE[*N]]", "All-reduce, such as dp=1GiB or tp=64M*128.")
    reduce_scatter: Texts = option("AXES[=SIZE[*N]]", "Such as dp=1GiB (bytes: the input).")
    all_gather: Texts = option("AXES[=SIZE[*N]]", "Such as dp=1GiB (bytes: the output).")
    all_to_all: Texts = option("AXES[=SIZE[*N]]", "Such as ep=64MiB (bytes: all a rank sends).")
    dispatch: Texts = option(
        "AXES[=SIZE[*N]],..",
        "To experts, such as ep=7MiB,experts=256,active=8 (bytes: a rank's tokens); with "
        "groups=8,top_groups=4 node-limited, with imbalance=1.3 uneven.",
    )
    send: Texts = option("AXES[=SIZE[*N]]", "Such as pp=16MiB, to the next rank.")
    kind: Text = KIND

    @property
    def some(self) -> bool:
        """Whether there is any request."""
        plain = (self.reduce, self.reduce_scatter, self.all_gather, self.all_to_all, self.send)
        return any((*plain, self.dispatch))

    def texts(self) -> list[tuple[AnyKind, str]]:
        """Each with its kind: in the order of the kinds, then as given.

        Raises:
            InputError: there is none, --kind has nothing to say, or a dispatch says too little.
        """
        if not self.some:
            rule = "are missing"
            raise InputError("requests", rule, "name the axes, such as --reduce dp=1GiB")
        if self.kind is not None and not self.reduce:
            raise InputError("--kind", "says what --reduce asks for", "drop it, or give --reduce")
        return self._by_kind()

    def _by_kind(self) -> list[tuple[AnyKind, str]]:
        from p2smt.collectives.names import RequestKind
        from p2smt.parallelism.request import dispatch_parts

        kinds: tuple[tuple[RequestKind, Texts], ...] = (
            (given.program_kind(self.kind), self.reduce),
            (RequestKind.REDUCE_SCATTER, self.reduce_scatter),
            (RequestKind.ALL_GATHER, self.all_gather),
            (RequestKind.ALL_TO_ALL, self.all_to_all),
            (RequestKind.SEND, self.send),
        )
        found: list[tuple[AnyKind, str]]
        found = [(kind, text) for kind, texts in kinds for text in texts or []]
        parted = [dispatch_parts(text) for text in self.dispatch or []]
        return found + [(kind, size) for size, kind in parted]

    def sized(self) -> tuple[Request, ...]:
        """The requests, each of which must have a size."""
        from p2smt.parallelism.request import parse_request

        return tuple(parse_request(text, kind) for kind, text in self._by_kind())


@dataclass(frozen=True)
class RuleOptions:
    """Side constraints on the matrix."""

    require: Texts = REQUIRE
    forbid: Texts = FORBID
    fix: Texts = option("AXIS=LEVEL:N", 'Matrix entry such as "pp=rack:2".')

    def rules(
        self, levels: Sequence[str], axes: Sequence[ParallelismAxis]
    ) -> tuple[AxisRule | FixedEntry, ...]:
        """What they say of these levels and axes."""
        from p2smt.parallelism.placement import parse_fix, parse_rule

        names = [axis.name for axis in axes]
        texts = [(text, True) for text in self.require or []]
        texts += [(text, False) for text in self.forbid or []]
        found: list[AxisRule | FixedEntry] = [
            parse_rule(text, require=wanted, axis_names=names, level_names=levels)
            for text, wanted in texts
        ]
        return (*found, *(one for text in self.fix or [] for one in parse_fix(text, names, levels)))


@dataclass(frozen=True)
class ProgramOptions:
    """Which programs are looked for."""

    length: str = LENGTH
    forbid_form: Texts = option("FORM", "inside, parallel or master.")
    max_steps_at: Texts = option(
        "LEVEL=N", "Such as node=1: at most 1 step of a program crosses nodes."
    )

    def most(self) -> int:
        """The most instructions of one."""
        from p2smt.parallelism.request import MAX_PROGRAM_LENGTH

        return given.count_of(self.length, "length", MAX_PROGRAM_LENGTH)

    def forbidden(self) -> frozenset[Form]:
        """Forms by name; the canonical form of a grouping counts."""
        from p2smt.collectives.names import Form

        known = {form.value: form for form in Form}
        for text in self.forbid_form or []:
            if text not in known:
                raise InputError(f"form {text[:40]!r}", f"must be one of {', '.join(known)}")
        return frozenset(known[text] for text in self.forbid_form or [])

    def step_limits(self, levels: Sequence[str]) -> tuple[tuple[str, int], ...]:
        """Limits such as ``node=1``: at most one step with groups that span several nodes."""
        return tuple(given.step_limit_of(text, levels) for text in self.max_steps_at or [])


# How it is searched for.


@dataclass(frozen=True)
class SearchOptions:
    """The solver and its limits."""

    solver: str = option("NAME", "cpsat or z3.", default="cpsat")
    time_limit: Text = option("TIME", "Wall time such as 30, 90s, 5m or 1h.")
    seed: str = option("N", "Solver seed.", default="0")
    workers: str = option("N", "Solver threads.", default="1")

    def by(self) -> Solver:
        """The solver."""
        from p2smt.solvers.ask import solver_of

        return solver_of(self.solver)

    def limits(self, limit: Text = None) -> SearchLimits:
        """The limits; ``limit``: after how many answers to stop, as given."""
        from p2smt.result import SearchLimits

        return SearchLimits(
            None if self.time_limit is None else given.seconds_of(self.time_limit, "time limit"),
            None if limit is None else given.count_of(limit, "limit"),
            given.count_of(self.seed, "seed", 2**31 - 1, least=0),
            given.count_of(self.workers, "workers", 256),
            told=teller(),
        )


@dataclass(frozen=True)
class PartOptions:
    """A search in parts, on several processes or with a journal."""

    processes: Text = option("N", "Search in N processes, each with --workers threads.")
    engine: Text = option("NAME", "in-process, processes or dask.")
    scheduler: Text = option("ADDRESS", "Of a Dask cluster, such as tcp://10.0.0.1:8786.")
    journal: Text = option("FILE", "Write the search here, and go on from it.")
    budget: Text = option("TIME", "Cut a part that takes longer, such as 10s.")

    def given(self) -> dict[str, Text]:
        """Each by its name."""
        return {f"--{name}": text for name, text in asdict(self).items()}

    @property
    def wanted(self) -> bool:
        """Whether the search goes in parts: one process and nothing else is the ordinary way."""
        return bool(self.first)

    @property
    def first(self) -> str:
        """The first option that asks for parts, as it would be written."""
        named = ((name, text) for name, text in self.given().items() if text is not None)
        return next(
            (f"{name} {text[:60]}" for name, text in named if (name, text) != ("--processes", "1")),
            "",
        )

    def check_apart(self, *outputs: Text) -> None:
        """Hold that no output would be written over the journal.

        Raises:
            InputError: one is the same file.
        """
        named = {os.path.realpath(path) for path in outputs if path and "\0" not in path}
        journal = self.journal or ""
        if journal and "\0" not in journal and os.path.realpath(journal) in named:
            rule = "is an output as well, which would overwrite it"
            raise InputError(f"journal {journal[:200]!r}", rule, "rename one")

    def spread(self) -> Spread:
        """What they mean.

        Raises:
            InputError: one of them is out of range, or does not go with another.
        """
        from p2smt.parallel_search.parallel_options import MAX_PROCESSES, Spread

        if self.scheduler is not None and self.processes is not None:
            both = f"--processes {self.processes[:20]} and --scheduler {self.scheduler[:60]}"
            raise InputError(both, "a scheduler has workers of its own", "drop --processes")
        processes = given.count_of(self.processes or "1", "--processes", MAX_PROCESSES)
        writable(self.journal)
        budget_s = None if self.budget is None else given.seconds_of(self.budget, "--budget")
        where = processes, self.engine, self.scheduler
        return Spread(*where, self.journal, budget_s, told=note)

    def over(self) -> Spread | None:
        """The spread that is asked for; None: the search goes in one piece."""
        return replace(self.spread(), progress=tell_parts) if self.wanted else None


# Requests on a topology, and on a placement there.

_UNSIZED = 1


@dataclass(frozen=True, slots=True)
class PlacedRequests:
    """A problem on a placement; ``sized`` says of each request whether its size was given.

    A request without a size stands with one byte.
    """

    problem: Problem
    placement: Placement
    sized: tuple[bool, ...]

    def of(self, payload_bytes: int | None) -> Problem:
        """The problem with this payload for every request; None: as given.

        Raises:
            InputError: a request has no size.
        """
        if payload_bytes is None:
            for request, sized in zip(self.problem.requests, self.sized, strict=True):
                if not sized:
                    remedy = f"write it like {'+'.join(request.axes)}=1GiB"
                    raise InputError(request.name, "has no size", remedy)
            return self.problem
        requests = tuple(replace(r, payload_bytes=payload_bytes) for r in self.problem.requests)
        return replace(self.problem, requests=requests)


def placement_of(text: Text, topology: Topology, axes: tuple[ParallelismAxis, ...]) -> Placement:
    """The matrix of --placement, its sizes checked; that of one axis need not be given."""
    from p2smt.cluster.topology import check_even
    from p2smt.parallelism.placement import Placement

    check_even(topology)
    if text is None and [axis.size for axis in axes] == [topology.devices]:
        return Placement((topology.sizes,))  # one axis over all devices lies in one way alone
    if text is None:
        raise InputError("--placement", "is missing", "give it like '[[4,1],[1,16]]'")
    example = "a matrix such as [[4,1],[1,16]], with a row per axis and a column per level"
    numbers = given.whole_numbers_of(text, "--placement", example)
    rows = [row for row in numbers if isinstance(row, list)]
    if numbers and not rows:
        rule = "is an order of ranks, and what is given here is a matrix"
        remedy = f"`p2smt compare` says what orders of ranks cost; or give {example}"
        raise InputError(f"--placement {text[:60]!r}", rule, remedy)
    if not rows:
        raise InputError(f"--placement {text[:60]!r}", "is not a matrix", f"give {example}")
    found = Placement(tuple(tuple(row) for row in rows))
    found.check(topology.sizes, [axis.size for axis in axes])
    return found


def placed_requests(
    cluster: ClusterOptions,
    axes: Text,
    placement: Text,
    requests: RequestOptions,
    prices: PriceOptions | None = None,
    objective: str = "sum",
    *,
    timed: bool = False,
) -> PlacedRequests:
    """The problem that the options describe, and its placement."""
    problem = requested(cluster, axes, requests, prices, objective, timed=timed)
    return placed_on(problem, placement, requests, timed=timed)


def placed_on(
    problem: Problem, placement: Text, requests: RequestOptions, *, timed: bool
) -> PlacedRequests:
    """A problem that these options describe, on a placement."""
    from p2smt.cluster.allocation import check_stated
    from p2smt.parallelism.request import spanned_levels

    sized = tuple("=" in text for _, text in requests.texts())
    placed = placement_of(placement, problem.topology, problem.axes)
    if timed:
        check_stated(problem.topology, spanned_levels(problem, placed))
    return PlacedRequests(problem, placed, sized)


def requested(
    cluster: ClusterOptions,
    axes: Text,
    requests: RequestOptions,
    prices: PriceOptions | None = None,
    objective: str = "sum",
    *,
    timed: bool = False,
) -> Problem:
    """The problem that the options describe, on no placement yet.

    Where no time is to be told (``timed``) it is said what is taken of uplinks.

    Raises:
        InputError: an option is wrong.
    """
    from p2smt.cluster.allocation import unstated_levels
    from p2smt.parallelism.request import Problem, parse_objective

    prices = prices or PriceOptions()
    topology = cluster.under(prices)
    for name in () if timed else unstated_levels(topology):
        note(f"the bandwidth of {name} uplinks is not stated: they are taken as non-blocking")
    return Problem(
        topology,
        given.axes_of(axes),
        tuple(_request(text, kind) for kind, text in requests.texts()),
        objective=parse_objective(objective),
        algorithms=prices.algorithms(),
        pipeline=prices.chunks(),
    )


def _request(text: str, kind: AnyKind) -> Request:
    """A request whose size may be missing, such as ``dp``, ``dp=1GiB`` or ``tp=64MiB*128``."""
    from p2smt.parallelism.request import Request, parse_request

    if "=" in text:
        return parse_request(text, kind)
    return Request(kind, tuple(name.strip() for name in text.split("+")), _UNSIZED)
