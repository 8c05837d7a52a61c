"""What a reader of schedules is told beside the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file does not say, or says wrongly for this use; a format uses what it has need of.

    root: of rooted collectives.  collective: instead of the file's.  in_place: for files made for
    both uses.  iterations: of pipelines.  parameters: of symbolic YAML files.
    """

    root: int = 0
    collective: str | None = None
    in_place: bool | None = None
    iterations: int = 3
    parameters: Mapping[str, int] = field(default_factory=dict)


AS_IT_STANDS = Reading()
"""Nothing is said beside the file."""
