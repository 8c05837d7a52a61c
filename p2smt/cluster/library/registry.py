"""Libraries by name: those of the package, and others that a program adds.

Names are what files, options and journals have; a topology that was read holds the library itself.
A program's own library may run algorithms of its own: ``register_algorithm`` comes first.  Files
are read where a library is asked for: what runs by none needs no YAML.
"""

from __future__ import annotations

from functools import lru_cache

from p2smt.cluster.library.model import ADDED, Library
from p2smt.errors import InputError, did_you_mean


def library_names() -> tuple[str, ...]:
    """Every name that :func:`library_of` knows, sorted."""
    from p2smt.cluster.library.file import packaged_names

    return tuple(sorted({*packaged_names(), *ADDED.libraries}))


def library_of(name: str) -> Library:
    """The library of that name.

    Raises:
        InputError: there is none.
    """
    return ADDED.libraries.get(name) or _packaged(name)


def known_or_named(name: str) -> Library:
    """The library of a name; where nobody knows it, one of which nothing but the name is known."""
    return library_of(name) if name in library_names() else Library.only_named(name)


def outside_package(library: Library | None) -> Library | None:
    """A library that a process which is started anew does not know by its name; or None."""
    from p2smt.cluster.library.file import packaged_names

    if library is None or (library.name in packaged_names() and library == _packaged(library.name)):
        return None
    return library


def register_library(library: Library) -> None:
    """Make a library known by its name; the same one may be added again.

    Raises:
        InputError: another library has that name, or the library cannot be chosen by.
    """
    from p2smt.cluster.library.checks import check_library

    check_library(library, f"library {library.name}")
    check_name(library)
    ADDED.libraries[library.name] = library


def check_name(library: Library) -> None:
    """Whether a name means this library alone.

    Raises:
        InputError: it is known as that of another one.
    """
    if library.name in library_names() and library_of(library.name) != library:
        rule = "another library has this name"
        raise InputError(f"library {library.name[:60]}", rule, "rename yours")


@lru_cache
def _packaged(name: str) -> Library:
    from p2smt.cluster.library.file import packaged_library, packaged_names

    known = library_names()
    if name not in packaged_names():
        family = [one for one in packaged_names() if one.startswith(f"{name}-")]
        near = f"did you mean {max(family)!r}?" if family else did_you_mean(name, known)
        remedy = (
            near or f"the libraries are {', '.join(known)}, none, or a file's, such as mine.yaml"
        )
        raise InputError(f"library {name[:60]!r}", "is not known", remedy)
    return packaged_library(name)


def newest_version(name: str) -> str:
    """The newest library whose name differs in its version alone: ``nccl-2.30`` for ``nccl-2.20``.

    A name without a version, or one that is not known, is its own.
    """
    every = {one: _version(one) for one in library_names()}
    own = every.get(name)
    versions = [
        (found, one) for one, found in every.items() if own and found and found[0] == own[0]
    ]
    return max(versions)[1] if versions else name


def _version(name: str) -> tuple[str, tuple[int, ...]] | None:
    family, _, version = name.rpartition("-")
    parts = version.split(".")
    if not family or not all(part.isdecimal() for part in parts):
        return None
    return family, tuple(map(int, parts))
