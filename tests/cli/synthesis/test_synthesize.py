"""`p2smt synthesize`: answers by exit code, files, JSON, bad input, interrupts."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import p2smt
from p2smt import result
from p2smt.errors import InputError
from p2smt.fabric.fabric_file import load_fabric
from p2smt.interop import schedule_files
from p2smt.report.schedules.synthesis_data import bound_words, frontier_tables
from p2smt.report.tables import table_lines
from p2smt.schedules.model import Schedule
from p2smt.synthesis import best_rate
from p2smt.synthesis import setting as copied
from p2smt.synthesis import symmetry_search as climb
from p2smt.synthesis.setting import ScheduleSize, SynthesisSetting
from tests.cli.tools import assert_one_error, cli
from tests.synthesis.late import Clock

RING = "--fabric ring:4 --collective all-gather"


def synthesize(arguments: str) -> tuple[int, list[str]]:
    done = cli("synthesize", *shlex.split(arguments))
    assert done.err == ""
    return done.code, done.out.splitlines()


def test_a_schedule_with_its_files(tmp_path: Path) -> None:
    names = {"-o": "algo.xml", "--certificate": "cert.json", "--svg": "picture.svg"}
    options = " ".join(f"{option} {tmp_path / name}" for option, name in names.items())
    code, lines = synthesize(f"{RING} --steps 2 --rounds 3 --chunks 2 {options}")
    assert (code, lines[0]) == (0, "schedule")
    assert "optimal: R/C is at least 3/2 in 2 steps, whatever the chunks (degree)" in lines
    assert "verified: right in every interleaving" in lines
    assert cli("verify", str(tmp_path / "algo.xml")).code == 0
    assert cli("verify", str(tmp_path / "cert.json")).code == 0
    assert (tmp_path / "picture.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("size", "code", "reason"),
    [
        ("--steps 1 --rounds 2 --chunks 1", 4, "no schedule (bound)"),
        ("--steps 2 --rounds 2 --chunks 2", 4, "no schedule (bound)"),
        ("--steps 2 --rounds 3 --chunks 2", 0, "schedule"),
        ("--steps 2 --rounds 3 --chunks 2 --time-limit 0", 3, "unknown"),
    ],
)
def test_exit_codes_and_reasons(size: str, code: int, reason: str) -> None:
    done = cli("synthesize", *shlex.split(f"{RING} {size} --json"))
    assert (done.code, done.json()["reason"]) == (code, reason)


def test_a_complete_search_says_in_which_class() -> None:
    """The bound allows them; nothing that is no sum of disjoint values was looked at."""
    for options, messages in (("", "1 message"), (" --messages 2", "2 messages")):
        asked = f"--fabric cube:2 --collective all-reduce --steps 2 --rounds 3 --chunks 3{options}"
        done = cli("synthesize", *shlex.split(asked), "--symmetry", "none", "--json")
        found = done.json()
        reason = f"no schedule in class G with {messages} (complete search)"
        assert (done.code, found["reason"]) == (4, reason)
        assert (found["searches"][-1]["group_order"], found["bound"]) == (1, "1")


ONE_WAY = "name: one-way\nranks: 3\nlinks:\n" + "".join(
    f"  - {{ranks: [{a}, {(a + 1) % 3}], bandwidth: 1, one_way: true}}\n" for a in range(3)
)
MAY = "more chunks at the same R/C, or more rounds, may still have a schedule"


@pytest.mark.parametrize(("rounds", "chunks", "said"), [(3, 2, True), (4, 3, False)])
def test_a_refuted_size_that_meets_the_bound_leaves_others_open(
    tmp_path: Path, rounds: int, chunks: int, said: bool
) -> None:
    """R/C is at least 3/2 in three steps: the one is refuted by search, the other by the bound."""
    path = tmp_path / "ring.yaml"
    path.write_text(ONE_WAY)
    asked = f"--fabric {path} --collective all-reduce --steps 3 --rounds {rounds}"
    code, lines = synthesize(f"{asked} --chunks {chunks}")
    assert (code, MAY in lines) == (4, said)


def test_json_has_the_schedule_unless_it_is_written(tmp_path: Path) -> None:
    asked = shlex.split(f"{RING} --steps 2 --rounds 3 --chunks 2 --json")
    found = cli("synthesize", *asked).json()
    assert (found["bound"], found["rate"], found["optimal"]) == ("3/2", "3/2", True)
    assert found["schedule"]["collective"]["kind"] == "allgather"
    output = tmp_path / "algo.yaml"
    found = cli("synthesize", *asked, "-o", str(output)).json()
    assert (found["schedule"], found["files"]["output"]) == (None, str(output))
    assert cli("verify", str(output)).code == 0


CHAIN = """
name: tiny
ranks: 3
links:
  - {ranks: [0, 1], bandwidth: 1 GB/s}
  - {ranks: [1, 2], bandwidth: 1 GB/s}
