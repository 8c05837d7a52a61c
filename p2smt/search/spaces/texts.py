"""Matrices as the texts that stand for members."""

from __future__ import annotations

from p2smt.errors import InputError
from p2smt.files.json_text import loads
from p2smt.parallelism.placement import Matrix, Placement

_MOST = 10_000


def matrix_of(text: str) -> Matrix:
    """The matrix of a text such as ``[[4,1],[1,16]]``, as :meth:`Placement.text` writes it.

    Raises:
        InputError: it is none, or is written in another way.
    """
    given = f"matrix {text[:60]!r}"
    try:
        data = loads(text[:_MOST])
        matrix = tuple(tuple(row) for row in data)
        placement = Placement(matrix)
    except (ValueError, TypeError, RecursionError):
        raise InputError(given, "is not written like [[4,1],[1,16]]") from None
    if placement.text() != text:
        raise InputError(given, "is not written like [[4,1],[1,16]]")
    return placement.matrix
