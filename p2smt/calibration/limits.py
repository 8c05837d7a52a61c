"""What a calibration may not start from or end at: rates above the hardware's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from p2smt.calibration.predict import Predictor
from p2smt.calibration.samples import Sample
from p2smt.cluster.link import MAX_EFFICIENCY
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.units import format_bandwidth

_REMEDY = "check links, ports, library and ranks, or give --allow-above-nominal"


def check_times(topology: Topology, samples: Sequence[Sample]) -> None:
    """Refuse times that nominal links would not allow the algorithms that run by the library.

    A single time may be a slip; two of a kind are not.

    Raises:
        InputError: there are some.
    """
    steps = Predictor.of(topology, samples).steps(_at_nominal_rates(topology))
    excess: dict[tuple[int, str], list[float]] = {}
    for sample, step in zip(samples, steps, strict=True):
        if step.level is not None and step.wire_s > MAX_EFFICIENCY * sample.seconds:
            what = f"{sample.operation.value} by {step.algorithm}"
            excess.setdefault((step.level, what), []).append(step.wire_s / sample.seconds)
    for (level, what), factors in excess.items():
        if len(factors) > 1 or len(samples) == 1:
            nominal = topology.levels[level].link.bandwidth_bytes_per_s
            _refuse(topology, level, what, max(factors) * nominal, nominal)


def _at_nominal_rates(topology: Topology) -> Topology:
    levels = (replace(lv, link=replace(lv.link, efficiency=())) for lv in topology.levels)
    return replace(topology, levels=tuple(levels))


def check_pieces(before: Topology, after: Topology) -> None:
    """Refuse fitted pieces that are faster than the link was before.

    Raises:
        InputError: there is one.
    """
    for j, (old, new) in enumerate(zip(before.levels, after.levels, strict=True)):
        nominal = old.link.bandwidth_bytes_per_s
        for what, pieces in (("", new.link.pieces), *((c.value, p) for c, p in new.link.measured)):
            found = max(piece.bandwidth_bytes_per_s for piece in pieces)
            if found > MAX_EFFICIENCY * nominal:
                _refuse(before, j, what, found, nominal)


def _refuse(topology: Topology, level: int, what: str, found: float, nominal: float) -> None:
    by = f", {what}" if what else ""
    raise InputError(
        f"level {topology.levels[level].name}{by}: {format_bandwidth(found)} a port",
        f"is above the link's nominal {format_bandwidth(nominal)}",
        _REMEDY,
    )
