"""The comparison with msccl-tools: processes, answers, points, page and figure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.schedule_synthesis import compare, draw, forests, frontier, page, wreaths
from experiments.schedule_synthesis.answers import our_answer, their_answer
from experiments.schedule_synthesis.compare import OURS, PLAIN, THEIRS
from experiments.schedule_synthesis.processes import Ran, ran
from experiments.schedule_synthesis.questions import QUESTIONS
from experiments.schedule_synthesis.same_fabric import Limits, limits, renumbering
from experiments.schedule_synthesis.sccl_points import GATHERS, NAMED, composed
from experiments.schedule_synthesis.store import FRONTIER, RESULTS, read, versions
from experiments.testbed.written.marked import filled
from experiments.testbed.written.timings import measured_on
from p2smt.errors import ExecutionError, InputError
from p2smt.interop.fabrics import read_fabric
from p2smt.synthesis.setting import ScheduleSize

GATHER, CLIMB = QUESTIONS[1], QUESTIONS[-1]


def printed(text: str, code: int = 0, *, in_time: bool = True) -> Ran:
    """A process that printed this."""
    return Ran(1.0, 2.0, code, text, "", in_time)


def test_the_page_of_forests_is_that_of_its_rows() -> None:
    stored = json.loads(forests.FOUND.read_text(encoding="utf-8"))["rows"]
    rows, on = forests.TIMED.joined(stored), measured_on(forests.FOLDER)
    assert forests.page(rows, on) == forests.PAGE.read_text(encoding="utf-8")
    own = [one for one in rows if one["tool"] == forests.OURS]
    assert "was not run: no clone" in forests.page(own, on)
    rates = {one["title"]: one["rate"] for one in own if "rate" in one}
    assert [one.title for one in forests.RATES] == list(rates)


def row(title: str, tool: str, answer: str, *cpu_s: float, **more: Any) -> dict[str, Any]:
    """A row of the results."""
    usual = {"title": title, "size": [2, 2, 4], "exists": True, "tool": tool, "answer": answer}
    return {**usual, "reason": "", "cpu_s": list(cpu_s), "wall_s": [1.0], **more}


ROWS = [
    row("quick", OURS, "schedule", 1.0, 3.0, 2.0),
    row("quick", THEIRS, "schedule", 1.0, 0.5),
    row("slow", OURS, "schedule", 1.0),
    row("slow", PLAIN, "schedule", 4.0),
    row("slow", THEIRS, "none", 20.0),
    row("late", OURS, "schedule", 2.0),
    row("late", THEIRS, "no answer in time", 100.0),
]
POINT = {
    "steps": 4,
    "bound": "1/3",
    "bound_kind": "flow",
    "best": "1/3",
    "gap": "0",
    "proved": True,
    "rounds": 4,
    "chunks": 12,
    "class": "T",
    "group_order": 4,
    "origin": None,
}
OPEN = {**POINT, "steps": 5, "bound": "7/24", "best": "3/10", "gap": "1/36", "proved": False}
CURVE = {
    "machine": {},
    "cpu_s": 3.0,
    "status": "open",
    "ending": "words",
    "limit": "7/24",
    "points": [POINT, OPEN],
}


def test_both_tools_are_asked_the_same() -> None:
    ours = GATHER.ours("py", "x.yaml", symmetry="none")
    assert ours[1:4] == ["-m", "p2smt.cli", "synthesize"]
    assert " ".join(ours[4:]) == (
        "--fabric dgx1 --collective all-gather --symmetry none --json "
        "--steps 3 --rounds 7 --chunks 6 -o x.yaml"
    )
    assert " ".join(GATHER.theirs("py")) == (
        "py -m msccl solve instance DGX1 Allgather -s 3 -r 7 -c 6 --no-save"
    )
    assert "--pareto" in CLIMB.ours("py", "x.yaml", symmetry="auto")
    assert CLIMB.theirs("py")[4] == "pareto-optimal"


def test_a_process_is_timed_with_its_children(tmp_path: Path) -> None:
    child = "sum(range(3_000_000))"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}]); print('x')"
    alone = ran([sys.executable, "-c", "print('x')"], os.environ, tmp_path, 600.0)
    run = ran([sys.executable, "-c", code], os.environ, tmp_path, 600.0)
    assert (run.code, run.printed, run.errors, run.in_time) == (0, "x\n", "", True)
    assert run.cpu_s > alone.cpu_s > 0


def test_a_process_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time; print('started', flush=True); "
        "subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    )
    run = ran([sys.executable, "-c", code], os.environ, tmp_path, 0.5)
    assert (run.code, run.in_time) == (-9, False)


def test_answers_of_p2smt() -> None:
    data = {"verdict": "valid", "class": "T", "group_order": 4}
    assert our_answer(printed(json.dumps(data))) == ("schedule", "class T, group of 4")
    for verdict in ("invalid", "unknown", None):
        assert our_answer(printed(json.dumps({**data, "verdict": verdict})))[0] == "failed"
    none = {"reason": "no schedule (bound)"}
    assert our_answer(printed(json.dumps(none), 4)) == ("none", "no schedule (bound)")
    assert our_answer(printed('{"reason": "r"}', 3)) == ("unknown", "r")
    assert our_answer(printed("", in_time=False)) == ("no answer in time", "")
    assert our_answer(printed("words", 2)) == ("failed", "words")
    climbed = {"status": "proved", "points": [{"steps": 2, "best": "3/2"}]}
    assert our_answer(printed(json.dumps(climbed))) == ("frontier", "proved: S=2: 3/2")


def test_answers_of_msccl_tools() -> None:
    start = "Solving instance steps=2,chunks=4... "
    assert their_answer(printed(f"{start}synthesized! (0.2s)")) == ("schedule", "")
    assert their_answer(printed(f"{start}unsatisfiable. (0.2s)")) == ("none", "unsatisfiable")
    assert their_answer(printed("Traceback", 1)) == ("failed", "Traceback")
    told = "Found 2 Pareto optimal algorithms. Pruned 4 non-optimal algorithms."
    assert their_answer(printed(f"{start}synthesized!\n{told}\n")) == ("frontier", told)
    assert their_answer(printed(start, in_time=False))[0] == "no answer in time"


def links(*triples: tuple[int, int, int]) -> Limits:
    """Edges with bandwidths of their own."""
    return {frozenset([(source, target)]): Fraction(most) for source, target, most in triples}


def mapped(shared: Limits, numbers: tuple[int, ...]) -> Limits:
    """The limits with ranks renumbered."""
    return {
        frozenset((numbers[s], numbers[t]) for s, t in edges): most
        for edges, most in shared.items()
    }


EDGES = st.sampled_from([(s, t) for s in range(4) for t in range(4) if s != t])
LIMITS = st.dictionaries(
    st.frozensets(EDGES, min_size=1, max_size=3), st.sampled_from([Fraction(1), Fraction(2)])
)


@given(LIMITS, LIMITS, st.permutations(range(4)), st.booleans())
def test_fabrics_are_the_same_if_some_renumbering_says_so(
    one: Limits, two: Limits, numbers: list[int], alike: bool
) -> None:
    other = mapped(one, tuple(numbers)) if alike else two
    found = renumbering(one, other, 4)
    some = [perm for perm in permutations(range(4)) if mapped(one, perm) == other]
    assert (found in some) if some else (found is None)


def test_limits_that_others_imply_are_left_out() -> None:
    ring, hub = read_fabric("ring:3"), read_fabric("dgx2")
    assert limits(ring) == links(*((s, t, 1) for s in range(3) for t in range(3) if s != t))
    assert {len(edges) for edges in limits(hub)} == {15}


def test_another_fabric_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compare, "peer_fabric", lambda *_: read_fabric("cube:3"))
    with pytest.raises(InputError, match="is not what msccl-tools means by DGX1"):
        compare.require_same_fabric(GATHER, tmp_path, "python")


def test_tools_take_turns_and_a_late_one_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []

    def answering(name: str, texts: list[str]) -> compare.Tool:
        def answer(_: Ran) -> tuple[str, str]:
            asked.append(name)
            return texts[asked.count(name) - 1], ""

        return name, [sys.executable, "-c", ""], dict(os.environ), answer

    both = [answering("a", ["schedule", "schedule", "none"]), answering("b", ["no answer in time"])]
    monkeypatch.setattr(compare, "tools", lambda *_: both)
    first, second = compare.rows_of(GATHER, tmp_path, "python", 3)
    assert asked == ["a", "b", "a", "a"]
    assert (first["answer"], len(first["cpu_s"])) == ("schedule, then none", 3)
    assert (second["answer"], len(second["cpu_s"])) == ("no answer in time", 1)


def test_only_the_commit_of_the_study_is_compared_with(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with pytest.raises(InputError, match="is not a clone of microsoft/msccl-tools at"):
        compare.checked_clone(str(tmp_path))


def test_a_frontier_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Ran(1.0, 1.0, 2, "", "p2smt: error: words\n", in_time=True)
    monkeypatch.setattr(frontier, "ran", lambda *_: failed)
    with pytest.raises(ExecutionError, match="words"):
        frontier.measured("dgx1")


def test_what_gathers_compose_to() -> None:
    sizes = [(one.steps, one.rounds, one.chunks) for one in map(composed, GATHERS)]
    assert sizes == [(4, 6, 16), (6, 14, 48)]
    assert [composed(one).rate for one in GATHERS] == [Fraction(3, 8), Fraction(7, 24)]
    assert [one.rate for one in NAMED] == [Fraction(1, 2), Fraction(7, 24)]


def test_times_are_of_medians_and_losses_are_said() -> None:
    assert [page.times_as_fast(ROWS, one) for one in ROWS] == [
        *(0.375, None, 20.0, 5.0, None, 50.0, None),
    ]
    said = page.losses(ROWS)
    assert said.startswith("p2smt takes longer in: quick (2, 2, 4) with p2smt (0.4 x).")
    assert page.losses(ROWS[2:]) == "p2smt takes less CPU time in every row."


def test_the_page_says_what_the_rows_say() -> None:
    results = {"versions": versions(), "measured_on": "here", "rows": ROWS}
    told = page.page(results, {"dgx1": CURVE})
    assert "| quick | (2, 2, 4) | p2smt | schedule | 2.00 | 1.00 | 0.4 x (slower) |" in told
    assert "| late | (2, 2, 4) | p2smt | schedule | 2.00 | 1.00 | more than 50.0 x |" in told
    assert "in 1 rows above it is false (slow (2, 2, 4))" in told
    assert "| 4 | 1/3 | flow | 1/3 | (4, 4, 12) | T | 4 | optimal |" in told
    assert "took 3.0 s CPU in one process. 1 of its 2 points are proved" in told
    assert "| 5 | 7/24 | flow | 3/10 |" in told
    assert "| gap 2.8% |" in told


def test_the_part_of_the_docs_has_what_was_found_on_several_nodes() -> None:
    made = {**POINT, "origin": "two-shot-all-reduce", "group_order": None}
    none = {**OPEN, "rounds": None}
    told = page.part_of_docs({"dgx1": CURVE, "two:2": {**CURVE, "points": [made, OPEN, none]}})
    rows = [line for line in told.splitlines() if line.startswith("| two:2")]
    assert rows == [
        "| two:2 | 4 | 1/3 | 1/3 | 12 | two-shot-all-reduce | optimal |",
        "| two:2 | 5 | 7/24 | 3/10 | 12 | a search, group of 4 | gap 2.8% |",
    ]
    assert "`two:2` 3\n" not in told
    assert "`two:2` 3." in told


@pytest.mark.skipif(not (RESULTS.exists() and FRONTIER.exists()), reason="nothing is measured yet")
def test_the_page_is_that_of_the_results() -> None:
    say = "run: python -m experiments.schedule_synthesis.page"
    results, frontiers = read()
    assert page.PAGE.read_text(encoding="utf-8") == page.page(results, frontiers), say
    docs = page.DOCS.read_text(encoding="utf-8")
    assert filled(docs, page.PART, page.part_of_docs(frontiers)) == docs, say


def test_wreath_products_take_as_many_rounds_as_is_stored() -> None:
    """Found, and all fewer refuted, again; and the docs have what is stored."""
    stored = wreaths.stored()
    again = wreaths.least(wreaths.FABRICS[0])
    assert again == stored["sums"][: len(again)]
    assert all(row["shifts"] <= row["wreath"] for row in stored["sums"])
    docs = page.DOCS.read_text(encoding="utf-8")
    say = "run: python -m experiments.schedule_synthesis.wreaths"
    assert filled(docs, wreaths.PART, wreaths.part_of_docs(**stored)) == docs, say


def test_an_exchange_under_listed_groups_alone_has_none_larger() -> None:
    size = ScheduleSize(2, 16, 1)
    listed = wreaths.exchanged("dgx1:2", size, wreaths.LISTED)
    assert listed["order"] == 32
    told = wreaths.part_of_docs([listed, {**listed, "groups": wreaths.EVERY, "order": None}], [])
    assert f"| dgx1:2 (2,16,1) | group of 32, {listed['cpu_s']:.1f} CPU s | open, " in told


def test_the_figure_has_every_point() -> None:
    (panel,) = draw.draw(CURVE).axes
    drawn = {
        (float(x), round(float(y), 4))
        for line in panel.lines
        if line.get_marker() not in ("None", None, "")
        for x, y in np.asarray(line.get_xydata())
    }
    assert drawn == {(4, 0.3333), (5, 0.3), (4, 0.5), (4, 0.375), (6, 0.2917)}
