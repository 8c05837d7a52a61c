"""The command lines of the record: a scene is a file of ``commands/``, run in a folder of its own.

A scene opens with comments and settings (``files: shared``), then has one command line each line.
``files`` names folders below ``files/`` whose content lies in the folder of the scene; ``tier:
slow`` leaves it to ``make test``, ``tier: exhaustive`` to ``make test-all``; ``digits: 6`` rounds
numbers that a fit by numerics of the machine finds; ``also: --json`` runs every command once more,
with these words.  Commands of a scene run in their order, and read what those before them wrote.
"""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
COMMANDS, FILES, GOLDEN = HERE / "commands", HERE / "files", HERE / "golden"
SHELL = "! "
"""How lines begin that the shell runs."""
SETTINGS = ("files", "tier", "also", "digits")


@dataclass(frozen=True)
class Scene:
    """Command lines without the program's name, and the folders of files that they read."""

    name: str
    commands: tuple[str, ...]
    files: tuple[str, ...]
    tier: str | None
    digits: int | None = None

    def furnish(self, folder: Path) -> None:
        """Copy the files that the commands read."""
        for name in self.files:
            shutil.copytree(FILES / name, folder, dirs_exist_ok=True)

    @property
    def golden(self) -> Path:
        """Where what it prints and writes is kept."""
        return GOLDEN / f"{self.name}.txt"


def scene_of(path: Path) -> Scene:
    """The scene that a file of command lines describes."""
    settings: dict[str, list[str]] = {}
    commands: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        name, colon, value = line.partition(":")
        if colon and name in SETTINGS and not commands:
            settings[name] = value.split()
        elif line and not line.startswith("#"):
            commands.append(line)
    if also := settings.get("also"):
        extra = shlex.join(also)
        commands = [text for line in commands for text in _both(line, extra)]
    return Scene(
        path.stem,
        tuple(commands),
        tuple(settings.get("files", ())),
        settings["tier"][0] if "tier" in settings else None,
        int(settings["digits"][0]) if "digits" in settings else None,
    )


def _both(line: str, extra: str) -> tuple[str, ...]:
    """A command line without more words and with them; one of the shell as it is."""
    return (line,) if line.startswith(SHELL) else (line, f"{line} {extra}")


def scenes() -> tuple[Scene, ...]:
    """All of them, by name."""
    return tuple(scene_of(path) for path in sorted(COMMANDS.glob("*.txt")))