"""


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("a.yaml", "--steps 2 --rounds 2 --chunks 1 -o a.yaml"),
        ("a.yaml", "--pareto -o a.yaml"),
        ("a-2-3-2.yaml", "--pareto -o ./a.yaml"),
        ("a-2-3-2.yaml", "--size 1KiB..1MiB -t dgx-a100:1 -o a.yaml"),
    ],
)
def test_a_fabric_that_is_read_is_not_written_over(
    name: str, asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(CHAIN)
    done = cli(*shlex.split(f"synthesize --fabric {name} --collective all-gather {asked}"))
    assert_one_error(done)
    assert "is a file that is read" in done.err or "could be written over" in done.err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: CHAIN}


def test_a_frontier_writes_a_file_for_every_point(tmp_path: Path) -> None:
    code, lines = synthesize(f"{RING} --pareto -o {tmp_path / 'algo.xml'}")
    assert code == 0
    assert "ends: no number of steps has a better rate (bound)" in lines
    assert [path.name for path in tmp_path.iterdir()] == ["algo-2-3-2.xml"]
    assert cli("verify", str(tmp_path / "algo-2-3-2.xml")).code == 0


def test_a_point_that_its_runtime_would_not_run_keeps_no_other_from_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two points is refused: its certificate is there, and all of the second."""
    before = schedule_files.written

    def refusing(schedule: Schedule, path: str, *, force: bool = False) -> str:
        if path.endswith("algo-2-3-2.xml"):
            raise InputError(path, "would not be run")
        return before(schedule, path, force=force)

    monkeypatch.setattr(schedule_files, "written", refusing)
    names = f"-o {tmp_path / 'algo.xml'} --certificate {tmp_path / 'cert.json'}"
    asked = f"--fabric dgx1 --collective all-gather --pareto {names}"
    done = cli("synthesize", *shlex.split(asked))
    assert done.code == 2
    assert "algo-2-3-2.xml" in done.err
    kept = ["algo-3-7-6.xml", "cert-2-3-2.json", "cert-3-7-6.json", "cert-limit.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    assert all(f"written to {tmp_path / name}" in done.out.replace("\n", "") for name in kept)


def test_every_bound_of_a_frontier_has_its_certificate(tmp_path: Path) -> None:
    """Points with a schedule, points with none that gains, and the limit."""
    asked = f"{RING} --pareto --max-chunks 1 --json --certificate {tmp_path / 'cert.json'}"
    data = cli("synthesize", *shlex.split(asked)).json()
    points = data["points"]
    assert any(point["found"] is None for point in points)
    assert any(point["found"] is not None for point in points)
    claims = [(point["certificate"], point["bound"], point["steps"]) for point in points]
    for path, bound, steps in [*claims, (data["limit_certificate"], data["limit"], None)]:
        certificate = json.loads(Path(path).read_text())
        assert certificate["bound"] == bound
        assert certificate["steps"] in (steps, None)  # a degree bound knows of no steps
        assert cli("verify", path).code == 0
    assert len(list(tmp_path.iterdir())) == len(points) + 1


def test_an_open_gap_is_not_settled() -> None:
    done = cli("synthesize", *shlex.split(f"{RING} --pareto --max-chunks 1 --json"))
    assert (done.code, done.json()["status"]) == (3, "open")
    assert {point["proved"] for point in done.json()["points"]} == {False}


@pytest.mark.parametrize(
    ("collective", "limits", "code", "line"),
    [
        ("all-gather", "", 0, "proved frontier"),
        ("all-gather", "--max-chunks 1", 3, "frontier, 0 of 5 points proved"),
        ("all-gather", "--time-limit 0", 3, "unfinished frontier, 0 of 1 point proved"),
        ("scatter", "--time-limit 0", 3, "no schedule found"),
    ],
)
def test_a_frontier_says_first_what_is_proved(
    collective: str, limits: str, code: int, line: str
) -> None:
    given, lines = synthesize(f"--fabric ring:4 --collective {collective} --pareto {limits}")
    assert given == code
    assert lines[0].startswith(f"{line}: {collective} ")
    assert ("steps  bound" in "\n".join(lines)) == (line != "no schedule found")


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (Fraction(113828687120917, 371512416287560), "0.306392"),
        (Fraction(2 * 10**9 - 1, 10**9), "1.999999"),
        (Fraction(1023, 16384), "1023/16384"),
    ],
)
def test_a_bound_of_long_numbers_is_told_from_below(bound: Fraction, text: str) -> None:
    found = p2smt.synthesize_frontier("ring:4", "all-gather", max_steps=2)
    point = replace(found.points[0], bound=replace(found.points[0].bound, value=bound))
    assert bound >= Fraction(text)
    assert bound_words(point.bound, 2).startswith(f"R/C is at least {text} in 2 steps, ")
    shown = table_lines(frontier_tables(replace(found, points=(point,))), 80)
    assert any(line.split()[:2] == ["2", text] for line in shown)


