"""Fabric files: their keys as pydantic models, and the wiring that they describe."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from p2smt.cluster.fabric.fabric import MAX_RANKS
from p2smt.cluster.fabric.wiring import NetworkPort, Switch, Wire, WiredNodes
from p2smt.errors import InputError
from p2smt.files.validation import StrictModel
from p2smt.units import exact_rate


def _rate(value: object) -> object:
    if isinstance(value, str):
        exact_rate(value, "value")
    elif not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10**9:
        rule = "must be a rate such as 25 GB/s, or a whole number of units from 1"
        raise InputError(f"value {str(value)[:40]}", rule)
    return value


Rate = Annotated[str | int, BeforeValidator(_rate)]
Rank = Annotated[int, Field(ge=0, lt=MAX_RANKS, strict=True)]
MAX_SYMMETRIES = 100
Ranks = Annotated[list[Rank], Field(min_length=1, max_length=MAX_RANKS)]


class WireModel(StrictModel):
    """A link between two ranks of a node, both ways, or one way with ``one_way``."""

    ranks: Annotated[list[Rank], Field(min_length=2, max_length=2)]
    bandwidth: Rate
    one_way: bool = False


class PortedSwitchModel(StrictModel):
    """A switch that does not block, with a port of ``bandwidth`` each way for each of ``ranks``."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    ranks: Ranks | Literal["all"] = "all"
    bandwidth: Rate


class PortModel(StrictModel):
    """A network card, of ``bandwidth`` each way, that ``ranks`` of a node share."""

    ranks: Ranks
    bandwidth: Rate


class NetworkModel(StrictModel):
    """What joins the nodes: a network that does not block, and the cards of a node."""

    ports: Annotated[list[PortModel], Field(min_length=1, max_length=MAX_RANKS)]


class FabricModel(StrictModel):
    """A fabric file: a node of ``ranks`` ranks, its links and switches, and what joins nodes."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    description: str = ""
    sources: Annotated[list[str], Field(default_factory=list)]
    ranks: Annotated[int, Field(ge=1, le=MAX_RANKS, strict=True)]
    links: Annotated[list[WireModel], Field(default_factory=list)]
    switches: Annotated[list[PortedSwitchModel], Field(default_factory=list)]
    network: NetworkModel | None = None
    nodes: Annotated[int, Field(ge=1, le=MAX_RANKS, strict=True)] = 1
    symmetries: Annotated[list[Ranks], Field(default_factory=list, max_length=MAX_SYMMETRIES)]


def build_wiring(model: FabricModel, source: str) -> WiredNodes:
    """The wiring that a file describes.

    Raises:
        InputError: bandwidths with a unit beside others without, or ranks that are not there.
    """
    ports = model.network.ports if model.network else []
    given = [one.bandwidth for one in model.links]
    given += [one.bandwidth for one in model.switches] + [one.bandwidth for one in ports]
    kinds = {isinstance(rate, str) for rate in given}
    if len(kinds) > 1:
        rule = "has bandwidths with a unit and others without"
        raise InputError(source, rule, "write all like 25 GB/s, or all as whole numbers")
    every = tuple(range(model.ranks))
    return WiredNodes(
        model.name,
        model.ranks,
        tuple(_wires(model)),
        tuple(
            Switch(s.name, every if s.ranks == "all" else tuple(s.ranks), _exact(s.bandwidth))
            for s in model.switches
        ),
        tuple(NetworkPort(tuple(port.ranks), _exact(port.bandwidth)) for port in ports),
        model.nodes,
        kinds != {False},
        model.description,
        tuple(model.sources),
        tuple(tuple(image) for image in model.symmetries),
    )


def _wires(model: FabricModel) -> Iterator[Wire]:
    for link in model.links:
        a, b = link.ranks
        yield Wire(a, b, _exact(link.bandwidth))
        if not link.one_way:
            yield Wire(b, a, _exact(link.bandwidth))


def _exact(rate: str | int) -> Fraction:
    return exact_rate(rate, "bandwidth") if isinstance(rate, str) else Fraction(rate)
