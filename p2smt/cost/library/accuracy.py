"""How well predictions under a library held on the systems that were measured, as data.

The file ``accuracy.yaml`` beside this one has, by library and system
(:func:`p2smt.cost.system.system_name`), classes of payloads with the abs(predicted / measured - 1)
that four of five published measurements keep to; it is written by the study that compares all of
them, never by hand:

    nccl-2.30:
      8 x nvlink4 switch 450 GB/s, efa2 400 GB/s:
        - {operation: all-reduce, least: 8 B, most: 64 KiB, error: 0.4, basis: left out}
        - {operation: all-reduce, least: 64 KiB, error: 0.2, basis: in sample}

There is no class for all systems, nor one for all operations: of what nobody measured nothing is
known.  The first class that holds a payload counts.  A gain that is smaller than the error says
nothing: whoever measures will not find it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from p2smt.cluster.error_class import Basis, ErrorClass
from p2smt.cluster.error_model import ErrorClassModel, error_class
from p2smt.errors import InputError
from p2smt.files.validation import validated
from p2smt.files.yaml_text import Plain, load_yaml, read_text

ACCURACY_FILE = Path(__file__).with_name("accuracy.yaml")
Classes = tuple[ErrorClass, ...]
Published = Mapping[str, Mapping[str, Classes]]
"""Classes by library and system."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """The error of a part of an answer, and its seconds, which weigh it."""

    seconds: float
    error: float
    basis: Basis


def error_of(
    classes: Sequence[ErrorClass], operation: str, payload_bytes: int
) -> ErrorClass | None:
    """The class of such a payload; None where nothing like it was measured."""
    return next((one for one in classes if one.holds(operation, payload_bytes)), None)


def error_over(parts: Sequence[Weighed]) -> tuple[float, Basis]:
    """The error of a sum of predictions: each part's, weighed by its share of the time.

    As if all parts were off to the same side.  Left out only if all of it was.
    """
    total = sum(one.seconds for one in parts)
    error = sum(one.seconds * one.error for one in parts) / total
    seen = any(one.basis is Basis.IN_SAMPLE for one in parts)
    return error, Basis.IN_SAMPLE if seen else Basis.LEFT_OUT


def published(library: str) -> Mapping[str, Classes]:
    """What is committed of a library's predictions, by system; empty: nothing is."""
    return _committed(ACCURACY_FILE, library) if library else {}


@lru_cache(maxsize=8)
def _committed(path: Path, library: str) -> Mapping[str, Classes]:
    libraries = _mapping(load_yaml(read_text(str(path)), path.name), path.name)
    return _systems(libraries[library], f"{path.name} {library}") if library in libraries else {}


def read_accuracies(text: str, source: str) -> Published:
    """The classes in a YAML text, by library and system.

    Raises:
        InputError: it breaks a rule of the format.
    """
    libraries = _mapping(load_yaml(text, source), source)
    return {name: _systems(data, f"{source} {name}") for name, data in libraries.items()}


def _systems(data: Plain, source: str) -> dict[str, Classes]:
    systems = _mapping(data, source)
    return {name: _classes(rows, f"{source}, {name}") for name, rows in systems.items()}


def _mapping(data: Plain, source: str) -> dict[str, Plain]:
    if not isinstance(data, dict):
        rule = "is no mapping of libraries to systems, and of these to classes"
        raise InputError(source, rule, "p2smt/cost/library/accuracy.py has an example")
    return data


def _classes(rows: Plain, source: str) -> Classes:
    if not isinstance(rows, list):
        raise InputError(source, "is no list of classes", "write lines that start with a dash")
    found = [validated(ErrorClassModel, row, f"{source} [{n}]") for n, row in enumerate(rows)]
    return tuple(error_class(one) for one in found)
