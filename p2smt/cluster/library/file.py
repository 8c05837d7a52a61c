"""Library files (YAML): reading them, and those that come with the package.

A small one (all keys: :mod:`p2smt.cluster.library.file_model`):

    name: mine
    vendor: example
    description: One algorithm per collective.
    sources: ["measured here"]
    joins_nodes: false            # rings take ranks in the order of their communicator
    calls: {all-reduce: 20 us}    # what one call costs, whatever its size
    protocols: {simple: {}}       # a part of the bandwidth, and caps by fabric
    hops:                         # what a step costs
      inside: {ring: {simple: 3 us}}
      network: {ring: {simple: 20 us}}
    runs:                         # the first that can run does, where no rule says otherwise
      all-reduce: [{algorithm: ring, protocols: [simple]}]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any, TypeVar

from p2smt.cluster.library.checks import check_library
from p2smt.cluster.library.model import (
    Correction,
    Formula,
    Hardware,
    Library,
    LibraryRun,
    NodeCount,
    Nvls,
    Plateau,
    ProtocolRate,
    Scaling,
    Search,
    SizeThreshold,
    SizeThresholds,
    named_algorithm,
)
from p2smt.cluster.link import Algorithm
from p2smt.collectives.names import Collective
from p2smt.files.yaml_text import load_yaml, read_text
from p2smt.units import parse_bandwidth, parse_bytes, parse_time

_PACKAGED = "p2smt.libraries"
_SUFFIX = ".yaml"
T = TypeVar("T")
Reader = Callable[[Any], Any]
"""From a value of a file to that of a field; one that is wrong raises InputError."""


def parse_library(text: str, source: str) -> Library:
    """The library in a YAML (or JSON) text; ``source`` names it in messages.

    Raises:
        InputError: the text is not safe YAML, a key is unknown, missing or has a bad value, or
            the library cannot be chosen by.
    """
    # Making these models takes longer than all the rest: only files of others are worth it.
    from p2smt.cluster.library.file_model import LibraryModel
    from p2smt.files.validation import validated

    data = load_yaml(text, source)
    validated(LibraryModel, data, source)
    found = _library(data)
    check_library(found, source)
    return found


def read_library(path: str) -> Library:
    """The library in a file.

    Raises:
        InputError: as for :func:`parse_library`, or the file cannot be read.
    """
    return parse_library(read_text(path, "library file"), path)


def packaged_names() -> tuple[str, ...]:
    """The libraries that come with the package, sorted."""
    names = (entry.name for entry in files(_PACKAGED).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def packaged_text(name: str) -> str:
    """The YAML text of one of :func:`packaged_names`, with its sources as comments."""
    return files(_PACKAGED).joinpath(name + _SUFFIX).read_text(encoding="utf-8")


def packaged_library(name: str) -> Library:
    """One of :func:`packaged_names`: the tests have checked their files, so this does not again."""
    return _library(load_yaml(packaged_text(name), f"library {name}"))


def _read_as(kind: Callable[..., T], data: Any, **read: Reader) -> T:
    """A value of ``kind`` from keys named as its fields, those in ``read`` read in that way.

    A key that says null counts as left out: ``kind`` knows what that stands for.
    """
    said = {key: value for key, value in data.items() if value is not None}
    return kind(**{key: read[key](value) if key in read else value for key, value in said.items()})


def _all(one: Reader) -> Reader:
    """Of a list."""
    return lambda values: tuple(map(one, values))


def _each(one: Reader) -> Reader:
    """Of a mapping, to pairs."""
    return lambda data: tuple((key, one(value)) for key, value in data.items())


def _times(*keys: Reader) -> Reader:
    """Of mappings in each other, one for each key: to pairs of all keys and seconds."""

    def read(data: Any, *outer: Any) -> Iterator[tuple[tuple[Any, ...], float]]:
        if len(outer) == len(keys):
            yield outer, parse_time(data)
            return
        for key, inner in data.items():
            yield from read(inner, *outer, keys[len(outer)](key))

    return lambda data: tuple(read(data))


def _library(data: Any) -> Library:
    """The library that data of a file's shape describe."""
    return _read_as(
        Library,
        data,
        sources=tuple,
        calls=_each(parse_time),
        calls_across=_each(parse_time),
        calls_on=_each(parse_time),
        protocols=lambda found: tuple(_protocol(*one) for one in found.items()),
        hops=_times(str, str, str),
        runs=_each(_all(_run)),
        ladders=_all(_ladder),
        formula=_formula,
        ring_pace=float,
        exchange_rate=parse_bandwidth,
        handover_rate=parse_bandwidth,
        switch_member=parse_time,
        sent_as=lambda found: tuple((Collective(a), Collective(b)) for a, b in found.items()),
    )


