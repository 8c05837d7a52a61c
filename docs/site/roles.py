"""For mkdocstrings: roles of Sphinx in docstrings, such as ``:func:``, become code."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")


class Roles(Extension):
    """Rewrites each docstring as it is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Of a function, class, module or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)