def test_a_frontier_says_where_time_may_find_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time ends when the first search begins; effort alone says nothing of time."""
    asked = f"{RING} --pareto --max-steps 2 --max-chunks 1"
    _, lines = synthesize(asked)
    assert lines[1] == "ends: the most steps were reached"
    clock, before = Clock(), climb.symmetry_search_of

    def late(*given: object) -> object:
        clock.now = 3600.0
        return before(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(f"{result.__name__}.time", clock)
    monkeypatch.setattr(best_rate, "symmetry_search_of", late)
    _, lines = synthesize(f"{asked} --time-limit 3600")
    assert lines[1] == "ends: the most steps were reached; more time may find better"
    _, lines = synthesize(f"{RING} --pareto --time-limit 0")
    assert lines[1] == "ends: the time limit came; more time may find better"


@pytest.mark.parametrize(
    ("collective", "words"),
    [
        (
            "all-reduce",
            "too large to search in 3 steps or more: of known parts or one chunk",
        ),
        ("all-gather", "too many ranks for a schedule to be made and checked: none was sought"),
        ("broadcast", None),
    ],
)
def test_a_frontier_says_of_what_no_search_began(
    collective: str, words: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an all-reduce over a ring of four 16 points a step."""
    monkeypatch.setattr(best_rate, "MOST_POINTS", 40)
    monkeypatch.setattr(copied, "MOST_MESSAGES", 11)
    asked = f"--fabric ring:4 --collective {collective} --pareto --max-steps 3"
    lines = synthesize(asked)[1]
    assert [line for line in lines if line.startswith("too ")] == [words] * bool(words)
    assert cli("synthesize", *shlex.split(asked), "--json").json()["unsearched"] == words
    ends = synthesize(f"{asked} --time-limit 0")[1][1]
    assert ("more time may find better" in ends) == (collective != "all-gather")


