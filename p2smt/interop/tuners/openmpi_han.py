"""Rule files of Open MPI's component HAN: which component carries a collective on several nodes.

Facts: Open MPI v5.0.x, ompi/mca/coll/han (coll_han_dynamic_file.c, coll_han_dynamic.c).  HAN comes
before tuned on several nodes, and is not there on one; where its file says ``tuned``, that
component's own file counts.  Sizes are the whole vector's, of an all-gather one rank's part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from p2smt.errors import InputError
from p2smt.interop.tuners.c_text import as_bytes
from p2smt.interop.tuners.choices import (
    ChoiceTable,
    Chosen,
    Comm,
    FileFault,
    FileVerdict,
    LibraryCall,
    tabulated,
)
from p2smt.interop.tuners.openmpi import COLLECTIVES, HIERARCHICAL, out_of_order, said
from p2smt.interop.tuners.openmpi_text import BrokenRules, RuleScanner

NAME = "ompi-han"
WHOLE = 2
"""The level of the whole communicator; the others are HAN's steps inside nodes and between them."""
LEVELS = ("intra_node", "inter_node", "global_communicator")
COMPONENTS = ("self", "basic", "libnbc", "tuned", "sm", "adapt", "han")
HAN = "han"
PER_RANK = ("allgather", "gather", "scatter")
"""The collectives whose sizes are one rank's part."""
SIZED = (*PER_RANK, "allreduce", "bcast", "reduce")
_WAYS = ("default", "intra", "simple")
ALGORITHMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(SIZED, _WAYS),
    **dict.fromkeys(("allreduce", "reduce"), (*_WAYS, "reproducible")),
    "barrier": ("default", "simple"),
}
"""Of HAN, from number 0 on."""


@dataclass(frozen=True, slots=True)
class HanRule:
    """From so many bytes on, a component, of HAN with its algorithm."""

    line: int
    first: int
    component: str
    algorithm: str = "default"


@dataclass(frozen=True, slots=True)
class HanSize:
    """The rules from a size of communicator on (ranks of a node, nodes, or all ranks)."""

    line: int
    least: int
    rules: tuple[HanRule, ...]


@dataclass(frozen=True, slots=True)
class HanLevel:
    """The rules of a collective on one level."""

    line: int
    collective: str
    level: int
    sizes: tuple[HanSize, ...]


@dataclass(frozen=True, slots=True)
class HanRules:
    """A file as it is read; without levels it does nothing."""

    levels: tuple[HanLevel, ...]
    faults: tuple[FileFault, ...]

    def of(self, collective: str, level: int = WHOLE) -> HanLevel | None:
        """The rules of a collective on a level: in its last entry, the last of that level."""
        own = [one for one in self.levels if one.collective == collective]
        last = [one for one in own if one.line >= max(of.line for of in own if of.level < 0)]
        return next((one for one in reversed(last) if one.level == level), None)


def read_han(text: str) -> HanRules:
    """The rules as HAN reads them: all, or where anything is wrong none."""
    scan, found = RuleScanner(as_bytes(text)), list[HanLevel]()
    try:
        count = scan.number("the number of collectives")
        if count == 0:
            raise BrokenRules(scan.line, "it announces no collective")
        for _ in range(count):
            found += _collective(scan)
    except BrokenRules as broken:
        return HanRules((), (*scan.faults, broken.fault))
    if scan.rest():
        what = f"what follows the {count} collectives that it announces is ignored"
        scan.faults.append(FileFault("counts", scan.line, what))
    return HanRules(tuple(found), tuple(scan.faults))


def _collective(scan: RuleScanner) -> Iterator[HanLevel]:
    """A mark of level -1 where the collective begins, then its levels."""
    name, line = _collective_name(scan), scan.line
    yield HanLevel(line, name, -1, ())
    for _ in range(scan.number("the number of levels")):
        level, at = _level(scan), scan.line
        count = scan.number("the number of communicator sizes")
        sizes = tuple(_size(scan, name, level, index == 0) for index in range(count))
        yield HanLevel(at, name, level, sizes)


def _collective_name(scan: RuleScanner) -> str:
    name = scan.word("a collective")
    if name in COLLECTIVES:
        return name
    if re.fullmatch("[+-]?[0-9]+", name) and 0 <= int(name) < len(COLLECTIVES):
        return COLLECTIVES[int(name)]
    raise BrokenRules(scan.line, f"{name!r} is no collective", "unknown-name")


