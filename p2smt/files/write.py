"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from p2smt.errors import InputError


def write_atomically(path: str, content: str | bytes) -> None:
    """Write a file by way of a temporary one in the same folder: whole or not at all.

    content: text is written in UTF-8.

    Raises:
        InputError: it cannot be written; what was there before is still there.
    """
    target = Path(os.path.realpath(path))
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"output {path[:200]!r}", f"cannot be written ({reason})", "give another path"
        ) from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
