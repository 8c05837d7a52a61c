"""Up to which payload a library takes one way of a step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class ChosenCell:
    """From ``low`` to ``high`` bytes (None: without end) a library takes the way of this index.

    ``below``: at ``high`` itself it takes that of the next cell.
    """

    low: Fraction
    high: Fraction | None
    way: int
    below: bool = False

    def reaches(self, payload_bytes: Fraction) -> bool:
        """Whether a payload is not beyond its end."""
        if self.high is None or payload_bytes < self.high:
            return True
        return payload_bytes == self.high and not self.below

    def of_share(self, share: Fraction) -> ChosenCell:
        """The same where the payload is a share of n."""
        high = None if self.high is None else self.high / share
        return ChosenCell(self.low / share, high, self.way, self.below)
