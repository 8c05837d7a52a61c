"""How the studies' scripts end: an error that has an explanation is one line on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from experiments.testbed.system import ToolMissing
from p2smt.errors import BackendError, ExecutionError, InputError

BAD_INPUT, TOOL_MISSING, FAILED = 2, 5, 6
"""As of the command line."""


def ended(main: Callable[[Sequence[str]], None], arguments: Sequence[str]) -> int:
    """Run a script's main function; the exit code."""
    try:
        main(arguments)
    except InputError as error:
        return _say(error, TOOL_MISSING if isinstance(error, ToolMissing) else BAD_INPUT)
    except BackendError as error:
        return _say(error, TOOL_MISSING)
    except ExecutionError as error:
        return _say(error, FAILED)
    except OSError as error:
        return _say(f"{error.filename}: {error.strerror}", BAD_INPUT)
    return 0


def only_argument(arguments: Sequence[str], what: str) -> str:
    """The one argument of a script.

    Raises:
        InputError: there are none, or more.
    """
    if len(arguments) != 1:
        raise InputError(f"{len(arguments)} arguments", f"one is expected: {what}")
    return arguments[0]


def _say(error: object, code: int) -> int:
    sys.stderr.write(f"error: {error}\n")
    return code