def test_no_search_begins_of_too_many_ranks_that_have_a_schedule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of four ranks in a ring there is a schedule of 3 steps without one."""
    monkeypatch.setattr(best_rate, "MOST_POINTS", 40)
    asked: list[int] = []
    p2smt.synthesize_frontier(
        *("ring:4", "all-reduce"),
        max_steps=3,
        progress=lambda state: asked.append(state.size.steps),
    )
    assert set(asked) == {2}


def test_an_interrupt_writes_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the first search of the second point: the first one is there."""
    before = copied.copied

    def interrupted(setting: SynthesisSetting, size: ScheduleSize, *given: object) -> object:
        if setting.fabric.name == "dgx1" and size.steps == 3:
            raise KeyboardInterrupt
        return before(setting, size, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(f"{climb.__name__}.copied", interrupted)
    done = cli(
        *("synthesize", "--fabric", "dgx1", "--collective", "all-gather", "--pareto", "--json"),
        *("-o", str(tmp_path / "algo.xml")),
    )
    assert (done.code, done.json()["ending"]) == (130, "it was stopped")
    assert [point["best"] for point in done.json()["points"]] == ["3/2", "3/2"]
    assert [path.name for path in tmp_path.iterdir()] == ["algo-2-3-2.xml"]


def test_an_interrupt_of_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{climb.__name__}.copied", interrupted)
    done = cli("synthesize", *shlex.split(f"{RING} --steps 2 --rounds 3 --chunks 2 --json"))
    found = done.json()
    assert (done.code, found["reason"], found["detail"]) == (130, "unknown", "it was stopped")
    assert found["bound"] == "3/2"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--collective all-gather", "--fabric: is missing"),
        ("--fabric ring:4", "--collective: is missing"),
        ("--fabric ring:4 --collective all-sum", "is none of all-gather, all-reduce"),
        (f"{RING} --steps 2 --rounds 3", "--steps, --rounds and --chunks"),
        (f"{RING} --steps 2 --rounds 1 --chunks 1", "rounds 1 in 2 steps"),
        (f"{RING} --steps 2 --rounds 2 --chunks 0", "is not a whole number from 1"),
        (f"{RING} --steps two --rounds 2 --chunks 1", "is not a whole number from 1"),
        (f"{RING} --pareto --steps 2", "--steps: is found by --pareto"),
        (f"{RING} --pareto --max-steps 1", "every schedule has at least 2"),
        (f"{RING} --steps 2 --rounds 2 --chunks 1 --max-steps 4", "goes with --pareto"),
        (f"{RING} --steps 2 --rounds 2 --chunks 1 --symmetry all", "must be auto or none"),
        (f"{RING} --steps 2 --rounds 2 --chunks 1 --root 1", "it has no root"),
        (f"{RING} --steps 2 --rounds 2 --chunks 1 --messages 2", "2 messages of all-gather"),
        (f"{RING} --steps 2 --rounds 2 --chunks 1 -o algo.txt", "formats are"),
        (f"{RING} --steps 2 --rounds 2 --chunks 1 --certificate cert.xml", "must end in .json"),
        (f"{RING} --steps 2 --rounds 2 --chunks 1 --force", "goes with --output"),
        ("--fabric ring:4 --collective scatter --pareto -o a.xml", "MSCCL XML has no scatter"),
        ("--fabric dgx1 --collective broadcast --root 9 --pareto", "the ranks are 0 to 7"),
        (
            "--fabric dgx1 --collective broadcast --root 3 --pareto -o a.xml",
            "is rank 0 where",
        ),
        ("--fabric dgx1 --collective all-gather --pareto --link-bandwidth 25GB/s", "drop it"),
        (f"{RING} --pareto -o a.json --certificate a.json", "would overwrite each other"),
        ("--fabric ring:1 --collective all-gather --pareto", "must have sizes"),
        ("--fabric ring:4 --unit 1GB/s --collective all-gather --pareto", "have no unit"),
    ],
)
def test_bad_input_is_one_line(arguments: str, words: str) -> None:
    done = cli("synthesize", *shlex.split(arguments))
    assert_one_error(done)
    assert words in done.err


