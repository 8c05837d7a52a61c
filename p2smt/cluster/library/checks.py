"""What a library must fulfil by itself; on a topology: :mod:`p2smt.cost.requested_algorithms`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import product

from p2smt.cluster.library.model import (
    ACROSS,
    FAMILIES,
    INSIDE,
    LIBRARY_PATTERN,
    NO_LIBRARY,
    AddedAlgorithm,
    Formula,
    Library,
    LibraryRun,
    added_algorithms,
    family_of,
    hop_families,
)
from p2smt.cluster.link import FABRICS, NETWORK, Algorithm
from p2smt.collectives.names import CALL_NAMES
from p2smt.errors import InputError

_PLACES = (INSIDE, ACROSS, *FABRICS)
_MOST_S = 1e6


def check_library(library: Library, source: str) -> None:
    """Whether every operation and group has a way, and every name and number a meaning.

    Raises:
        InputError: one thing that is wrong, with ``source`` and the key.
    """
    for key, given, rule, remedy in _faults(library):
        raise InputError(f"{source}: {key} {given}".rstrip(), rule, remedy)


Fault = tuple[str, str, str, str]


def _faults(library: Library) -> Iterator[Fault]:
    if not re.fullmatch(LIBRARY_PATTERN, library.name) or library.name == NO_LIBRARY:
        yield "name", repr(library.name[:60]), "must be lower case, digits, . _ -", "rename it"
    if not library.in_flight >= 1:
        yield "in_flight", str(library.in_flight), "must be at least 1", "leave it out: any number"
    if not library.peers_at_once >= 0:
        yield "peers_at_once", str(library.peers_at_once), "must be at least 0", "leave it out: all"
    if not 1 <= library.ring_pace <= 100:
        yield "ring_pace", str(library.ring_pace), "must be 1 to 100", "leave it out: 1"
    if not 0 <= library.switch_member < _MOST_S:
        yield "switch_member", f"{library.switch_member} s", "must be from 0 to 1e6 s", "check it"
    yield from _costs(library)
    yield from _runs(library)
    yield from _unpriced(library)
    yield from _ladders(library)
    if library.formula is not None:
        yield from _formula(library, library.formula)


def _costs(library: Library) -> Iterator[Fault]:
    networks = (ACROSS, *NETWORK)
    for key, calls, names in (
        ("calls", library.calls, CALL_NAMES),
        ("calls_across", library.calls_across, networks),
        ("calls_on", library.calls_on, FABRICS),
    ):
        for name, seconds in calls:
            if name not in names:
                yield f"{key}.{name[:40]}", "", f"must be one of {', '.join(names)}", ""
            if not 0 <= seconds < _MOST_S:
                yield f"{key}.{name}", f"{seconds} s", "must be from 0 to 1e6 s", "check it"
    for protocol, one in library.protocols:
        key = f"protocols.{protocol[:40]}"
        rule = "is a part of the bandwidth: above 0, at most 1"
        for name in ("efficiency", "two_children"):
            if not 0 < (part := getattr(one, name)) <= 1:
                yield f"{key}.{name}", str(part), rule, ""
        for fabric, cap in one.caps:
            if fabric not in FABRICS:
                yield f"{key}.caps.{fabric[:40]}", "", f"must be one of {', '.join(FABRICS)}", ""
            if not 1 <= cap < 1e18:
                yield f"{key}.caps.{fabric}", f"{cap} B/s", "must be from 1 to 1e18 B/s", ""
    for (place, family, protocol), seconds in library.hops:
        key = f"hops.{place[:40]}.{family[:40]}.{protocol[:40]}"
        if place not in _PLACES:
            yield key, "", f"its place must be one of {', '.join(_PLACES)}", ""
        if family not in FAMILIES:
            yield key, "", f"its family must be one of {', '.join(FAMILIES)}", ""
        if protocol not in dict(library.protocols):
            yield key, "", "is of a protocol that the library does not have", "add it to protocols"
        if not 0 <= seconds < _MOST_S:
            yield key, f"{seconds} s", "must be from 0 to 1e6 s", "check it"


def _runs(library: Library) -> Iterator[Fault]:
    protocols, added = dict(library.protocols), added_algorithms()
    for name, runs in library.runs:
        if name not in CALL_NAMES:
            yield f"runs.{name[:40]}", "", f"must be one of {', '.join(CALL_NAMES)}", ""
        for i, run in enumerate(runs):
            if isinstance(run.algorithm, AddedAlgorithm) and run.algorithm not in added:
                given, remedy = repr(run.algorithm.value[:40]), "call register_algorithm before"
                yield f"runs.{name}[{i}].algorithm", given, "is not registered", remedy
            for protocol in run.protocols:
                if protocol not in protocols:
                    rule = f"the library's protocols are {', '.join(sorted(protocols))}"
                    yield f"runs.{name}[{i}].protocols", repr(protocol[:40]), rule, "add it there"
            if run.least_members < 2:
                rule = "a group has at least 2"
                yield f"runs.{name}[{i}].least_members", str(run.least_members), rule, ""
            if not run.most_in_node >= 0:
                rule, given = "must be at least 0", str(run.most_in_node)
                yield f"runs.{name}[{i}].most_in_node", given, rule, "leave it out: any number"
    for name in CALL_NAMES:
        for nodes, text in ((1, "on one node"), (2, "on several nodes")):
            if not any(
                run.nodes.holds(nodes)
                and run.least_members == 2
                and not run.in_switch
                and not run.one_rank_per_node
                and not (run.most_in_node or run.least_in_node)
                and not isinstance(run.algorithm, AddedAlgorithm)
                for run in library.runs_of(name)
            ):
                rule = f"nothing runs it for every group {text}"
                yield f"runs.{name}", "", rule, "add an algorithm without conditions, such as ring"


def _unpriced(library: Library) -> Iterator[Fault]:
    """Operations without the cost of a call, and runs without that of a hop: they would be free."""
    for name, runs in library.runs:
        if name not in dict(library.calls):
            rule = "is missing; what a call costs is to be said of every operation"
            yield f"calls.{name}", "", rule, "add it, such as 10 us"
        for i, run in enumerate(runs):
            for place, protocol in product(_places_of(run), run.protocols):
                if not any(key in dict(library.hops) for key in _hop_keys(run, place, protocol)):
                    key = f"hops.{place}.{family_of(run.algorithm)}.{protocol}"
                    rule = f"is missing, and runs.{name}[{i}] takes such steps"
                    yield key, "", rule, "add it, such as 5 us"


def _places_of(run: LibraryRun) -> tuple[str, ...]:
    """Where a run's steps go: those of a group of several nodes inside them, too."""
    inside = () if run.one_rank_per_node else (INSIDE,)
    return (*inside, ACROSS) if run.nodes.holds(2) else inside


