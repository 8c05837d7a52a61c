"""Shapes of arrays for people."""

from __future__ import annotations

from collections.abc import Sequence


def shape_text(shape: Sequence[int], padded: Sequence[int]) -> str:
    """``65,64 padded to 68,64``; ``64,64`` where nothing is padded."""
    text, whole = ",".join(map(str, shape)), ",".join(map(str, padded))
    return text if text == whole else f"{text} padded to {whole}"
