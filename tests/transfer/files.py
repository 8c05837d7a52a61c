"""Layout files for tests of commands."""

from __future__ import annotations

from typing import Any


def cut(ranks: int, size: int, dimension: int) -> dict[str, Any]:
    """A square matrix, cut along a dimension over so many ranks."""
    step = size // ranks
    boxes = []
    for rank in range(ranks):
        box = [[0, size], [0, size]]
        box[dimension] = [step * rank, step * rank + step]
        boxes.append({"box": box, "devices": [rank]})
    return {"devices": ranks, "tensors": [{"name": "w", "shape": [size, size], "boxes": boxes}]}


ROWS, COLUMNS = (cut(4, 8, dimension) for dimension in (0, 1))
"""Two layouts of a matrix."""
