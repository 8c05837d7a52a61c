"""The list of devices above a table: which rank ran on which host.

Lists are often shortened.  One that has every rank from 0 on tells how many there are and, if it
names hosts, how many are on each.  A shortened one does not; but ranks are numbered host by host,
so a rank r that drives device d of its host shows that r - d is the first rank of a host, and the
number of ranks on a host divides all of these, and that of all ranks.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.elements import Blocks, RankCount

_RANK = re.compile(
    r"#?\s*Rank\s+(?P<rank>\d{1,9})(?:\s+Group\s+(?P<group>\d{1,9}))?(?:\s+Pid\s+\d{1,12})?"
    r"(?:\s+on\s+(?P<host>\S{1,255}))?\s+device\s+(?P<device>\d{1,9})\b(?P<rest>.*)"
)
_NODE = re.compile(r"\((node \d{1,9})\)")
_BUS = re.compile(r"\[[^\]]{0,32}\]")
_PREFIX = re.compile(r"(?<!\s)\s*(?:\[\d{1,9},\d{1,9}\]<std(?:out|err)>:|\d{1,9}:(?=[\s#]))\s*")
_DOTS = re.compile(r"[#\s]*(?:\.{2,}|…|\[\.{2,}\])\s*")
WHAT = "its device list"


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