def _hop_keys(run: LibraryRun, place: str, protocol: str) -> Iterator[tuple[str, str, str]]:
    """What may say the cost of a step, as :meth:`Library.hop_s` looks for it."""
    return ((place, family, protocol) for family in hop_families(family_of(run.algorithm)))


def _ladders(library: Library) -> Iterator[Fault]:
    for i, ladder in enumerate(library.ladders):
        if ladder.operation not in CALL_NAMES:
            rule = f"must be one of {', '.join(CALL_NAMES)}"
            yield f"ladders[{i}].operation", repr(ladder.operation[:40]), rule, ""
        sizes = [rung.up_to_bytes for rung in ladder.rungs]
        if sizes != sorted(set(sizes)) or sizes[0] <= 0:
            yield f"ladders[{i}].rungs", "", "their sizes must be positive and rise", "sort them"
        if library.formula is None and not math.isinf(sizes[-1]):
            rule = "leaves larger sizes without a choice"
            yield f"ladders[{i}].rungs", "", rule, "end with a rung without up_to"
        runs = library.runs_of(ladder.operation)
        for j, rung in enumerate(ladder.rungs):
            if not any(
                rung.algorithm == run.algorithm and rung.protocol in run.protocols for run in runs
            ):
                rule = f"does not run {ladder.operation}"
                named = "p2p" if rung.algorithm is None else rung.algorithm.value
                given = f"{named} with {rung.protocol[:40]}"
                yield f"ladders[{i}].rungs[{j}]", given, rule, "add it to runs"


def _formula(library: Library, formula: Formula) -> Iterator[Fault]:
    listed = dict(formula.hardware)
    for key, fabric in (("inside", formula.inside), ("outside", formula.outside)):
        if fabric not in listed:
            rule = "must be a fabric of formula.hardware"
            yield f"formula.{key}", repr(fabric[:40]), rule, "add it there"
    rows = {row for (row, _, _), _ in formula.hops}
    for fabric, hardware in formula.hardware:
        if fabric not in FABRICS:
            yield f"formula.hardware.{fabric[:40]}", "", f"must be one of {', '.join(FABRICS)}", ""
        if hardware.row not in rows:
            rule = "must be a row of formula.hops"
            yield f"formula.hardware.{fabric[:40]}.row", repr(hardware.row[:40]), rule, ""
        if not 0 < hardware.known <= 1:
            rule = "is a part of the bandwidth: above 0, at most 1"
            yield f"formula.hardware.{fabric[:40]}.known", str(hardware.known), rule, ""
    caps = {name for name, _ in formula.caps}
    for i, scaling in enumerate(formula.scalings):
        if scaling.cap and scaling.cap not in caps:
            rule = f"must be one of {', '.join(sorted(caps))}"
            yield f"formula.scalings[{i}].cap", repr(scaling.cap[:40]), rule, ""
        if not 0 <= scaling.factor < 1e3:
            yield f"formula.scalings[{i}].factor", str(scaling.factor), "must be 0 to 1000", ""
    for i, correction in enumerate(formula.corrections):
        if not all(0 < factor <= 10 for factor in correction.factors):
            yield f"formula.corrections[{i}].factors", "", "must be above 0, at most 10", ""
    uses = Algorithm.NVLS in library.algorithms or Algorithm.NVLS_TREE in library.algorithms
    if uses and formula.nvls is None:
        rule = "the library runs nvls, and its formula does not estimate it"
        yield "formula.nvls", "is missing", rule, "add it"
