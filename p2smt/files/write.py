"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from errno import EISDIR
from pathlib import Path
from typing import TYPE_CHECKING

from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


def write_atomically(path: str, content: str | bytes) -> None:
    """Write a file by way of a temporary one in the same folder: whole or not at all.

    content: text is written in UTF-8.

    Raises:
        InputError: it cannot be written; what was there before is still there.
    """
    write_all_atomically({path: content})


def same_file(path: str, other: str) -> bool:
    """Whether two paths lead to one file, written or not."""
    return os.path.realpath(path) == os.path.realpath(other)


def write_all_atomically(contents: Mapping[str, str | bytes]) -> None:
    """Write files by their paths: all are complete in their folders before the first is in place.

    Raises:
        InputError: one cannot be written; what was there before is still there, unless putting
            complete files in place fails on the way.
    """
    ready: list[tuple[str, Path, str]] = []
    path = ""
    try:
        for path, content in contents.items():
            target = Path(os.path.realpath(path))
            if target.is_dir():
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            ready.append((_temporary(target, content), target, path))
        while ready:
            name, target, path = ready[0]
            os.replace(name, target)
            ready.pop(0)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"output {path[:200]!r}", f"cannot be written ({reason})", "give another path"
        ) from None
    finally:
        for name, _, _ in ready:
            Path(name).unlink(missing_ok=True)


def _temporary(target: Path, content: str | bytes) -> str:
    """A complete file beside the target."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return name


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def check_svg_name(path: str) -> None:
    """Raise InputError unless the name of a file asks for SVG."""
    if not path.lower().endswith(".svg"):
        raise InputError(f"picture {path[:200]!r}", "must be named .svg", "rename it")
