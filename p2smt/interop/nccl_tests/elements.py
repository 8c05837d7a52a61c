"""One table of nccl-tests: its rows, and what the file says of test, ranks and hosts.

Facts about nccl-tests (2.19, src/*.cu): the size column is the larger of a rank's send and
receive buffer, so the whole vector: of an all-gather the output, of a reduce-scatter the input, of
an all-to-all all that a rank sends (its own part too), of a sendrecv the message.  algbw is
size / time; busbw / algbw is 2 (n - 1) / n for all-reduce, (n - 1) / n for all-gather,
reduce-scatter and all-to-all, 1 for broadcast, reduce and sendrecv.  The count column holds what
one rank contributes: of all-gather, reduce-scatter and all-to-all the n-th part of the size.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError

_NAME = re.compile(r"\b([a-z_]{1,30})_perf(?:_mpi)?\b")
TESTS: dict[str, Operation] = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "reduce": Collective.REDUCE,
    "broadcast": Collective.BROADCAST,
    "alltoall": RequestKind.ALL_TO_ALL,
    "sendrecv": RequestKind.SEND,
}
"""What a test of nccl-tests measures."""
_NOT_OURS = ("alltoallv", "gather", "scatter", "hypercube")
_BYTES = {
    **dict.fromkeys(("int8", "uint8", "char", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "int", "float"), 4),
    **dict.fromkeys(("int64", "uint64", "double"), 8),
}


@dataclass(frozen=True, slots=True)
class Timing:
    """One time of a row: bandwidths in GB/s with half a unit of their last digit.

    ``parts`` says how often what one rank contributes goes into the size; 0: unknown.
    """

    line: int
    size_bytes: int
    seconds: float
    algbw: float = 0.0
    busbw: float = 0.0
    algbw_error: float = 0.0
    busbw_error: float = 0.0
    parts: int = 0


@dataclass(frozen=True, slots=True)
class Blocks:
    """What a device list shows of its hosts, ranks being numbered host by host.

    The first rank of every host seen is a multiple of ``step`` (0: only the first host was seen), a
    host has ``least`` ranks or more, and ``named`` holds (rank, host).
    """

    step: int
    least: int
    named: tuple[tuple[int, str], ...] = ()

    def per_host(self, ranks: int) -> int | None:
        """Ranks per host among so many; None unless one number alone fits."""
        fits = [n for n in range(max(1, self.least), ranks + 1) if self._fits(n, ranks)]
        return fits[0] if len(fits) == 1 else None

    def _fits(self, each: int, ranks: int) -> bool:
        if ranks % each or self.step % each:
            return False
        pairs = {(rank // each, host) for rank, host in self.named}
        return len(pairs) == len({block for block, _ in pairs}) == len({host for _, host in pairs})


@dataclass(frozen=True, slots=True)
class RankCount:
    """What a line of a file says of the ranks; None: it does not.

    ``what`` names the line for messages, ``where`` says where it stands.  There are ``ranks``, or
    at least ``least``, ``per_host`` on each host or as ``blocks`` show.  ``uneven`` has the least
    and the most ranks of a host where they differ.
    """

    where: str
    what: str
    ranks: int | None
    per_host: int | None = None
    uneven: tuple[int, int] | None = None
    least: int = 0
    blocks: Blocks | None = None

    def hosts_of(self, ranks: int) -> int | None:
        """Ranks per host, if there are so many ranks."""
        return self.blocks.per_host(ranks) if self.blocks else self.per_host


@dataclass(frozen=True, slots=True)
class TimingTable:
    """One table.

    ``where`` names file and line, ``test`` is the test as the file tells it (empty: it does not),
    ``said`` what lines of the file say of its ranks, ``wrong`` the lines with wrong results, which
    are left out.  ``carried``: test and ranks were said above an earlier table of the file.
    ``ran``: the library with its version and its plugins, as the file names them.
    """

    where: str
    test: str
    said: tuple[RankCount, ...]
    timings: tuple[Timing, ...]
    wrong: tuple[int, ...] = ()
    carried: bool = False
    ran: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The file's name, as it was given."""
        return self.where.rpartition(", line ")[0] or self.where

    def at(self, timing: Timing) -> str:
        """Where one of its rows stands."""
        inside = (
            f": results[{timing.line}]" if self.source == self.where else f", line {timing.line}"
        )
        return f"{self.source}{inside}"


