"""Libraries by name: those of the package, and others that a program adds.

A program's own library may run algorithms of its own: ``register_algorithm`` comes first.  Files
are read where a library is asked for: what runs by none needs no YAML.
"""

from __future__ import annotations

from functools import lru_cache

from p2smt.cluster.topology import Topology
from p2smt.cost.library.checks import check_library
from p2smt.cost.library.model import Library, register_algorithm
from p2smt.errors import InputError, did_you_mean

__all__ = ["library_names", "library_of", "register_algorithm", "register_library", "under_library"]

_ADDED: dict[str, Library] = {}


def library_names() -> tuple[str, ...]:
    """Every name that :func:`library_of` knows, sorted."""
    from p2smt.cost.library.file import packaged_names

    return tuple(sorted({*packaged_names(), *_ADDED}))


def library_of(name: str) -> Library:
    """The library of that name.

    Raises:
        InputError: there is none.
    """
    return _ADDED.get(name) or _packaged(name)


def under_library(topology: Topology, library: str) -> Topology:
    """As :meth:`Topology.under`, by what is known of the library that the topology has so far."""
    known = topology.library in library_names()
    by_operation = known and library_of(topology.library).fixed
    return topology.under(library, by_operation=by_operation)


def register_library(library: Library) -> None:
    """Make a library known by its name; the same one may be added again.

    Worker processes that are started anew do not know it: register it there as well.

    Raises:
        InputError: another library has that name, or the library cannot be chosen by.
    """
    from p2smt.cost.library.file import packaged_names

    check_library(library, f"library {library.name}")
    taken = library.name in packaged_names() or library.name in _ADDED
    if taken and library_of(library.name) != library:
        rule = "another library has this name"
        raise InputError(f"library {library.name[:60]}", rule, "rename yours")
    _ADDED[library.name] = library


@lru_cache
def _packaged(name: str) -> Library:
    from p2smt.cost.library.file import packaged_library, packaged_names

    known = library_names()
    if name not in packaged_names():
        remedy = did_you_mean(name, known) or f"the libraries are {', '.join(known)}, or none"
        raise InputError(f"library {name[:60]!r}", "is not known", remedy)
    return packaged_library(name)
