"""Writes what NCCL's example plugin answers: ``python -m tests.interop.tuners.record LIBRARY``.

``recorded.json`` has, by the seed of a random file, the answers to the questions of that seed, each
as the number of the pair (algorithm x 3 + protocol; -1: none) and the channels.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.interop.tuners.plugin import Answer, asked_of
from tests.interop.tuners.random_files import number_of, random_file, random_questions

RECORD = Path(__file__).with_name("recorded.json")
FILES, QUESTIONS = 1000, 8


def coded(answer: Answer) -> tuple[int, int]:
    """An answer as the record has it."""
    pair, channels = answer
    return (-1 if pair is None else number_of(*pair)), channels


def answers_of(library: str) -> list[list[tuple[int, int]]]:
    """What the plugin answers about every random file."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tuner.conf")
        for seed in range(FILES):
            path.write_bytes(random_file(seed).encode())
            answers = asked_of(path, library, random_questions(seed, QUESTIONS))
            found.append([coded(answer) for answer in answers])
    return found


if __name__ == "__main__":
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in answers_of(sys.argv[1]))
    RECORD.write_text(f"[\n{rows}\n]\n")
