"""A training run as somebody's files and command lines start it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.interop.shell.script import ShellCommand, read_script
from p2smt.interop.shell.variables import unknowns
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.on_hosts import in_order
from p2smt.training.strategy import Batch, Strategy
from p2smt.training.transformer import Transformer

_OPTIONS = re.compile("(^|_)(ARGS?|ARGUMENTS|OPTS?|OPTIONS?|EXTRAS?|FLAGS?|PARAMS?)(_|$)", re.I)
"""Names of variables that hold options."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What a file tells of a run.

    ``devices``: how many ranks it starts.  ``order``: the axes of the strategy, outermost first, as
    its trainer numbers ranks.  ``assumed``: what the file leaves to defaults that count for time or
    memory, in words; ``mapped``: its options that say what is priced; ``ignored``: those without
    effect on time and memory.  ``placement`` and
    ``experts``: the matrices that its ranks lie on, with rows for pp, dp, cp, tp and for pp, ed,
    ep, et; None: it says none, so ranks are in ``order``.  ``places``: of a plan on named hosts the
    host and the number of the device there of each rank, over the axes of the strategy, pp
    outermost; ``expert_places`` of a mixture the same over its axes of experts.
    """

    trainer: str
    model: Transformer
    batch: Batch
    strategy: Strategy
    devices: int
    order: tuple[str, ...]
    assumed: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    placement: Matrix | None = None
    experts: Matrix | None = None
    places: tuple[tuple[str, int], ...] = ()
    expert_places: tuple[tuple[str, int], ...] = ()
    mapped: tuple[str, ...] = ()

    def matrices_on(
        self, topology: Topology, hosts: Sequence[str] | None = None
    ) -> tuple[Placement | None, Placement | None]:
        """Its matrices, where they are of a topology with levels of these sizes; else none."""
        matrices = [one for one in (self.placement, self.experts) if one is not None]
        alike = all(_lies_on(one, topology.sizes) for one in matrices)
        if not matrices or not alike or not in_order(topology, hosts, self.strategy.devices):
            return None, None
        found = (None if one is None else Placement(one) for one in (self.placement, self.experts))
        where, experts = found
        return where, experts


def _lies_on(matrix: Matrix, sizes: Sequence[int]) -> bool:
    return tuple(map(prod, zip(*matrix, strict=True))) == tuple(sizes)


def check_ranks(source: str, starts: int, told: int | None) -> int:
    """How many ranks start: as the file says, or as is told (0: neither does).

    Raises:
        InputError: they differ.
    """
    if starts and told and starts != told:
        rule = f"starts {starts} ranks, and {told} devices are asked for"
        remedy = "give its topology, --use, --hosts, or --set its number of nodes"
        raise InputError(source, rule, remedy)
    return starts or told or 0


def without_even_split(strategy: Strategy, model: Transformer) -> Strategy:
    """The strategy without its split where layers go to the chunks so anyway."""
    if strategy.mtp_chunk:
        return strategy
    alone = replace(strategy, split=())
    try:
        usual = chunk_layers(model.layers, alone, model.mtp)
    except InputError:
        return strategy
    return alone if strategy.split == usual else strategy


@dataclass(slots=True)
class Options:
    """Options of a command line by name, read one by one.

    Names are given with their dashes; several are synonyms.  ``source`` names the file in errors;
    ``values`` of each option in order; ``read``: those that were asked for; ``assumed``: what
    stands in place of options that are not given, in words; ``doubted``: as of a script.
    """

    source: str
    values: dict[str, tuple[str, ...]]
    read: set[str] = field(default_factory=set)
    assumed: list[str] = field(default_factory=list)
    doubted: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(words: Sequence[str], source: str) -> Options:
        """The options among words, each with those that follow it up to the next.

        Raises:
            InputError: an option is given twice with different values.
        """
        found: dict[str, tuple[str, ...]] = {}
        for name, values in _grouped(words):
            if found.get(name, values) != values:
                rule = f"has {_said(name, found[name])} and {_said(name, values)}"
                raise InputError(source, rule, "leave one of them")
            found[name] = values
        return Options(source, found)

    def check_known(self, required: Iterable[str], ignored: Container[str]) -> None:
        """Raise InputError if something is not known, naming all that would tell it.

        ``required``: options without which nothing can be said; ``ignored``: those whose values do
        not count, unless a variable among them seems to hold further options.
        """
        wanted = [name for name in required if name not in self.values]
        for name, values in self.values.items():
            asked = unknowns(values)
            wanted += filter(_OPTIONS.search, asked) if name in ignored else asked
        if wanted:
            raise missing(self.source, wanted, self.doubted)

    def has(self, *names: str) -> bool:
        """Whether an option is there."""
        self.read.update(names)
        return any(name in self.values for name in names)

    def words(self, *names: str) -> tuple[str, ...]:
        """The values of an option; empty: it is not there, or a flag."""
        self.read.update(names)
        return next((self.values[name] for name in names if name in self.values), ())

    def text(self, *names: str, default: str = "") -> str:
        """The first value of an option."""
        found = self.words(*names)
        return found[0] if found else default

    def count(self, *names: str, default: int = 0, least: int = 1) -> int:
        """A whole number.

        Raises:
            InputError: it is none.
        """
        found = self.text(*names)
        if not self.has(*names):
            return default
        if not found.isdecimal() or int(found) < least:
            given = f"{self.source}: {names[0]} {found[:40]}"
            raise InputError(given, f"must be a whole number, at least {least}")
        return int(found)

    def assume(self, words: str) -> None:
        """Note what stands in place of something that is not given."""
        self.assumed.append(words)

    def left(self) -> list[str]:
        """Options that were not asked for."""
        return [name for name in self.values if name not in self.read]


def missing(
    source: str, names: Iterable[str], doubted: Mapping[str, str] = MappingProxyType({})
) -> InputError:
    """The error of a file that leaves something open, naming all that would tell it.

    ``doubted``: variables that a file beside it may set anew, with its name.
    """
    once = list(dict.fromkeys(names))
    settings = (name if name == "--model" else f"--set {_quoted(name)}=.." for name in once)
    doubts = (f" ({doubted[one]} may set it)" if one in doubted else "" for one in once)
    said = ", ".join(map("".join, zip(once, doubts, strict=True)))
    return InputError(source, f"does not say {said}", f"give {' '.join(settings)}")


def _grouped(words: Sequence[str]) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Options with their values; blanks in a word part it, as in ``"--lr 1e-4"``."""
    name, values = "", []
    for word in words:
        if not re.match(r"--?[A-Za-z]", word):
            values.append(word)
            continue
        if name:
            yield name, tuple(values)
        name, *rest = word.split("=", 1) if "=" in word.split()[0] else word.split()
        values = rest
    if name:
        yield name, tuple(values)