def test_an_interrupt_between_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """While groups are made the bound is known already, and while it is sought the fewest steps."""

    def interrupted(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    asked = shlex.split(f"{RING} --steps 2 --rounds 3 --chunks 2 --json")
    monkeypatch.setattr(f"{climb.__name__}.rungs", interrupted)
    done = cli("synthesize", *asked)
    assert (done.code, done.json()["detail"], done.json()["bound"]) == (
        130,
        "it was stopped",
        "3/2",
    )
    monkeypatch.setattr("p2smt.synthesis.synthesize.least_rate", interrupted)
    done = cli("synthesize", *asked)
    assert (done.code, done.json()["detail"]) == (130, "it was stopped")
    assert done.json()["bound_kind"] == "distance"


def test_what_is_too_large_is_said_before_anything_is_built() -> None:
    size = "--steps 2 --rounds 100 --chunks 100"
    done = cli("synthesize", *shlex.split(f"--fabric mesh:32 --collective all-to-all {size}"))
    assert done.code == 3
    assert "more than 20000000 pairs of a chunk and a port or link" in done.out.replace("\n", " ")


@pytest.mark.parametrize("asked", ["--steps 2 --rounds 2 --chunks 1", "--pareto"])
def test_the_time_limit_counts_the_making_of_the_fabric(asked: str) -> None:
    """9,900 links: more than are made before anybody looks at the clock."""
    question = f"--fabric mesh:100 --collective broadcast --time-limit 0 {asked}"
    code, lines = synthesize(question)
    assert (code, lines[0]) == (3, "unknown: the time limit came before the fabric was made")
    data = cli("synthesize", *shlex.split(question), "--json").json()
    assert (data["ranks"], data["status"]) == (None, "open" if "--pareto" in asked else "unknown")
    assert data.get("ending", data.get("detail")) == lines[0].removeprefix("unknown: ")


def test_a_size_without_a_schedule_says_which_rounds_ask_for_any_number() -> None:
    """Of 3 chunks, a link of bandwidth 1 carries each once in a step: 2 steps have 6 rounds."""
    asked = "--fabric cube:2 --collective all-reduce --steps 2 --chunks 3 --symmetry none"
    code, lines = synthesize(f"{asked} --rounds 3")
    assert code == 4
    said = "next: --rounds 6 asks whether 2 steps of 3 chunks suffice in any number"
    assert said in lines
    code, lines = synthesize(f"{asked} --rounds 6")
    assert (code, lines[0]) == (0, "schedule")


def test_a_size_that_a_bound_refutes_says_how_many_rounds_it_allows() -> None:
    """Two steps of two chunks a rank have 3/2 rounds a chunk on a ring of four."""
    asked = f"{RING} --steps 2 --chunks 2"
    code, lines = synthesize(f"{asked} --rounds 2")
    assert code == 4
    assert "next: --rounds 3, the fewest that the bound allows" in lines
    assert synthesize(f"{asked} --rounds 3")[0] == 0


def test_rounds_beyond_those_that_fill_every_link_are_idle() -> None:
    made = copied.SynthesisSetting(load_fabric("mesh:3"), "allgather")
    assert copied.enough_rounds(made, copied.ScheduleSize(2, 2, 4)) == 2 * 4 * 3
    pairs = copied.SynthesisSetting(load_fabric("mesh:3"), "alltoall")
    assert copied.enough_rounds(pairs, copied.ScheduleSize(1, 1, 1)) == 9
    twice = copied.SynthesisSetting(load_fabric("ring:4"), "allreduce", messages=2)
    assert copied.enough_rounds(twice, copied.ScheduleSize(3, 3, 5)) == 3 * 5 * 2