def test_in(line: str) -> str:
    """The test that a line names, such as ``all_reduce``; empty if none."""
    names = [name for name in _NAME.findall(line) if name in TESTS or name in _NOT_OURS]
    return names[0] if names else ""


def test_named(name: str, where: str) -> str:
    """The test of a name that a person wrote: ``all-to-all`` and ``alltoall_perf`` are one.

    Raises:
        InputError: nccl-tests has no such test.
    """
    plain = name.strip().lower().replace("-", "_").removesuffix("_perf")
    known = {test.replace("_", ""): test for test in (*TESTS, *_NOT_OURS)}
    known["send"] = "sendrecv"
    if plain.replace("_", "") not in known:
        rule = f"is none of nccl-tests: {', '.join(TESTS)}"
        raise InputError(f"{where}: collective {name[:40]!r}", rule, "correct that line")
    return known[plain.replace("_", "")]


def operation_named(test: str, where: str) -> Operation:
    """What a test measures.

    Raises:
        InputError: the model has no such operation.
    """
    if test not in TESTS:
        rule = f"a calibration uses {', '.join(TESTS)}"
        raise InputError(f"{where}: test {test[:40]!r}", rule, "leave it out")
    return TESTS[test]


def parts_of(size_bytes: int, count: int, data_type: str) -> int:
    """How often ``count`` elements go into the size; 0 if it cannot be known."""
    part = count * _BYTES.get(data_type, 0)
    return size_bytes // part if part and size_bytes % part == 0 else 0


def is_data_type(word: str) -> bool:
    """Whether a word is a data type of nccl-tests."""
    return word in _BYTES


def check_times(timing: Timing, where: str) -> None:
    """Refuse a row whose time and algbw do not belong together: shifted or cut columns.

    Raises:
        InputError: algbw is neither size / time nor, as old versions print, (n - 1) / n of it.
    """
    shown = timing.size_bytes / timing.seconds / 1e9
    low, high = timing.algbw - timing.algbw_error, timing.algbw + timing.algbw_error
    if timing.algbw_error and not (0.9 * low <= shown <= 2.04 * high):
        raise InputError(
            f"{where}: time {timing.seconds * 1e6:.6g} us and algbw {timing.algbw:g} GB/s",
            f"do not belong to {timing.size_bytes} bytes",
            "correct or remove that line",
        )


# The list of devices above a table: which rank ran on which host.
# Lists are often shortened.  One that has every rank from 0 on tells how many there are and, if it
# names hosts, how many are on each.  A shortened one does not; but ranks are numbered host by host,
# so a rank r that drives device d of its host shows that r - d is the first rank of a host, and the
# number of ranks on a host divides all of these, and that of all ranks.


_RANK = re.compile(
    r"#?\s*Rank\s+(?P<rank>\d{1,9})(?:\s+Group\s+(?P<group>\d{1,9}))?(?:\s+Pid\s+\d{1,12})?"
    r"(?:\s+on\s+(?P<host>\S{1,255}))?\s+device\s+(?P<device>\d{1,9})\b(?P<rest>.*)"
)
_NODE = re.compile(r"\((node \d{1,9})\)")
_BUS = re.compile(r"\[[^\]]{0,32}\]")
_PREFIX = re.compile(r"(?<!\s)\s*(?:\[\d{1,9},\d{1,9}\]<std(?:out|err)>:|\d{1,9}:(?=[\s#]))\s*")
_DOTS = re.compile(r"[#\s]*(?:\.{2,}|…|\[\.{2,}\])\s*")
WHAT = "its device list"


_RAN = re.compile(
    r"\b(?P<library>[NR]CCL) version (?P<version>\d[\w.+:-]{0,60})"
    r"|\bnccl-library=(?P<code>\d{4,6})\b"
    r"|\bLoaded (?P<plugin>(?:net|collnet|tuner) plugin [\w .()/-]{1,60})"
    r"|\bNET/OFI Initializing (?P<ofi>aws-ofi-nccl [\w.+-]{1,40})"
    r"|\bUsing (?P<network>network [\w .()/-]{1,60})"
)
MOST_RAN = 12


