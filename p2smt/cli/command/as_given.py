"""Parameters whose values are the texts that were given.

typer has pydantic make texts of texts, and loads it for that: of a command that reads no file it
would be the better part.  What a text means, p2smt reads by itself (:mod:`p2smt.cli.given`).
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperArgument, TyperOption


class _AsGiven:
    """A parameter of text, of a list of texts, or a flag."""

    required: bool
    callback: Any

    def process_value(self, ctx: Any, value: Any) -> Any:
        """What was given; typer says what is wrong where something is missing."""
        base: Any = super()
        if value is None and not self.required:
            value = () if self._takes_many() else None
        elif isinstance(value, list | tuple) and value:
            value = list(value)
        elif not isinstance(value, str | bool):
            return base.process_value(ctx, value)
        return self.callback(ctx, self, value) if self.callback else value

    def _takes_many(self) -> bool:
        return getattr(self, "multiple", False) or getattr(self, "nargs", 1) == -1


class _GivenOption(_AsGiven, TyperOption):
    """An option."""


class _GivenArgument(_AsGiven, TyperArgument):
    """An argument."""


def as_given(parameter: Any) -> Any:
    """The same parameter, whose value is what was given."""
    kind = _GivenOption if isinstance(parameter, TyperOption) else _GivenArgument
    found: Any = kind.__new__(kind)
    vars(found).update(vars(parameter))
    return found


class OfTexts:
    """A command all of whose parameters are texts, lists of texts, or flags."""

    def __init__(self, *arguments: Any, params: Any = None, **more: Any) -> None:
        base: Any = super()
        base.__init__(*arguments, params=[as_given(one) for one in params or ()], **more)
        self._help: Any = None

    def get_help_option(self, ctx: Any) -> Any:
        """``--help``: always the same object, since the parser compares them."""
        base: Any = super()
        if self._help is None and (found := base.get_help_option(ctx)) is not None:
            self._help = as_given(found)
        return self._help
