"""What a reader of schedules is told beside the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.collectives.contract import RULES
from p2smt.collectives.names import collective_named
from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


class NoKind(InputError):
    """A file names no collective, or none that it can be: it may be valid as some other."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file does not say, or says wrongly for this use; None: it is not said here either.

    root: of rooted collectives; 0 if not said.  collective: instead of the file's.
    in_place: for files made for both uses.  iterations: of pipelines; 3 if not said.
    parameters: of symbolic YAML files.
    """

    root: int | None = None
    collective: str | None = None
    in_place: bool | None = None
    iterations: int | None = None
    parameters: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.collective is not None and (known := collective_named(self.collective)):
            object.__setattr__(self, "collective", known)

    def root_of(self, collective: str) -> int:
        """The root of a collective.

        Raises:
            InputError: one is given, and the collective has none.
        """
        rule = RULES.get(collective)
        if self.root is not None and rule is not None and not rule.rooted:
            raise InputError(f"root {self.root}", f"{collective} has no root", "drop --root")
        return self.root or 0


AS_IT_STANDS = Reading()
"""Nothing is said beside the file."""