def ran_in(text: str) -> tuple[str, ...]:
    """The library with its version, and the plugins, that a log names, each once.

    nccl-tests (2.18, src/common.cu) prints NCCL's version as a number; NCCL prints its own, and its
    plugins, where NCCL_DEBUG is VERSION or INFO (2.27, src/plugin/net).
    """
    found: dict[str, None] = {}
    for match in _RAN.finditer(text):
        library, code = match["library"], match["code"]
        if library:
            found[f"{library} {match['version']}"] = None
        elif code:
            found[f"NCCL {version_of(int(code))}"] = None
        else:
            found[(match["plugin"] or match["ofi"] or match["network"]).strip()] = None
    names = [one for one in found if not any(other.startswith(f"{one}+") for other in found)]
    return tuple(names[:MOST_RAN])


def version_of(code: int) -> str:
    """NCCL's version from its number: 22808 is 2.28.8, 2804 is 2.8.4."""
    thousands = 10_000 if code >= 10_000 else 1000
    return f"{code // thousands}.{code % thousands // 100}.{code % 100}"


def unprefixed(line: str) -> str:
    """A line without what launchers put before it, such as ``[1,0]<stdout>:`` or ``0:``."""
    return _PREFIX.sub("", line, count=1).strip()


@dataclass(slots=True)
class DeviceList:
    """The devices read so far: host (empty: unknown), device and product of each rank."""

    where: str = ""
    hosts: dict[int, str] = field(default_factory=dict)
    devices: dict[int, int] = field(default_factory=dict)
    products: dict[int, str] = field(default_factory=dict)
    shortened: bool = False

    def take(self, line: str, where: str) -> bool:
        """Read a line; whether it belongs to the list.

        Raises:
            InputError: the ranks ran in several groups.
        """
        if self.hosts and _DOTS.fullmatch(line):
            self.shortened = True
            return True
        found = _RANK.match(line)
        if found is None:
            return False
        if int(found["group"] or 0):
            rule = "the ranks ran in several groups at once"
            raise InputError(where, rule, "measure one group of all ranks")
        if len(self.hosts) < MAX_DEVICES:
            self._add(found, where)
        return True

    def _add(self, found: re.Match[str], where: str) -> None:
        self.where = self.where or where
        rank, node = int(found["rank"]), _NODE.search(found["rest"])
        self.hosts[rank] = found["host"] or (node[1] if node else "")
        self.devices[rank] = int(found["device"])
        self.products[rank] = _NODE.sub("", _BUS.sub("", found["rest"], count=1)).strip()[:80]

    def said(self) -> tuple[RankCount, ...]:
        """What the list says, if there is one."""
        if not self.hosts:
            return ()
        most = max(self.hosts)
        whole = not self.shortened and len(self.hosts) == most + 1
        if whole and all(self.hosts.values()):
            return (counted(self.where, WHAT, self.hosts),)
        what = WHAT if whole else f"{WHAT}, which is shortened,"
        ranks = len(self.hosts) if whole else None
        return (RankCount(self.where, what, ranks, least=most + 1, blocks=self._blocks()),)

    def _blocks(self) -> Blocks | None:
        """Hosts as ranks and devices show them; None where every rank sees one device as its 0."""
        firsts = [rank - device for rank, device in self.devices.items()]
        most = max(self.devices.values())
        if most == 0 or min(firsts) < 0:
            return None
        named = tuple((rank, host) for rank, host in self.hosts.items() if host)
        return Blocks(math.gcd(*firsts), most + 1, named)


def counted(where: str, what: str, hosts: Mapping[int, str], each: int = 1) -> RankCount:
    """What a whole list says, from the host of each rank (or process of ``each`` ranks)."""
    counts = sorted(count * each for count in Counter(hosts.values()).values())
    if counts[0] != counts[-1]:
        return RankCount(where, what, sum(counts), None, (counts[0], counts[-1]))
    return RankCount(where, what, sum(counts), counts[0])
