"""Bad input: the one line in which it is refused, and texts that were damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import strategies as st

from p2smt.errors import InputError

Found = TypeVar("Found")


def refusal(call: Callable[..., object], *given: object, **options: object) -> str:
    """What a call says of input that it refuses: one line."""
    with pytest.raises(InputError) as caught:
        call(*given, **options)
    return _one_line(caught.value)


def found_or_refusal(call: Callable[..., Found], *given: object) -> tuple[Found | None, str]:
    """What a call finds, or the one line in which it refuses; any other error goes through."""
    try:
        return call(*given), ""
    except InputError as error:
        return None, _one_line(error)


def _one_line(error: InputError) -> str:
    said = str(error)
    assert said
    assert "\n" not in said
    return said


@st.composite
def spliced(draw: st.DrawFn, text: str, alphabet: str) -> str:
    """The text with up to five characters replaced by up to four, in one to four places."""
    inserted = draw(st.text(alphabet, max_size=4))
    removed = draw(st.integers(0, 5))
    for place in draw(st.lists(st.integers(0, len(text)), min_size=1, max_size=4)):
        at = min(place, len(text))
        text = text[:at] + inserted + text[at + removed :]
    return text
