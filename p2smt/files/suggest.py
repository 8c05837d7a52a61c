"""What a misspelt word may have meant."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the known word nearest to ``word``, or an empty text."""
    near = difflib.get_close_matches(word[:60], list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""
