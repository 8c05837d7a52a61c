"""Layout files for tests of commands."""

from __future__ import annotations

ROWS, COLUMNS = (
    {
        "devices": 4,
        "tensors": [
            {
                "name": "w",
                "shape": [8, 8],
                "boxes": [
                    {"box": [[0, 8], [2 * r, 2 * r + 2]][::turn], "devices": [r]} for r in range(4)
                ],
            }
        ],
    }
    for turn in (-1, 1)
)
"""Two layouts of a matrix."""
