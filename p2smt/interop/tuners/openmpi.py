"""Rule files of Open MPI's component tuned: which algorithm runs, by ranks and size.

Facts: Open MPI v5.0.x and v4.1.x, ompi/mca/coll/tuned (coll_tuned_dynamic_file.c,
coll_tuned_dynamic_rules.c, coll_tuned_*_decision.c).  A number of ranks holds up to the next one,
the least also for all below; a size up to the next one.  0 is the library's own choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from p2smt.interop.tuners.c_text import as_bytes
from p2smt.interop.tuners.choices import (
    MODEL_ONLY,
    ChoiceTable,
    Chosen,
    Comm,
    FileFault,
    FileVerdict,
    LibraryCall,
    tabulated,
)
from p2smt.interop.tuners.openmpi_text import BrokenRules, RuleScanner

NAME = "ompi-tuned"
COLLECTIVES = (
    *("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier"),
    *("bcast", "exscan", "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block"),
    *("scan", "scatter", "scatterv", "neighbor_allgather", "neighbor_allgatherv"),
    *("neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw"),
)
"""By their numbers in these files."""
_BASIC, _TREES = "basic_linear", ("chain", "pipeline")
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "allgather": (
        *("linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc", "sparbit"),
    ),
    "allgatherv": ("default", "bruck", "ring", "neighbor", "two_proc", "sparbit"),
    "allreduce": (
        *(_BASIC, "nonoverlapping", "recursive_doubling", "ring", "segmented_ring"),
        "rabenseifner",
    ),
    "alltoall": ("linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"),
    "alltoallv": (_BASIC, "pairwise"),
    "barrier": ("linear", "double_ring", "recursive_doubling", "bruck", "two_proc", "tree"),
    "bcast": (
        *(_BASIC, *_TREES, "split_binary_tree", "binary_tree", "binomial", "knomial"),
        *("scatter_allgather", "scatter_allgather_ring"),
    ),
    "exscan": ("linear", "recursive_doubling"),
    "gather": (_BASIC, "binomial", "linear_sync"),
    "reduce": ("linear", *_TREES, "binary", "binomial", "in-order_binary", "rabenseifner"),
    "reduce_scatter": ("non-overlapping", "recursive_halving", "ring", "butterfly"),
    "reduce_scatter_block": (_BASIC, "recursive_doubling", "recursive_halving", "butterfly"),
    "scan": ("linear", "recursive_doubling"),
    "scatter": (_BASIC, "binomial", "linear_nb"),
}
"""Of Open MPI 5.0, from number 1 on."""
NOT_IN_4_1 = ("sparbit",)
TWO_RANKS = "two_proc"
"""The algorithm of two ranks: on others a call fails."""
SIZED = (
    *("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter"),
    *("reduce_scatter_block", "scatter"),
)
"""The collectives whose rules are chosen by bytes of the whole vector."""
HIERARCHICAL = (
    *("allgather", "allgatherv", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter"),
)
"""What HAN runs on several nodes before this component is asked."""
_VERSION = re.compile(r"rule-file-version-\s*[+-]?([0-9]+)")
REQUESTS_FROM = 2
"""The version of files with a fifth column."""


@dataclass(frozen=True, slots=True)
class SizeRule:
    """From so many bytes on, an algorithm; requests None: none are said."""

    line: int
    first: int
    algorithm: int
    fan: int
    segment: int
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class RankRules:
    """The rules from a number of ranks on, in their order."""

    line: int
    ranks: int
    rules: tuple[SizeRule, ...]


@dataclass(frozen=True, slots=True)
class CollectiveRules:
    """The rules of a collective, by ranks in their order."""

    line: int
    name: str
    by_ranks: tuple[RankRules, ...]


@dataclass(frozen=True, slots=True)
class TunedRules:
    """A file as it is read; ``version`` 1: none is said.  Without collectives it does nothing."""

    version: int
    collectives: tuple[CollectiveRules, ...]
    faults: tuple[FileFault, ...]

    def of(self, collective: str) -> CollectiveRules | None:
        """The rules of a collective: the last ones that the file has."""
        return next((one for one in reversed(self.collectives) if one.name == collective), None)


def read_tuned(text: str) -> TunedRules:
    """The rules as Open MPI reads them: all, or where anything is wrong none."""
    scan = RuleScanner(as_bytes(text))
    said = _VERSION.match(scan.text)
    version = int(said[1]) if said else 1
    scan.at = said.end() if said else 0
    try:
        if said is None and (late := _VERSION.search(scan.text)) is not None:
            line = scan.text.count("\n", 0, late.start()) + 1
            if not _commented(scan.text, late.start()):
                raise BrokenRules(line, "its version is not the first that it says", "version-line")
        count = scan.number("the number of collectives")
        if count > len(COLLECTIVES):
            raise BrokenRules(scan.line, f"{count} collectives are more than there are")
        found = tuple(_collective(scan, version) for _ in range(count))
    except BrokenRules as broken:
        return TunedRules(version, (), (*scan.faults, broken.fault))
    if scan.rest():
        what = f"what follows the {count} collectives that it announces is ignored"
        scan.faults.append(FileFault("counts", scan.line, what))
    return TunedRules(version, found, tuple(scan.faults))


def _commented(text: str, at: int) -> bool:
    return "#" in text[text.rfind("\n", 0, at) + 1 : at]


def _collective(scan: RuleScanner, version: int) -> CollectiveRules:
    number = scan.number("a collective")
    line = scan.line
    if number >= len(COLLECTIVES):
        raise BrokenRules(line, f"there is no collective {number}")
    count = scan.number("the number of communicator sizes")
    by_ranks = tuple(_ranks(scan, version) for _ in range(count))
    return CollectiveRules(line, COLLECTIVES[number], by_ranks)


def _ranks(scan: RuleScanner, version: int) -> RankRules:
    ranks, line = scan.number("a communicator size"), scan.line
    count = scan.number("the number of rules")
    rules = list[SizeRule]()
    for index in range(count):
        rules.append(_rule(scan, version))
        if index == 0 and rules[0].first:
            raise BrokenRules(rules[0].line, f"the first rule is for {rules[0].first} bytes, not 0")
    return RankRules(line, ranks, tuple(rules))


def _rule(scan: RuleScanner, version: int) -> SizeRule:
    first, line = scan.number("the bytes of a rule"), scan.line
    algorithm, fan, segment = (scan.number(f"the {what} of a rule") for what in _COLUMNS)
    requests = None
    if scan.line == line and scan.digit_on_line():
        if version >= REQUESTS_FROM:
            requests = scan.number("the requests of a rule")
        else:
            said = "a fifth number is read as the next one, as no rule-file-version-2 opens it"
            scan.faults.append(FileFault("version-line", line, said))
    return SizeRule(line, first, algorithm, fan, segment, requests)


_COLUMNS = ("algorithm", "fan in and out", "segment")


def tuned_rule(rules: CollectiveRules | None, ranks: int, size: int) -> SizeRule | None:
    """The rule that Open MPI takes for a communicator and a size; None: there is none."""
    if rules is None or not rules.by_ranks:
        return None
    held = rules.by_ranks[0]
    for entry in rules.by_ranks:
        if entry.ranks > ranks:
            break
        held = entry
    found = held.rules[0] if held.rules else None
    for rule in held.rules:
        if rule.first > size:
            break
        found = rule
    return found


def call_of(collective: str, rule: SizeRule | None) -> LibraryCall | None:
    """What a rule makes Open MPI run; None: its own choice."""
    if rule is None or rule.algorithm == 0:
        return None
    names = ALGORITHMS.get(collective, ())
    known = rule.algorithm <= len(names)
    name = names[rule.algorithm - 1] if known else f"no algorithm {rule.algorithm}"
    numbers = {"fan": rule.fan, "segment": rule.segment, "requests": rule.requests or 0}
    return LibraryCall(name, "", tuple((what, n) for what, n in numbers.items() if n))


def judge_tuned(text: str, comms: Sequence[Comm]) -> FileVerdict:
    """What Open MPI makes of a file for these communicators; of none, those that it names."""
    read = read_tuned(text)
    if not read.collectives:
        return FileVerdict(NAME, read.faults, (), ChoiceTable(()))
    asked = tuple(comms) or _named(read)
    names = tuple(dict.fromkeys(one.name for one in read.collectives if one.name in SIZED))
    edges = [r.first for one in read.collectives for of in one.by_ranks for r in of.rules]
    table = tabulated(
        names,
        asked,
        edges,
        lambda name, comm, size: call_of(name, tuned_rule(read.of(name), comm.ranks, size)),
    )
    faults = [*read.faults, *_said_twice(read.collectives)]
    for one in read.collectives:
        faults += [*_order(one), *_ids(one), *_two_ranks(one)]
    ordered = tuple(sorted(faults, key=lambda fault: fault.line or 10**9))
    return FileVerdict(NAME, ordered, tuple(_notes(read, asked)), table)


def _named(read: TunedRules) -> tuple[Comm, ...]:
    """A communicator on one node for each number of ranks that a file has."""
    numbers = {max(2, of.ranks) for one in read.collectives for of in one.by_ranks}
    return tuple(Comm(1, ranks) for ranks in sorted(numbers)) or (Comm(1, 2),)


def _said_twice(collectives: Sequence[CollectiveRules]) -> Iterator[FileFault]:
    names = [one.name for one in collectives]
    for index, one in enumerate(collectives):
        if one.name in names[index + 1 :]:
            yield FileFault("same-key", one.line, f"{one.name} is there again below, which counts")


def _order(one: CollectiveRules) -> Iterator[FileFault]:
    """Numbers that do not ascend: Open MPI stops at the first that is too large."""
    for before, after in pairwise(one.by_ranks):
        yield from out_of_order(after.line, f"{one.name}: ranks", before.ranks, after.ranks)
    for entry in one.by_ranks:
        for rule, other in pairwise(entry.rules):
            yield from out_of_order(other.line, f"{one.name}: bytes", rule.first, other.first)


def out_of_order(line: int, what: str, before: int, after: int) -> Iterator[FileFault]:
    """The fault of two neighbours that do not ascend."""
    if after == before:
        yield FileFault("same-key", line, f"{what} {after} are there twice, and the last counts")
    elif after < before:
        yield FileFault("not-ascending", line, f"{what} {after} come after {before}")


def _ids(one: CollectiveRules) -> Iterator[FileFault]:
    names = ALGORITHMS.get(one.name)
    if names is None:
        yield FileFault("unreachable", one.line, f"no rule is looked up for {one.name}")
        return
    for rule in (rule for entry in one.by_ranks for rule in entry.rules):
        if rule.algorithm > len(names):
            said = (
                f"{one.name} has algorithms 1 to {len(names)}, not {rule.algorithm}: the job ends"
            )
            yield FileFault("version-ids", rule.line, said)


def _two_ranks(one: CollectiveRules) -> Iterator[FileFault]:
    """The algorithm of two ranks where others reach it."""
    names = ALGORITHMS.get(one.name, ())
    if TWO_RANKS not in names:
        return
    number = names.index(TWO_RANKS) + 1
    for index, entry in enumerate(one.by_ranks):
        after = one.by_ranks[index + 1].ranks if index + 1 < len(one.by_ranks) else None
        for rule in entry.rules:
            if rule.algorithm == number and after != 3:
                said = f"{one.name}: {TWO_RANKS} fails on other than 2 ranks, which reach this row"
                yield FileFault("two-ranks-only", rule.line, said)


def _notes(read: TunedRules, comms: Sequence[Comm]) -> Iterator[str]:
    names = [one.name for one in read.collectives]
    several = [name for name in dict.fromkeys(names) if name in HIERARCHICAL]
    if several and (not comms or any(comm.nodes > 1 for comm in comms)):
        said = ", ".join(several)
        yield (
            f"on several nodes Open MPI 5.0 runs HAN and not this file for {said}: add a file of "
            "ompi-han, or --mca coll ^han"
        )
    if any(len(one.by_ranks) > 1 for one in read.collectives):
        yield (
            "a number of ranks holds up to the next one, and the least for all below it; from 6.0 "
            "on it holds from the one before to itself"
        )
    if read.version >= REQUESTS_FROM:
        yield "read from 4.1.8 and 5.0.7 on; what came before ignores the whole file"
    newer = {
        f"{one.name} {rule.algorithm}"
        for one in read.collectives
        for entry in one.by_ranks
        for rule in entry.rules
        if (call := call_of(one.name, rule)) is not None and call.algorithm in NOT_IN_4_1
    }
    if newer:
        yield f"not in Open MPI 4.1, where the job ends: {', '.join(sorted(newer))}"
    unsized = [name for name in dict.fromkeys(names) if name not in SIZED and name in ALGORITHMS]
    if unsized:
        yield f"not in the table, as their rules are chosen otherwise: {', '.join(unsized)}"


def looks_tuned(text: str) -> bool:
    """Whether a text is numbers and comments alone, in lines of at most five, with some of four."""
    rows = (line.partition("#")[0].split() for line in as_bytes(text).split("\n"))
    some_of_four = False
    for number, row in enumerate(row for row in rows if row):
        if not number and row[0].startswith("rule-file-version-"):
            return True
        if not all(re.fullmatch("[+-]?[0-9][0-9A-Za-z]*", word) for word in row):
            return False
        some_of_four |= len(row) in (4, 5)
    return some_of_four


def write_tuned(table: ChoiceTable) -> str:
    """The text of a file in which each communicator has its rows, and all others their own choice.

    Two communicators of one number of ranks are one to this format.
    """
    names = tuple(dict.fromkeys(row.collective for row in table.rows if row.call is not None))
    lines = [f"# {NAME}: all that is not here is the library's own choice"]
    lines.append(f"{len(names)} # collectives")
    for name in names:
        rows = [row for row in table.rows if row.collective == name]
        by_ranks = {row.comm.ranks: tuple(r for r in rows if r.comm == row.comm) for row in rows}
        listed = _with_neighbours(by_ranks)
        lines += [f"{COLLECTIVES.index(name)} # {name}", f"{len(listed)} # communicator sizes"]
        for ranks in listed:
            rules = [f"{row.first} {_columns(row)}{said(row)}" for row in by_ranks.get(ranks, ())]
            rules = rules or ["0 0 0 0"]
            lines += [f"{ranks} # ranks", f"{len(rules)} # bytes algorithm faninout segment"]
            lines += rules
    return "\n".join(lines) + "\n"


def _with_neighbours(ranks: Iterable[int]) -> list[int]:
    """Numbers of ranks, and those where what is not asked for begins again."""
    asked = set(ranks)
    return sorted(asked | {n + 1 for n in asked} | {2})


def said(row: Chosen) -> str:
    """The comment on the line of a row: nothing, or that it is only predicted to gain."""
    return f" # {MODEL_ONLY}" if row.model_only else ""


def _columns(row: Chosen) -> str:
    """Algorithm, fan in and out, segment."""
    if row.call is None:
        return "0 0 0"
    number = ALGORITHMS[row.collective].index(row.call.algorithm) + 1
    return f"{number} {row.call.setting('fan')} {row.call.setting('segment')}"
