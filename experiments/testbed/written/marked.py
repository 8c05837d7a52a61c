"""Pages of which scripts write a part, between two marks: lines of their own that nobody sees."""

from __future__ import annotations

import re

from p2smt.errors import InputError


def filled(text: str, name: str, new: str) -> str:
    """The text with what stands between the marks of that name replaced.

    The marks are ``<!-- NAME: written by SCRIPT -->`` and ``<!-- NAME end -->``.

    Raises:
        InputError: they are not there once each, in this order.
    """
    mark = re.escape(name)
    pattern = rf"(<!-- {mark}: written by [^\n]* -->\n).*?(<!-- {mark} end -->\n)"
    found, count = re.subn(pattern, lambda old: old[1] + new + old[2], text, flags=re.DOTALL)
    if count != 1:
        rule = f"needs one pair <!-- {name}: written by .. --> and <!-- {name} end -->"
        raise InputError(f"page with {count} parts {name!r}", rule)
    return found
