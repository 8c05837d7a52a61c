"""YAML files that come with the package: which there are in a folder of it, and their texts."""

from __future__ import annotations

from importlib.resources import files

_SUFFIX = ".yaml"


def names_in(package: str) -> tuple[str, ...]:
    """The files of a package such as ``p2smt.topologies``, without their ending, sorted."""
    names = (entry.name for entry in files(package).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def text_in(package: str, name: str) -> str:
    """The text of one of :func:`names_in`."""
    return files(package).joinpath(name + _SUFFIX).read_text(encoding="utf-8")
