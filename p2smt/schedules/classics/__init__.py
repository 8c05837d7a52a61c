"""The classic algorithms as generators of schedules, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from p2smt.errors import InputError, did_you_mean
from p2smt.schedules.classics import all_to_all, doubling, grids, rings, trees

if TYPE_CHECKING:
    from p2smt.schedules.model import Schedule

Value = int | bool | Sequence[int]
Example = tuple[int, Mapping[str, Value]]


@dataclass(frozen=True, slots=True)
class Classic:
    """A generator: ``function(ranks, **parameters)``.

    sizes: which numbers of ranks it accepts, in words.
    examples: small cases (ranks, parameters) that cover its parameters.
    """

    name: str
    function: Callable[..., Schedule]
    collective: str
    sizes: str
    examples: tuple[Example, ...]

    @property
    def parameters(self) -> Mapping[str, Value]:
        """Its parameters besides the number of ranks, with their defaults."""
        found = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in found if p.kind is p.KEYWORD_ONLY}

    @property
    def summary(self) -> str:
        """The first line of its documentation."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]


ANY, POWERS, NODES = "any from 2", "powers of two", "multiples of gpus"
PRODUCT = "the product of dims"
_OUT: Mapping[str, Value] = {"in_place": False}
_ROOT: Mapping[str, Value] = {"root": 2, "in_place": False}


def _sizes(*ranks: int) -> tuple[Example, ...]:
    return tuple((n, {}) for n in ranks)


_SOME = _sizes(2, 3, 4, 5, 6, 7, 8, 9)
_RINGS: tuple[Example, ...] = (
    *_sizes(2, 3, 4, 7),
    (4, {"fused": True}),
    (5, {"directions": 2, "channels": 2}),
    (3, {"directions": 2, "fused": True, "in_place": False}),
)
_TREES: tuple[Example, ...] = (*_SOME, (6, {"chunks": 3, "root": 4}), (5, _ROOT))
_GRIDS: tuple[Example, ...] = (
    *_sizes(3, 4, 9),
    (12, {"dims": (2, 3, 2)}),
    (6, {"dims": (2, 3), "in_place": False}),
)
_HOSTS: tuple[Example, ...] = ((2, {}), (4, {}), (6, {}), (6, {"gpus": 3}), (8, {"gpus": 4}))
_HOSTS_OUT: tuple[Example, ...] = (*_HOSTS, (6, _OUT), (4, {"gpus": 4}), (3, {"gpus": 1}))