def _said(name: str, values: Sequence[str]) -> str:
    return " ".join([name, *values])[:60]


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+", name) else f"'{name}'"


# How programs are started.


_EACH = ("--nproc-per-node", "--nproc_per_node", "--num_gpus")
_TASKS = ("--ntasks", "-np", "-n")
_TASKS_EACH = ("--ntasks-per-node",)
_NODES = ("--nnodes", "--nodes", "--num_nodes", "-N")
_NUMBERS = re.compile(r"\d+|\d+[:-]\d+|gpu|auto|cpu|xpu")
"""Numbers, ranges of them (torchrun, srun), and what torchrun counts itself."""


@dataclass(frozen=True, slots=True)
class Started:
    """A program with its options, and how many ranks its starter makes (0: it does not say).

    ``left``: the values of variables that the script leaves to its environment, in words, or none;
    ``files``: those that it writes before, by name; ``doubted``: as of a script.
    """

    program: str
    words: tuple[str, ...]
    line: int
    ranks: int
    left: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    doubted: Mapping[str, str] = field(default_factory=dict)


_HOSTS_IN_ORDER = "SLURM_HOSTFILE"
LAUNCH = "launch"
"""The setting that says in which line the training is that is meant, where there are several."""


def started(text: str, settings: Mapping[str, str], marks: Iterable[str], source: str) -> Started:
    """The one program that a script starts with some of the options ``marks``.

    Raises:
        InputError: there is none, or there are several that differ.
    """
    script = read_script(text, settings, source)
    wanted = set(marks)
    found = [one for one in script.commands if wanted & {word.split("=")[0] for word in one.words}]
    programs = {one.words: one for one in (_program(one, source) for one in found)}
    if LAUNCH in settings:
        told = settings[LAUNCH]
        programs = {w: one for w, one in programs.items() if str(one.line) == told}
        if not programs:
            raise InputError(f"--set launch={told[:20]}", f"{source} starts no training there")
    if not programs:
        inner = f"; it reads {', '.join(script.sourced[:3])}" if script.sourced else ""
        rule = f"starts nothing with options such as {sorted(wanted)[0]}{inner}"
        raise InputError(source, rule, "give the script that has the launch command")
    if len(programs) > 1:
        lines = ", ".join(str(one.line) for one in programs.values())
        rule = f"starts several trainings, in lines {lines}"
        raise InputError(
            source, rule, f"give --set launch={next(iter(programs.values())).line}, say"
        )
    values = [f"{name}={value}" for name, value in script.defaults.items() if value]
    shown = ", ".join(values[:6]) + (", .." if len(values) > 6 else "")
    left: tuple[str, ...] = ()
    if values:
        left = (f"left to the environment: {shown} (--set NAME=VALUE)",)
    unread = ", ".join(script.sourced[:3]) + (", .." if len(script.sourced) > 3 else "")
    if unread:
        left += (f"not read, and taken to set nothing else: {unread} (--set NAME=VALUE)",)
    if _HOSTS_IN_ORDER in text:
        left += (f"{_HOSTS_IN_ORDER} orders its hosts: priced in the order of --hosts",)
    chosen = next(iter(programs.values()))
    return replace(chosen, left=left, files=script.files, doubted=script.doubted)


def _program(command: ShellCommand, source: str) -> Started:
    words = command.words
    at = next((n for n, word in enumerate(words) if word.endswith(".py")), -1)
    if at < 0 and "-m" in words[:-1]:  # a module; a launcher that is one, too, came before it
        at = len(words) - 1 - words[:-1][::-1].index("-m")
    program = words[at] if at >= 0 else ""
    before = (*command.under, *words[: max(at, 0)])
    return Started(program, words[at + 1 :], command.line, _ranks(before, source))


def _ranks(words: Sequence[str], source: str) -> int:
    """Ranks that the words before a program start; 0: they do not say.

    Of a starter under another one (torchrun under srun) it is the inner that makes ranks.

    Raises:
        InputError: a number is none.
    """
    options = Options(source, dict(_grouped(words)))  # of several the last counts
    nodes = options.text(*_NODES, default="1")
    if not options.has(*_EACH) and options.has(*_TASKS):
        nodes, each = "1", options.text(*_TASKS)
    else:
        each = options.text(*_EACH, *_TASKS_EACH)
    for said in filter(None, (nodes, each)):
        if not _NUMBERS.fullmatch(said) and not unknowns([said]):
            rule = f"starts its program {said[:40]!r} times, or on so many nodes"
            raise InputError(source, rule, "give whole numbers, by --set where it is a variable")
    return int(nodes) * int(each) if nodes.isdecimal() and each.isdecimal() else 0
