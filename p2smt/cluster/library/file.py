"""Library files (YAML): reading them, and those that come with the package.

A small one (all keys: :mod:`p2smt.cluster.library.model`):

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

import re

from p2smt.cluster.library.checks import check_library
from p2smt.cluster.library.model import FILE_PATTERN, Library
from p2smt.errors import InputError
from p2smt.files.packaged import names_in, text_in
from p2smt.files.shapes import reader_of
from p2smt.files.text_kind import seems
from p2smt.files.yaml_text import load_yaml, read_text

_PACKAGED = "p2smt.libraries"
_MARKS = {"calls", "protocols", "hops", "runs", "joins_nodes", "vendor"}
"""Keys that no other kind of file has together: one of them, and it is meant to be a library."""


def is_library_file(text: str) -> bool:
    """Whether an option or key that names a library means a file of one."""
    return re.search(FILE_PATTERN, text) is not None


def parse_library(text: str, source: str) -> Library:
    """The library in a YAML (or JSON) text; ``source`` names it in messages.

    Raises:
        InputError: the text is not safe YAML, a key is unknown, missing or has a bad value, or
            the library cannot be chosen by.
    """
    data = load_yaml(text, source)
    if not isinstance(data, dict) or not _MARKS & set(data):
        rule = f"is no library: it {seems(text)}"
        raise InputError(source, rule, "name a file with the keys name, calls, hops, runs ..")
    return library_from_data(data, source)


def library_from_data(data: object, source: str) -> Library:
    """The library in plain data, as a file that holds it has them.

    Raises:
        InputError: as for :func:`parse_library`.
    """
    # Loading pydantic takes longer than all the rest: only files of others are worth it.
    from p2smt.files.validation import validated

    found = validated(Library, data, source)
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
    return names_in(_PACKAGED)


def packaged_text(name: str) -> str:
    """The YAML text of one of :func:`packaged_names`, with its sources as comments."""
    return text_in(_PACKAGED, name)


def packaged_library(name: str) -> Library:
    """One of :func:`packaged_names`: the tests have checked their files, so this does not again."""
    return reader_of(Library)(load_yaml(packaged_text(name), f"library {name}"))
