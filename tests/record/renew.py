"""Writes ``golden/`` anew, and says which commands changed: ``python -m tests.record [SCENE..]``.

Each command runs under two solver seeds and two hash seeds.  Where its outcomes differ, only what
all right answers share is kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from tests.record.golden import changes, kept_of, kept_of_all, text_of
from tests.record.play import Start, in_process, play
from tests.record.scenes import GOLDEN, Scene, scenes
from tests.record.shown import Entries, Entry

SEEDS = ("0", "7")
HASH_SEEDS = ("1", "2")


def recorded(scene: Scene, seed: int | None = None, start: Start = in_process) -> list[Entry]:
    """The entries of a scene now."""
    entries = Entries(scene.digits)
    return [entries.entry(outcome) for outcome in play(scene, seed, start)]


def main(names: Sequence[str]) -> None:
    """Renew the scenes of these names, or all."""
    chosen = [scene for scene in scenes() if not names or scene.name in names]
    variants = _all_variants([scene.name for scene in chosen])
    for scene in chosen:
        runs = zip(*(variant[scene.name] for variant in variants), strict=True)
        new = [kept_of_all(entries) for entries in runs]
        for line in changes(kept_of(scene), new):
            print(f"{scene.name}: {line}" if line[0] != " " else line)
        scene.golden.write_text(text_of(new), encoding="utf-8", newline="\n")
    if not names:
        known = {scene.golden for scene in chosen}
        for path in sorted(set(GOLDEN.glob("*.txt")) - known):
            print(f"{path.stem}: removed")
            path.unlink()


def _all_variants(names: Sequence[str]) -> list[dict[str, list[Entry]]]:
    """Every scene under each pair of seeds, two processes at a time."""
    pairs = [(seed, hash_seed) for seed in SEEDS for hash_seed in HASH_SEEDS]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        paths = [Path(folder) / f"{seed}-{hash_seed}.json" for seed, hash_seed in pairs]
        list(pool.map(_start, pairs, paths, [names] * len(pairs)))
        return [_read(path) for path in paths]


def _start(pair: tuple[str, str], path: Path, names: Sequence[str]) -> None:
    seed, hash_seed = pair
    command = [sys.executable, "-m", "tests.record", "--variant", seed, str(path), *names]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run(command, env=environment, check=True)


def variant(seed: str, path: str, names: Sequence[str]) -> None:
    """Write the entries of these scenes under one solver seed; under another, in another order."""
    found = {
        scene.name: [asdict(entry) for entry in recorded(scene, int(seed) or None)]
        for scene in (scenes()[::-1] if int(seed) else scenes())
        if scene.name in names
    }
    Path(path).write_text(json.dumps(found), encoding="utf-8")


def _read(path: Path) -> dict[str, list[Entry]]:
    data = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: [Entry(e["command"], tuple(tuple(form) for form in e["forms"])) for e in entries]
        for name, entries in data.items()
    }
