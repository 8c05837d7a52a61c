"""A transfer element by element and tree by tree, without classes, prices or solvers."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from p2smt.transfer.classes import TransferClass, TransferMoves, ranges, volume
from p2smt.transfer.layouts import WeightLayout
from p2smt.transfer.plan import Edge, TreePiece
from p2smt.transfer.ports import Port, PortMap
from tests.transfer.cases import Case

Element = tuple[str, tuple[int, ...]]


def held(layout: WeightLayout, places: Sequence[int]) -> Mapping[Element, set[int]]:
    """Devices by element."""
    found: dict[Element, set[int]] = defaultdict(set)
    for name, shards in layout.shards.items():
        for box, ranks in shards.boxes:
            for index in itertools.product(*(range(*ends) for ends in box)):
                found[name, index] |= {places[rank] for rank in ranks}
    return found


def elements_by_class(case: Case) -> Mapping[tuple[tuple[int, ...], tuple[int, ...]], int]:
    """How many elements have these holders and these needers."""
    before, after = held(case.before, case.sources), held(case.after, case.targets)
    found = Counter[tuple[tuple[int, ...], tuple[int, ...]]]()
    for element, holders in before.items():
        lacking = after[element] - holders
        if lacking:
            found[tuple(sorted(holders)), tuple(sorted(lacking))] += 1
    return found


# Values moved by a plan.


Arrays = dict[int, dict[str, np.ndarray]]


def filled(layout: WeightLayout, places: Sequence[int], values: Mapping[str, np.ndarray]) -> Arrays:
    """What each device has: the values in its boxes, -1 elsewhere."""
    found: Arrays = defaultdict(lambda: {name: np.full(v.shape, -1) for name, v in values.items()})
    for name, shards in layout.shards.items():
        for box, ranks in shards.boxes:
            where = tuple(slice(*ends) for ends in box)
            for rank in ranks:
                found[places[rank]][name][where] = values[name][where]
    return found


def moved(case: Case, moves: TransferMoves, pieces: Sequence[TreePiece]) -> bool:
    """Whether every device ends with all that it wants, values sent edge by edge."""
    values = {
        name: np.arange(int(np.prod(tensor.shape))).reshape(tensor.shape)
        for name, tensor in case.before.tensors.items()
    }
    has = filled(case.before, case.sources, values)
    for piece in pieces:
        for source, target in piece.edges:
            for name, box, low, high in ranges(moves, piece.number, piece.start, piece.stop):
                where = tuple(slice(*ends) for ends in box)
                sent = has[source][name][where].ravel()[low:high]
                into = has[target][name][where].ravel()
                into[low:high] = sent
                has[target][name][where] = into.reshape([stop - start for start, stop in box])
                assert high <= volume(box)
    wanted = filled(case.after, case.targets, values)
    return all(
        (has[device][name][array >= 0] == array[array >= 0]).all()
        for device, own in wanted.items()
        for name, array in own.items()
    )


# The best whole trees, one for each class.


def trees(one: TransferClass) -> Iterator[tuple[Edge, ...]]:
    """Every tree from holders over the needers: a parent for each needer, and no cycle."""
    members = (*one.holders, *one.needers)
    for parents in itertools.product(members, repeat=len(one.needers)):
        parent = dict(zip(one.needers, parents, strict=True))
        if all(_rooted(one, parent, needer) for needer in one.needers):
            yield tuple((source, target) for target, source in parent.items())


def _rooted(one: TransferClass, parent: Mapping[int, int], device: int) -> bool:
    for _ in one.needers:
        device = parent[device]
        if device in one.holders:
            return True
    return False


def choices(moves: TransferMoves) -> int:
    """How many ways there are to choose a parent for each needer of each class."""
    return math.prod(
        (len(one.holders) + len(one.needers)) ** len(one.needers) for one in moves.classes
    )


def best_whole_s(
    moves: TransferMoves,
    ports: PortMap,
    item_bytes: int,
    cut: Sequence[tuple[int, int, int]] | None = None,
) -> Fraction:
    """The least time if each class goes along one tree, or each piece of a cut."""
    whole = [(number, 0, one.elements) for number, one in enumerate(moves.classes)]
    choices = [
        sorted(
            {
                _profile(tree, ports, (stop - start) * item_bytes)
                for tree in trees(moves.classes[number])
            }
        )
        for number, start, stop in (whole if cut is None else cut)
    ]
    return min(_time(chosen, ports) for chosen in itertools.product(*choices))


_Profile = tuple[tuple[Port, int], ...]


def _profile(tree: Sequence[Edge], ports: PortMap, payload: int) -> _Profile:
    loads = Counter[Port]()
    for edge in tree:
        loads.update(dict.fromkeys(ports.message(*edge), payload))
    return tuple(sorted(loads.items()))


def _time(chosen: Sequence[_Profile], ports: PortMap) -> Fraction:
    loads = Counter[Port]()
    for profile in chosen:
        loads.update(dict(profile))
    return max(Fraction(load) / ports.rate(port) for port, load in loads.items())