_ALL = (
    Classic("ring-all-reduce", rings.ring_all_reduce, "allreduce", ANY, _RINGS),
    Classic("ring-reduce-scatter", rings.ring_reduce_scatter, "reduce_scatter", ANY, _RINGS),
    Classic("ring-all-gather", rings.ring_all_gather, "allgather", ANY, _RINGS),
    Classic(
        "chain-broadcast",
        rings.chain_broadcast,
        "broadcast",
        ANY,
        (*_sizes(2, 3, 5), (4, {"fused": True}), (5, {"chunks": 1}), (5, _ROOT)),
    ),
    Classic("binomial-broadcast", trees.binomial_broadcast, "broadcast", ANY, _TREES),
    Classic("binomial-reduce", trees.binomial_reduce, "reduce", ANY, _TREES),
    Classic(
        "binomial-all-reduce",
        trees.binomial_all_reduce,
        "allreduce",
        ANY,
        (*_SOME, (5, {"chunks": 3}), (6, _OUT)),
    ),
    Classic(
        "double-binary-tree-all-reduce",
        trees.double_binary_tree_all_reduce,
        "allreduce",
        ANY,
        (*_SOME, (5, {"chunks": 6}), (6, _OUT)),
    ),
    Classic(
        "van-de-geijn-broadcast",
        trees.van_de_geijn_broadcast,
        "broadcast",
        ANY,
        (*_SOME, (5, _ROOT)),
    ),
    Classic(
        "recursive-doubling-all-reduce",
        doubling.recursive_doubling_all_reduce,
        "allreduce",
        ANY,
        (*_SOME, (5, {"chunks": 3}), (6, _OUT)),
    ),
    Classic(
        "halving-doubling-all-reduce",
        doubling.halving_doubling_all_reduce,
        "allreduce",
        POWERS,
        (*_sizes(2, 4, 8), (4, _OUT)),
    ),
    Classic(
        "rabenseifner-all-reduce",
        doubling.rabenseifner_all_reduce,
        "allreduce",
        ANY,
        (*_SOME, (6, _OUT)),
    ),
    Classic(
        "swing-all-reduce",
        doubling.swing_all_reduce,
        "allreduce",
        POWERS,
        (*_sizes(2, 4, 8, 16), (4, _OUT)),
    ),
    Classic("bruck-all-gather", doubling.bruck_all_gather, "allgather", ANY, (*_SOME, (6, _OUT))),
    Classic(
        "one-shot-all-reduce",
        grids.one_shot_all_reduce,
        "allreduce",
        ANY,
        (*_sizes(2, 3, 5), (4, {"chunks": 2, "in_place": False})),
    ),
    Classic(
        "two-shot-all-reduce",
        grids.two_shot_all_reduce,
        "allreduce",
        ANY,
        (*_sizes(2, 3, 5), (4, _OUT)),
    ),
    Classic(
        "hierarchical-all-reduce", grids.hierarchical_all_reduce, "allreduce", NODES, _HOSTS_OUT
    ),
    Classic("blue-connect-all-reduce", grids.blue_connect_all_reduce, "allreduce", PRODUCT, _GRIDS),
    Classic(
        "rail-aligned-all-reduce", grids.rail_aligned_all_reduce, "allreduce", NODES, _HOSTS_OUT
    ),
    Classic("torus-all-reduce", grids.torus_all_reduce, "allreduce", PRODUCT, _GRIDS),
    Classic(
        "pairwise-all-to-all",
        all_to_all.pairwise_all_to_all,
        "alltoall",
        ANY,
        (*_sizes(2, 3, 5), (3, {"chunks": 2})),
    ),
    Classic("bruck-all-to-all", all_to_all.bruck_all_to_all, "alltoall", ANY, _SOME),
    Classic("two-step-all-to-all", all_to_all.two_step_all_to_all, "alltoall", NODES, _HOSTS),
    Classic("three-step-all-to-all", all_to_all.three_step_all_to_all, "alltoall", NODES, _HOSTS),
)
CLASSICS: Mapping[str, Classic] = MappingProxyType({c.name: c for c in _ALL})
"""Every classic by its name."""


def classic(name: str, ranks: int, **parameters: Value) -> Schedule:
    """The schedule of a classic algorithm.

    Raises:
        InputError: no such algorithm or parameter, or values that it does not accept.
    """
    if name not in CLASSICS:
        near = did_you_mean(name, CLASSICS)
        remedy = "`p2smt classics` lists them" + (f"; {near}" if near else "")
        raise InputError(f"algorithm {name[:60]!r}", "is not known", remedy)
    found = CLASSICS[name]
    for key, value in parameters.items():
        _check_parameter(found, key, value)
    return found.function(ranks, **parameters)


def _check_parameter(found: Classic, key: str, value: Value) -> None:
    """Its name, and its type by the default's."""
    known = found.parameters
    if key not in known:
        names = ", ".join(known) or "no parameters"
        raise InputError(
            f"parameter {key[:60]!r}", f"is not one of {found.name}", f"it has {names}"
        )
    want = type(known[key])
    if want is tuple:
        fits = isinstance(value, (tuple, list)) and all(type(v) is int for v in value)
    else:
        fits = type(value) is want
    if not fits:
        words = {bool: "true or false", int: "a whole number", tuple: "a list of whole numbers"}
        raise InputError(f"{key} {str(value)[:40]!r}", f"must be {words[want]}")
