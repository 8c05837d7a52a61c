"""A digest of a set of members, whatever the order and the parts in which they are met.

The sum of the members' SHA-256 as numbers, modulo 2^256: digests of disjoint sets add up, so the
digest of a space does not depend on how it was cut.  It guards against slips, not against forgers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

_RANGE = 1 << 256
NOTHING = "0" * 64
"""The digest of no member."""


def digest_of(witnesses: Iterable[str]) -> str:
    """The digest of members by their witnesses, each given once."""
    return _text(sum(int.from_bytes(hashlib.sha256(w.encode()).digest(), "big") for w in witnesses))


def joined_digest(digests: Iterable[str]) -> str:
    """The digest of the union of disjoint sets, from theirs."""
    return _text(sum(int(digest, 16) for digest in digests))


def _text(total: int) -> str:
    return f"{total % _RANGE:064x}"
