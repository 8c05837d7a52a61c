"""The command line.  Each command is a small file without logic; solvers load on demand."""

from __future__ import annotations

import os
import sys

OK, REFUTED, BAD_INPUT, NOT_SETTLED, INFEASIBLE, NO_BACKEND = 0, 1, 2, 3, 4, 5
INTERNAL, INTERRUPTED = 70, 130


def main() -> None:
    """Run the command line; every error is one line on stderr and an exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code."""
    from p2smt.cli.app import USAGE_ERROR, app
    from p2smt.errors import EncodingBug, InputError

    try:
        code = app(arguments, prog_name="p2smt", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except InputError as error:
        return _failed(str(error), BAD_INPUT)
    except USAGE_ERROR as error:
        return _failed(getattr(error, "format_message", error.__str__)(), BAD_INPUT)
    except EncodingBug as error:
        return _failed(f"internal error: {error}", INTERNAL)
    except ImportError as error:
        return _failed(f"{error.name or error}: is not installed; install p2smt's dependencies", 5)
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _failed(message: str, code: int) -> int:
    sys.stderr.write("p2smt: error: " + " ".join(message.split()) + "\n")
    return code
