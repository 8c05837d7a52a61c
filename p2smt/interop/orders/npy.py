"""Arrays of whole numbers in numpy's own format (.npy), nothing in which is executed.

The header is read before the numbers: a file that claims more than it holds costs nothing.
"""

from __future__ import annotations

import io
import math
import tokenize

import numpy as np
from numpy.lib import format as npy_format

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.errors import InputError
from p2smt.files.yaml_text import read_bytes
from p2smt.parallelism.placement import MAX_AXES, IntArray

MAX_BYTES = 8 * MAX_DEVICES + 2**16
_REMEDY = "save it with numpy.save(path, mesh.mesh.numpy())"

_DAMAGED = (
    *(ValueError, KeyError, TypeError, SyntaxError, RecursionError, EOFError, MemoryError),
    tokenize.TokenError,
)
"""What numpy raises for headers that are none."""


def read_npy(path: str) -> IntArray:
    """The array in a .npy file, as 64-bit whole numbers.

    Raises:
        InputError: the file cannot be read, is no .npy file, or holds no whole numbers, too many
            dimensions or too many entries.
    """
    given = f"file {path[:200]!r}"
    return parse_npy(read_bytes(path, given, MAX_BYTES, "a mesh has a number per rank"), given)


def parse_npy(raw: bytes, given: str) -> IntArray:
    """The array in the bytes of a .npy file; ``given`` names it in messages.

    Raises:
        InputError: as for :func:`read_npy`.
    """
    file = io.BytesIO(raw)
    try:
        version = npy_format.read_magic(file)
        reads = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
        shape, by_column, kind = reads[version](file)
    except _DAMAGED:
        raise InputError(given, "is no .npy file of version 1 or 2", _REMEDY) from None
    if kind.hasobject or kind.kind not in "iu":
        raise InputError(given, f"holds {str(kind)[:40]}, not whole numbers", _REMEDY)
    if not 1 <= len(shape) <= MAX_AXES or not 1 <= math.prod(shape) <= MAX_DEVICES:
        rule = f"has shape {str(list(shape))[:60]}, not 1 to {MAX_AXES} dimensions"
        raise InputError(given, f"{rule} and 1 to {MAX_DEVICES} entries", _REMEDY)
    rest = raw[file.tell() :]
    if len(rest) != math.prod(shape) * kind.itemsize:
        raise InputError(given, "is cut short, or longer than its header says", _REMEDY)
    found = np.frombuffer(rest, dtype=kind).reshape(shape, order="F" if by_column else "C")
    if found.min() < 0 or found.max() >= MAX_DEVICES:
        raise InputError(given, f"holds a number that is not from 0 to {MAX_DEVICES - 1}", _REMEDY)
    return found.astype(np.int64)
