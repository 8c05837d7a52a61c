"""The versions on which the answer of a search may depend."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("p2smt", "z3-solver", "ortools")
ABSENT = "absent"


def tool_versions() -> dict[str, str]:
    """Of Python and of the packages that find and check answers; nothing is imported for it."""
    return {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT
