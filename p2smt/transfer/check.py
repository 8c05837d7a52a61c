"""Whether a plan file of a transfer is right: its layouts, every element's way, times and proof.

Everything is derived again from the file: classes from the layouts, bytes from the trees, the bound
from the prices.  Nothing here has a part in the search.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from p2smt.cluster.file_model import build_topology
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.result import SAME
from p2smt.transfer.buckets import BucketTimes, bucket_times, fill_s
from p2smt.transfer.certificate import OPTIMAL_WITHIN, PortPrices, gap_of, proved_bound_s
from p2smt.transfer.file_model import TransferModel
from p2smt.transfer.plan import Replay, TreePiece, replay
from p2smt.transfer.plan_file import layouts_of, pieces_of, prices_of
from p2smt.transfer.ports import LIMIT, OUT, Port, PortMap
from p2smt.transfer.question import TransferQuestion

CHECKED = ("layouts", "way of every element", "bytes of every port", "times", "prices", "bound")


@dataclass(frozen=True)
class TransferReport:
    """The verdict on a plan: faults, and what was found anew; None: it could not be."""

    faults: tuple[str, ...]
    question: TransferQuestion | None = None
    replay: Replay | None = None
    bound_s: Fraction | None = None
    times: BucketTimes | None = None

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def check_transfer(model: TransferModel, source: str) -> TransferReport:
    """Hold a plan against its own layouts.

    Raises:
        InputError: its topology is none.
    """
    topology = build_topology(model.topology, source)
    try:
        question = _question(model, topology)
        pieces = pieces_of(model)
        made = replay(question.moves, pieces, question.ports, model.item_bytes)
    except InputError as fault:
        return TransferReport((str(fault),))
    prices = prices_of(model)
    faults = [*_misplaced(question.ports, prices)]
    if faults:
        return TransferReport(tuple(faults), question, made)
    bound = proved_bound_s(question.moves, model.item_bytes, question.ports, prices)
    times = bucket_times(pieces, question.ports, model.item_bytes, model.buckets)
    faults += _misstated(model, question, pieces, times, bound)
    return TransferReport(tuple(faults), question, made, bound, times)


def question_of(model: TransferModel, source: str) -> TransferQuestion:
    """What was asked, by the file.

    Raises:
        InputError: its topology is none, or its layouts are none on these devices.
    """
    return _question(model, build_topology(model.topology, source))


def _question(model: TransferModel, topology: Topology) -> TransferQuestion:
    before, after = layouts_of(model)
    places = model.source_devices, model.target_devices
    nominal = model.rates == "nominal"
    shape = (model.item_bytes, nominal)
    return TransferQuestion(topology, before, after, *places, *shape, relay=model.relayed)


def _misplaced(ports: PortMap, prices: PortPrices) -> Iterator[str]:
    """Prices on what is no port of a device's network or inside."""
    for port in prices:
        inside = 0 <= port.level < len(ports.topology.levels)
        width = ports.topology.devices_under(port.level) if inside else 1
        own = range(port.entity * width, port.entity * width + width)
        if port.number == LIMIT:
            own = range(port.entity, port.entity + 1)
        known = inside and any(
            port in side
            for device in own
            if device in ports.topology.places
            for side in _priced(ports, device, port)
        )
        if not known:
            way = "out of" if port.way == OUT else "into"
            yield f"the price of a port {way} entity {port.entity} of level {port.level}: no such"


def _priced(ports: PortMap, device: int, port: Port) -> Iterator[tuple[Port, ...]]:
    """The sides of a device at which a port may have a price."""
    yield from ports.sides(device, port.way)
    if port.level < ports.network:
        yield ports.of_side(device, port.level, port.way)


def _misstated(
    model: TransferModel,
    question: TransferQuestion,
    pieces: tuple[TreePiece, ...],
    times: BucketTimes,
    bound: Fraction,
) -> Iterator[str]:
    """Numbers that are not what they are said to be."""
    filled = fill_s(question.ports, pieces, model.item_bytes, model.buckets)
    claimed = Fraction(model.bound_s)
    for what, found, said in (
        ("bytes take", float(times.bandwidth_s), model.bandwidth_s),
        ("latencies and filling add", filled, model.fill_s),
    ):
        if not math.isclose(said, found, rel_tol=SAME):
            yield f"{what} {found!r} s, and {said!r} s is said"
    if model.staging_bytes != times.staging_bytes:
        yield f"{times.staging_bytes} bytes are staged, and {model.staging_bytes} are said to be"
    if claimed > bound:
        yield f"the prices prove {float(bound)!r} s, and a bound of {float(claimed)!r} s is said"
    if bound > times.bandwidth_s:
        yield f"the prices prove {float(bound)!r} s, which is more than the plan takes"
    by_relays = model.relayed_bound_s
    if by_relays is not None and (model.relayed or by_relays > model.bandwidth_s * (1 + SAME)):
        least = f"plans that relay are said to take {by_relays!r} s or more"
        yield f"{least}, and this one {'relays' if model.relayed else 'takes less'}"
    gap = gap_of(times.bandwidth_s, bound)
    if model.status == "optimal" and (gap is None or gap > OPTIMAL_WITHIN):
        yield "it is said to be optimal, and the prices do not prove that"
