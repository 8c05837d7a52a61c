"""Runs the commands that an export prints, with a program that says where it was started."""

from __future__ import annotations

from pathlib import Path


def noted(stderr: str, start: str) -> list[str]:
    """The commands in notes, each from ``start`` to the end of its line."""
    return [line[line.index(start) :] for line in stderr.splitlines() if start in line]


def program(folder: Path, rank: str, host: str, local: str) -> str:
    """A program that prints its rank, host and local number.

    ``rank`` and ``local`` are variables, ``host`` is any text of the shell.
    """
    path = folder / f"show-{local}"
    path.write_text(f'#!/bin/sh\necho "seen,${rank},{host},${local}"\n')
    path.chmod(0o755)
    return str(path)


def seen(output: str) -> list[tuple[int, str, int]]:
    """Rank, host and local number of every process, by rank."""
    rows = [line.split(",")[1:] for line in output.splitlines() if line.startswith("seen,")]
    return sorted((int(rank), host, int(local)) for rank, host, local in rows)