def _protocol(name: str, data: Any) -> ProtocolRate:
    named = {"name": name, **data}
    return _read_as(
        ProtocolRate, named, efficiency=float, caps=_each(parse_bandwidth), two_children=float
    )


def _run(data: Any) -> LibraryRun:
    return _read_as(LibraryRun, data, algorithm=named_algorithm, protocols=tuple, nodes=NodeCount)


def _ladder(data: Any) -> SizeThresholds:
    return _read_as(SizeThresholds, data, rungs=_all(_rung), nodes=NodeCount, fabrics=tuple)


def _rung(data: Any) -> SizeThreshold:
    most = data.get("up_to")
    size = math.inf if most is None else parse_bytes(most)
    return SizeThreshold(size, named_algorithm(data["algorithm"]), data["protocol"])


def _formula(data: Any) -> Formula:
    """Of seconds the field's name says that they are; PAT's two numbers are fields."""
    pat = data.get("pat") or {}
    own = {key: value for key, value in data.items() if key not in ("overhead", "pat")}
    own |= {"overhead_s": data.get("overhead")}
    own |= {"pat_per_rank_s": pat.get("per_rank"), "pat_hop_part": pat.get("hop_part")}
    return _read_as(
        Formula,
        own,
        hardware=_each(_hardware),
        base=_times(Algorithm, str),
        hops=_times(str, Algorithm, str),
        scalings=_all(_scaling),
        caps=_each(_each(_all(parse_bandwidth))),
        search=_search,
        corrections=_all(_correction),
        plateau=_plateau,
        nvls=_nvls,
        overhead_s=parse_time,
        overhead_on=_each(parse_time),
        ll_inside=float,
        pat_per_rank_s=parse_time,
        pat_hop_part=float,
        most_bus=_each(parse_bandwidth),
    )


def _hardware(data: Any) -> Hardware:
    own = {key: value for key, value in data.items() if key != "latency"}
    return _read_as(
        Hardware, own | {"latency_s": data.get("latency")}, known=float, latency_s=parse_time
    )


def _scaling(data: Any) -> Scaling:
    return _read_as(Scaling, data, algorithm=Algorithm, operations=tuple, factor=float)


def _correction(data: Any) -> Correction:
    return _read_as(
        Correction,
        data,
        algorithm=Algorithm,
        factors=_all(float),
        generations=tuple,
        unless_cpus=tuple,
    )


def _plateau(data: Any) -> Plateau:
    return _read_as(
        Plateau,
        data,
        factors=_each(float),
        bytes_per_rank=parse_bytes,
        bytes_per_channel_and_rank=parse_bytes,
    )


def _nvls(data: Any) -> Nvls:
    return _read_as(Nvls, data, efficiency=_each(float), ratio=float)


def _search(data: Any) -> Search:
    rates = _each(_all(parse_bandwidth))
    lists = ("not_twice", "plain_tree", "relayed_ll128", "paired", "turned", "served_twice")
    return _read_as(
        Search,
        data,
        inside=rates,
        outside=rates,
        twice_from=parse_bandwidth,
        **dict.fromkeys(lists, tuple),
    )
