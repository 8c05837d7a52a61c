"""The command line.  Each command is a small file without logic; solvers load on demand."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
import threading

from p2smt.cli.codes import (
    BAD_INPUT,
    FAILED,
    INTERNAL,
    INTERRUPTED,
    NO_BACKEND,
    OK,
    TERMINATED,
)
from p2smt.cli.signals import Interrupts

COLLECT_AFTER = 300_000
"""Containers made between two searches for unreachable cycles.  While its modules load a command
makes half as many, and nearly all of them stay: Python's own 700 would search a hundred times."""

NO_PLUGINS = ("PYDANTIC_DISABLE_PLUGINS", "__all__")
"""Watchers of validation, for which pydantic reads the metadata of every installed package."""

COMPLETE = "_P2SMT_COMPLETE"
"""Set by the completion of a shell, to its name."""


def main() -> None:
    """Run the command line; every error is one line on stderr and an exit code."""
    gc.set_threshold(COLLECT_AFTER)
    os.environ.setdefault(*NO_PLUGINS)
    interrupts = Interrupts()
    try:
        interrupts.install()
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # names the terminal cannot show
        code = run(sys.argv[1:], interrupts)
        interrupts.uninstall()
    except KeyboardInterrupt:  # before the command or after it
        code = _interrupted(interrupts)
    # An interrupt that left an exec(..) makes Python end -m with SIGINT, whatever the code is.  And
    # a thread that lives is a rank that waits in a library, which would abort the process.
    if interrupts.number is not None or threading.active_count() > 1:
        _end_now(code)
    gc.freeze()  # all that is left ends with the process: no cycle in it is worth finding
    sys.exit(code)


def run(arguments: list[str], interrupts: Interrupts | None = None) -> int:
    """Run one command; returns the exit code."""
    try:
        code = _answered(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (BrokenPipeError, SystemExit):  # typer and rich turn a broken pipe into SystemExit
        _discard_output()
        return OK
    except Exception as error:
        if interrupts is None or not interrupts.caused(error):
            return _failed(_cause(error, arguments), as_json="--json" in arguments)
        code = INTERRUPTED
    return _interrupted(interrupts) if code == INTERRUPTED else code


def _answered(arguments: list[str]) -> int:
    """What a shell asks while one types, a page that needs no command, or a command."""
    from p2smt.cli.guide.commands import shown_at_once

    if COMPLETE in os.environ:
        from p2smt.cli.guide.completion import complete

        return complete(os.environ[COMPLETE])
    if (text := shown_at_once(arguments)) is not None:
        sys.stdout.write(text + "\n")
        return OK
    from p2smt.cli.app import call

    return call(arguments)


def _interrupted(interrupts: Interrupts | None) -> int:
    """Say that a signal came, and which; returns its exit code."""
    if interrupts is not None and interrupts.terminated:
        sys.stderr.write("p2smt: terminated\n")
        return TERMINATED
    sys.stderr.write("p2smt: interrupted\n")
    return INTERRUPTED


def _end_now(code: int) -> None:
    """End without Python's own end; what is still buffered is written."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _cause(error: Exception, arguments: list[str]) -> Exception:
    """The error, or what is behind it: a file of p2smt's own where another is wanted."""
    from p2smt.cli.app import USAGE_ERROR
    from p2smt.errors import InputError

    if not isinstance(error, InputError | USAGE_ERROR):
        return error
    from p2smt.cli.guide.own_files import misplaced

    return misplaced(arguments) or error


def _failed(error: Exception, *, as_json: bool = False) -> int:
    """Explain an error that has an explanation; the others are bugs: one line, exit code 70."""
    from p2smt.cli.app import USAGE_ERROR, usage
    from p2smt.errors import BackendError, EncodingBug, ExecutionError, InputError

    if as_json and not isinstance(error, OSError):
        _print_error(error)
    match error:
        case InputError():
            return _say(str(error), BAD_INPUT)
        case BackendError():
            return _say(str(error), NO_BACKEND)
        case ExecutionError():
            return _say(str(error), FAILED)
        case EncodingBug():
            return _say(f"internal error: {error}", INTERNAL, most=10_000)
        case ModuleNotFoundError() if error.name and not error.name.startswith("p2smt"):
            text = f"{error.name}: is not installed; install p2smt with its dependencies"
            return _say(text, NO_BACKEND)
        case OSError():
            _discard_output()
            return _say(f"output: cannot be written ({error.strerror or error})", BAD_INPUT)
    if isinstance(error, USAGE_ERROR):
        return _say(usage(error), BAD_INPUT)
    text = f"internal error: {type(error).__name__}: {error}"
    return _say(text, INTERNAL, most=10_000)


def _print_error(error: Exception) -> None:
    """The error as the one JSON object on stdout, unless the answer is there already."""
    from p2smt.cli.app import USAGE_ERROR, usage_parts
    from p2smt.cli.output import has_printed, print_json
    from p2smt.errors import InputError
    from p2smt.report.outputs.shape import ErrorOutput, ErrorPart
    from p2smt.report.text import one_line

    if has_printed() or (isinstance(error, InputError) and _another_rank_says_it()):
        return
    given, rule, remedy = "", str(error), ""
    if isinstance(error, USAGE_ERROR):
        given, rule, remedy = usage_parts(error)
    elif isinstance(error, InputError):
        given, rule, remedy = error.given, error.rule, error.remedy
    given, rule, remedy = map(one_line, (given, rule, remedy))
    print_json(ErrorOutput(error=ErrorPart(given=given, rule=rule, remedy=remedy)))
    sys.stdout.flush()


def _another_rank_says_it() -> bool:
    """Whether a launcher started this process beside rank 0, which finds the same bad input."""
    from p2smt.runtime.ranks.mpi_launch import is_first_rank

    return not is_first_rank()


def _say(message: str, code: int, most: int | None = None) -> int:
    from p2smt.report.text import MAX_MESSAGE, one_line

    sys.stderr.write(f"p2smt: error: {one_line(message, most or MAX_MESSAGE)}\n")
    return code


def _discard_output() -> None:
    """Send what is still buffered for stdout nowhere: nobody reads it."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
