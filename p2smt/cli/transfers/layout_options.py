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
    to_device_ids: Text = option("N-N,N,..", "The same after it: others, fewer, another order.")
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
        return TransferQuestion(
            topology,
            before,
            after,
            _ids(self.device_ids, "--device-ids", before.devices),
            _ids(self.to_device_ids, "--to-device-ids", after.devices),
            item_bytes,
            nominal,
            None if self.memory is None else parse_bytes(self.memory, "--memory"),
            how.limits(),
            self.relay,
        )


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


def _ids(text: str | None, option: str, count: int) -> Sequence[int]:
    return range(count) if text is None else ids_of(text, option)


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
