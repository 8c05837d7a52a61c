"""`p2smt report` and `p2smt show`."""

from __future__ import annotations

import typer

from p2smt.cli.output import writable
from p2smt.cli.parameters import Text, argument, flag, opened, option
from p2smt.errors import InputError

ANONYMOUS = flag("Numbers instead of names of hosts, switches and clusters; no command, no source.")
FILES = argument(
    "FILE..",
    "A plan, a schedule, or what a command printed with --json; two: compared.",
    needed=True,
)


@opened
def report(
    *,
    files: list[str] = FILES,
    output: Text = option("FILE.html", "Write the page here.", "-o"),
    anonymous: bool = ANONYMOUS,
) -> int:
    """One page of a file that needs nothing else: verdict, pictures, tables, what it rests on.

    Of two files the second is compared with the first.
    """
    from p2smt.files.write import write_atomically
    from p2smt.report.page.html import page
    from p2smt.report.page.reading import Names
    from p2smt.report.page.sources import story_of
    from p2smt.report.text import printable

    if output is None:
        raise InputError("no output", "a page is written to a file", "give -o FILE.html")
    writable(output)
    if not output.lower().endswith((".html", ".htm")):
        rule = "is not a page's name"
        raise InputError(f"output {output[:200]!r}", rule, "name it .html")
    write_atomically(output, page(story_of(files, Names(anonymous))))
    typer.echo(f"page written to {printable(output)}")
    return 0


@opened
def show(*, files: list[str] = FILES, anonymous: bool = ANONYMOUS) -> int:
    """The same in the terminal: the verdict first, in at most 20 lines."""
    from p2smt.report.page.reading import Names
    from p2smt.report.page.sources import story_of
    from p2smt.report.page.story import story_lines

    for line in story_lines(story_of(files, Names(anonymous))):
        typer.echo(line)
    return 0