def _level(scan: RuleScanner) -> int:
    name = scan.word("a level")
    if name in LEVELS:
        return LEVELS.index(name)
    if re.fullmatch("[+-]?[0-9]+", name) and 0 <= int(name) < len(LEVELS):
        return int(name)
    raise BrokenRules(scan.line, f"{name!r} is no level, 0 to {WHOLE}", "unknown-name")


def _size(scan: RuleScanner, collective: str, level: int, opens: bool) -> HanSize:
    least, line = scan.number("a communicator size"), scan.line
    if least < 1 or (opens and least > 1):
        raise BrokenRules(line, f"the first communicator size must be 1, not {least}")
    count = scan.number("the number of rules")
    rules = tuple(_rule(scan, collective, level, index == 0) for index in range(count))
    return HanSize(line, least, rules)


def _rule(scan: RuleScanner, collective: str, level: int, opens: bool) -> HanRule:
    first, line = scan.number("the bytes of a rule", size=True), scan.line
    if opens and first > 1:
        raise BrokenRules(line, f"the first rule is for {first} bytes, not 0")
    component = scan.word("a component")
    if component not in COMPONENTS:
        raise BrokenRules(line, f"{component!r} is no component", "unknown-name")
    algorithm = "default"
    if component == HAN and scan.takes("@"):
        algorithm = _algorithm(scan, collective, line)
    if scan.takes("["):
        if level != 0:
            said = "segments are ignored on other levels than 0"
            scan.faults.append(FileFault("unreachable", line, said))
        while not scan.takes("]"):
            scan.number("a segment")
    return HanRule(line, first, component, algorithm)


def _algorithm(scan: RuleScanner, collective: str, line: int) -> str:
    name, known = scan.word("an algorithm"), ALGORITHMS.get(collective, ("default",))
    if name in known:
        return name
    if name.isdigit() and int(name) < len(known):
        return known[int(name)]
    raise BrokenRules(line, f"HAN has no algorithm {name!r} of {collective}", "unknown-name")


def han_rule(rules: HanLevel | None, members: int, size: int) -> HanRule | None:
    """The rule that HAN takes: of the last number not above, the last size not above."""
    if rules is None:
        return None
    held = next((one for one in reversed(rules.sizes) if one.least <= members), None)
    if held is None:
        return None
    return next((rule for rule in reversed(held.rules) if rule.first <= size), None)


def call_of(rule: HanRule | None) -> LibraryCall | None:
    """What carries the collective; None: HAN, as without a file."""
    if rule is None:
        return None
    way = "" if rule.algorithm == "default" else f"@{rule.algorithm}"
    return LibraryCall(f"{rule.component}{way}")


def judge_han(text: str, comms: Sequence[Comm]) -> FileVerdict:
    """What HAN makes of a file for these communicators; of none, those that it names."""
    read = read_han(text)
    if not read.levels:
        return FileVerdict(NAME, read.faults, (), ChoiceTable(()))
    asked = tuple(comms) or _named(read)

    def part(collective: str, comm: Comm) -> int:
        return comm.ranks if collective in PER_RANK else 1

    def ask(collective: str, comm: Comm, size: int) -> LibraryCall | None:
        if comm.nodes == 1:
            return None
        bytes_seen = size // part(collective, comm)
        return call_of(han_rule(read.of(collective), comm.ranks, bytes_seen))

    rules = [(one.collective, rule) for one in read.levels for of in one.sizes for rule in of.rules]
    edges = [rule.first * part(name, comm) for name, rule in rules for comm in asked]
    names = tuple(dict.fromkeys(one.collective for one in read.levels if one.collective in SIZED))
    table = tabulated(names, asked, edges, ask)
    faults = [*read.faults, *_repeats(read)]
    for one in read.levels:
        faults += [*_order(one), *_useless(one)]
    ordered = tuple(sorted(faults, key=lambda fault: fault.line or 10**9))
    return FileVerdict(NAME, ordered, tuple(_notes(read)), table)


