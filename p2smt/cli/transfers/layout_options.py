"""The two layouts of a transfer, as options: what they are, and which devices have their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, flag, option
from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.transfer.layouts import WeightLayout
    from p2smt.transfer.question import TransferQuestion

MAX_IDS = 2**20


@dataclass(frozen=True)
class LayoutOptions:
    """Who holds what before and after, on which devices, in which type of elements."""

    source: Text = option(
        "LAYOUT", "Who holds what before: megatron:tp=8,pp=4,dp=2, or a layout.json.", "--from"
    )
    target: Text = option("LAYOUT", "The same after it: vllm:tp=8,engines=8.", "--to")
    model: Text = option(
        "NAME|FILE", "Whose weights: a model of p2smt models, or config.json.", "-m", "--model"
    )
    device_ids: Text = option(
        "N-N,N,..", "Device of each rank before, such as 0-63; default: 0,1,2,.."
    )
    to_device_ids: Text = option(
        "N-N,N,..", "The same after it: others, fewer, another order; default: those before."
    )
    hosts: Text = option(
        "FILE|LIST",
        "Instead of --device-ids the hosts of the ranks before, in order: n[01-05,09], or a file.",
    )
    to_hosts: Text = option("FILE|LIST", "The same after it, instead of --to-device-ids.")
    memory: Text = option(
        "SIZE", "Cap on what a device stages at once, beside both copies of the weights."
    )
    relay: bool = flag("Devices may pass on what they neither hold nor need, by idle cards.")
    dtype: str = option(
        "NAME", "Type in which elements are sent: bf16, f16, f32, f64.", default="bf16"
    )

    def question(self, topology: Topology, nominal: bool, how: o.SearchOptions) -> TransferQuestion:
        """What is asked.

        Raises:
            InputError: an option is missing, or its value does not fit.
        """
        from p2smt.api.arrays import item_bytes_of
        from p2smt.transfer.question import TransferQuestion
        from p2smt.units import parse_bytes

        item_bytes = item_bytes_of(self.dtype, "--dtype")
        before, after = (
            _layout(text, self.model or "", name)
            for text, name in ((self.source, "--from"), (self.target, "--to"))
        )
        sources, targets = self._places(topology, before.devices, after.devices)
        return TransferQuestion(
            topology,
            before,
            after,
            sources,
            targets,
            item_bytes,
            nominal,
            None if self.memory is None else parse_bytes(self.memory, "--memory"),
            how.limits(),
            self.relay,
        )

    def _places(
        self, topology: Topology, before: int, after: int
    ) -> tuple[Sequence[int], Sequence[int]]:
        """The devices of the ranks of both sides; who is not told where to go stays."""
        here = _given(topology, self.device_ids, self.hosts, "")
        there = _given(topology, self.to_device_ids, self.to_hosts, "to-")
        sources = range(before) if here is None else here
        _check_room(self.source, "--from", before, topology.installed, len(sources))
        if there is None:
            there = range(after) if here is None else here[:after]
            if before <= len(there) < after <= topology.installed:
                given = f"--to {self.target}: {after} ranks"
                rule = f"need more than the {len(there)} devices of the ranks before, the default"
                raise InputError(given, rule, "say their devices by --to-device-ids or --to-hosts")
        _check_room(self.target, "--to", after, topology.installed, len(there))
        by_hosts = self.hosts is not None, self.to_hosts is not None
        return (
            sources[:before] if by_hosts[0] else sources,
            there[:after] if by_hosts[1] else there,
        )


def _check_room(text: str | None, option: str, ranks: int, devices: int, named: int) -> None:
    """No more ranks than the cluster has devices.

    Raises:
        InputError: there are.
    """
    if ranks > devices and named >= min(ranks, devices):
        given = f"{option} {(text or '')[:80]}: {ranks} ranks"
        raise InputError(given, f"the cluster has {devices} devices", "give fewer, or more of it")


def _given(
    topology: Topology, ids: str | None, hosts: str | None, prefix: str
) -> Sequence[int] | None:
    """The devices that are named, by number or host; None: none are.

    Raises:
        InputError: both are given, or hosts that the topology lacks.
    """
    names = f"--{prefix}device-ids", f"--{prefix}hosts"
    if hosts is None:
        return None if ids is None else ids_of(ids, names[0])
    if ids is not None:
        raise InputError(names[1], f"says what {names[0]} says, too", "give one of them")
    return devices_of_hosts(topology, hosts, names[1])


def devices_of_hosts(topology: Topology, spec: str, option: str) -> Sequence[int]:
    """The devices of hosts by name, host after host in their order; ``all``: of every one.

    Raises:
        InputError: the topology names no hosts, lacks one, or one is named twice.
    """
    from p2smt.cluster.allocation import allocated, as_known
    from p2smt.cluster.hostlist import hosts_named

    known = () if topology.hosts is None else topology.hosts.names
    found = known if spec == "all" and known else as_known(hosts_named(spec), known)
    if twice := next((name for name in found if found.count(name) > 1), ""):
        raise InputError(f"{option} {spec[:60]!r}", f"names {twice[:80]!r} twice", "name it once")
    allocated(topology, found)
    slots = {} if topology.hosts is None else dict(zip(known, topology.hosts.slots, strict=True))
    each = topology.devices_under(topology.node_level)
    return [slots[name] * each + own for name in found for own in range(each)]


def _layout(text: str | None, model: str, name: str) -> WeightLayout:
    """The layout of an option; what is wrong with it is told with the option and its value."""
    from p2smt.interop.weights.table import layout_of

    if text is None:
        raise InputError(name, "is missing", f"give it like {name} layout.json")
    try:
        return layout_of(text, model)
    except InputError as fault:
        if text in fault.given:
            raise
        raise type(fault)(f"{name} {text[:80]}: {fault.given}", fault.rule, fault.remedy) from None


def ids_of(text: str, option: str) -> Sequence[int]:
    """Device ids such as ``0-15,24,32-39``.

    Raises:
        InputError: a part is neither a number nor a range of them.
    """
    found: list[int] = []
    what = f"{option} {text[:60]!r}: a device"
    for part in text.strip("[] ").split(","):
        first, _, last = part.strip().partition("-")
        low = given.count_of(first, what, 2**31 - 1, least=0)
        high = given.count_of(last, what, 2**31 - 1, least=0) if last else low
        if not low <= high < low + MAX_IDS:
            raise InputError(f"{option} {part[:40]!r}", "is no range", "give it like 0-15")
        found += range(low, high + 1)
    return found
