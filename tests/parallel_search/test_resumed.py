"""A coordinator that is killed again and again: its journal brings the same answer, once each."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest

from p2smt.parallel_search.best import digest_of
from tests.parallel_search.slices import Slices, marked

pytestmark = pytest.mark.cluster
SLICES = 200
COORDINATOR = """
import json, sys
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.engines.processes import Processes
from p2smt.parallel_search.journal.journal import Journal
from p2smt.parallel_search.journal.record import header_of
from tests.parallel_search.slices import Slices

if __name__ == "__main__":
    space = Slices({slices}, {pause_s})
    with Journal(sys.argv[1], header_of(space, "slices"), space.member) as journal:
        outcome = search(space, Processes(space, 2), journal=journal)
    print(json.dumps([outcome.status.value, outcome.count, outcome.digest]))
"""


def closed_cubes(journal: Path) -> Counter[str]:
    """How often each cube was closed, by the whole lines of a journal."""
    lines = journal.read_text().split("\n")[:-1] if journal.exists() else []
    records = [json.loads(line) for line in lines]
    return Counter(str(r["cube"]) for r in records if r.get("record") == "closed")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kills", "pause_s"), [(3, 0.005), pytest.param(20, 0.05, marks=pytest.mark.exhaustive)]
)
def test_a_killed_coordinator_goes_on_from_its_journal(
    kills: int, pause_s: float, tmp_path: Path
) -> None:
    """Killed after a random number of cubes each time; no process of it is left behind."""
    draw, mark = random.Random(kills), f"{uuid.uuid4()}"
    script, journal = tmp_path / "coordinator.py", tmp_path / "journal.jsonl"
    script.write_text(COORDINATOR.format(slices=SLICES, pause_s=pause_s))
    command = [sys.executable, str(script), str(journal)]
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "MARK": mark}
    for _ in range(kills):
        wanted = closed_cubes(journal).total() + draw.randrange(SLICES // kills - 2)
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        while not journal.exists() or closed_cubes(journal).total() < wanted:
            if process.poll() is not None:  # it came to the end first
                assert closed_cubes(journal).total() == SLICES
                break
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    members = Slices(SLICES).members()
    digest = digest_of(m.witness for m in members)
    assert json.loads(done.stdout) == ["complete", len(members), digest]
    closed = closed_cubes(journal)
    assert len(closed) == SLICES
    assert set(closed.values()) == {1}
    while marked(f"MARK={mark}"):
        time.sleep(0.02)