def _named(read: HanRules) -> tuple[Comm, ...]:
    """A communicator of two nodes for each number of ranks that a file has."""
    numbers = {of.least for one in read.levels if one.level == WHOLE for of in one.sizes}
    halves = sorted({max(1, (ranks + 1) // 2) for ranks in numbers})
    return tuple(Comm(2, each) for each in halves) or (Comm(2, 1),)


def _repeats(read: HanRules) -> Iterator[FileFault]:
    begins = [one for one in read.levels if one.level < 0]
    for index, one in enumerate(begins):
        if any(after.collective == one.collective for after in begins[index + 1 :]):
            said = f"{one.collective} is there again below, which counts"
            yield FileFault("same-key", one.line, said)


def _order(one: HanLevel) -> Iterator[FileFault]:
    for before, after in pairwise(one.sizes):
        what = f"{one.collective}: sizes of communicators"
        yield from out_of_order(after.line, what, before.least, after.least)
    for of in one.sizes:
        for rule, other in pairwise(of.rules):
            yield from out_of_order(other.line, f"{one.collective}: bytes", rule.first, other.first)


def _useless(one: HanLevel) -> Iterator[FileFault]:
    """Rules that HAN cannot follow."""
    if one.level < 0:
        if one.collective not in HIERARCHICAL:
            yield FileFault("unreachable", one.line, f"HAN does not run {one.collective}")
        return
    for rule in (rule for of in one.sizes for rule in of.rules):
        if rule.component == HAN and one.level != WHOLE:
            said = "HAN carries the whole communicator alone, no step of itself"
            yield FileFault("unreachable", rule.line, said)
        if one.level == WHOLE and rule.component in ("self", "sm"):
            said = f"{rule.component} carries no communicator of several nodes"
            yield FileFault("unreachable", rule.line, said)


def _notes(read: HanRules) -> Iterator[str]:
    yield "HAN is on from Open MPI 5.0 on, and there on several nodes alone"
    names = {
        one.collective
        for one in read.levels
        if one.level == WHOLE
        for of in one.sizes
        if any(rule.component == "tuned" for rule in of.rules)
    }
    if names:
        said = ", ".join(sorted(names))
        yield f"where it says tuned, the file of ompi-tuned counts: {said}"
    if any(of.sizes for of in read.levels if of.level in (0, 1)):
        yield "the table has the whole communicator; levels 0 and 1 are the steps of HAN itself"


def looks_han(text: str) -> bool:
    """Whether a text opens with a number, and some row is a size and a component."""
    words = (line.partition("#")[0].split() for line in as_bytes(text).split("\n"))
    said = (row for row in words if row)
    first = next(said, [""])
    return first[0].isdigit() and any(
        len(row) >= 2 and row[0].isdigit() and row[1].partition("@")[0] in COMPONENTS
        for row in (first, *said)
    )


def write_han(table: ChoiceTable) -> str:
    """The text of a file that leaves to tuned what a table of that component chooses, on several
    nodes, and the rest to HAN.

    Raises:
        InputError: that is nothing.
    """
    lines, count = list[str](), 0
    for name in SIZED:
        rows = [row for row in table.rows if row.collective == name and row.comm.nodes > 1]
        by_ranks = {row.comm.ranks: [r for r in rows if r.comm == row.comm] for row in rows}
        if all(row.call is None for row in rows):
            continue
        count += 1
        listed = sorted({1, *by_ranks, *(ranks + 1 for ranks in by_ranks)})
        lines += [name, "1 # level", f"{WHOLE} # the whole communicator"]
        lines += [f"{len(listed)} # communicator sizes"]
        for ranks in listed:
            rules = _merged(by_ranks.get(ranks, ()), ranks if name in PER_RANK else 1)
            lines += [f"{ranks} # ranks", f"{len(rules)} # bytes component", *rules]
    if count == 0:
        rule = "has nothing to say: no choice on several nodes changes that HAN makes"
        raise InputError(f"a file of {NAME}", rule, "leave HAN as it is")
    head = f"# {NAME}: all that is not here stays with HAN"
    return "\n".join((head, f"{count} # collectives", *lines)) + "\n"


def _merged(rows: Iterable[Chosen], part: int) -> list[str]:
    """Rules that change the component, or on what the change rests."""
    found = list[tuple[int, str]]()
    for row in rows:
        component = (HAN if row.call is None else "tuned") + said(row)
        if not found or found[-1][1] != component:
            found.append((-(-row.first // part), component))
    return [f"{first} {component}" for first, component in found or [(0, HAN)]]
