"""MSCCL XML as generators leave it: with their own text, mislabelled, of an old dialect."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from p2smt.interop.msccl.read import read_msccl
from p2smt.interop.reading import AS_IT_STANDS, Reading
from p2smt.interop.schedule_files import read_schedule, valid_as
from p2smt.schedules.classics import classic
from p2smt.schedules.verify.repair import find_repair
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify
from tests.cli.tools import cli
from tests.interop.msccl.texts import algo, block, gpu, ring, step, waiting

CHECKED = "Rank 0 chunk 1 is incorrect should be chunk(1,0) given None\nRank 1 chunk 0 is wrong\n"


def exchange(coll: str | None = "alltoall", **more: object) -> str:
    """An all-to-all of two ranks, out of place: each keeps one chunk and sends the other."""
    gpus = [
        gpu(
            rank,
            block(0, step(0, "cpy", f"i{rank}", f"o{rank}")),
            block(1, step(0, "s", f"i{1 - rank}"), send=1 - rank),
            block(2, step(0, "r", "i0", f"o{1 - rank}"), recv=1 - rank),
        )
        for rank in (0, 1)
    ]
    return algo(gpus, coll=coll, inplace=0, **more)


# Text of a generator's own check, before or after the document.


@pytest.mark.parametrize("before", ["", "\n", CHECKED, f"\n\n{CHECKED}"])
@pytest.mark.parametrize("after", ["", "\n\n", CHECKED, f"\n\n  {CHECKED}"])
def test_text_beside_the_document_is_left_out_and_named(before: str, after: str) -> None:
    """Steps and their lines are those of the document; each text is named with its line."""
    text = before + ring(3) + after
    found, plain = read_schedule(text, "f.xml", AS_IT_STANDS), read_msccl(ring(3), "f.xml")
    shift = before.count("\n")
    assert [s.line for s in found.steps] == [(s.line or 0) + shift for s in plain.steps]
    assert verify(found).verdict is Verdict.VALID
    lines = text.split("\n")
    want = [n for n, line in enumerate(lines, 1) if line.strip().startswith("Rank 0")]
    told = [warning for warning in found.warnings if "text beside <algo>" in warning]
    assert [int(w.split(":")[0].removeprefix("line ")) for w in told] == want
    assert all("'Rank 0 chunk 1 is incorrect" in warning for warning in told)


def test_comments_beside_the_document_are_no_text() -> None:
    for text in (f"<!-- {CHECKED} -->\n{ring(3)}<!-- </algo> {CHECKED} -->", f"{ring(3)}<!-- -->"):
        assert not read_msccl(text, "f.xml").warnings


# Labels: of the collective, of the place, of the root; all that are wrong, and none that is right.


def valid(text: str, reading: Reading = AS_IT_STANDS) -> tuple[str, ...]:
    """As what a text would be valid that is not as it stands."""
    schedule = read_msccl(text, "f.xml", reading)
    assert verify(schedule).verdict is Verdict.INVALID
    return valid_as(text, "f.xml", reading, schedule, 8)


@pytest.mark.parametrize("label", ["allreduce", "allgather", "reduce_scatter", "broadcast"])
def test_a_wrong_label_is_told_with_the_right_one(label: str) -> None:
    assert valid(exchange(label)) == ("alltoall (--collective alltoall)",)


def test_a_schedule_that_is_valid_as_nothing_is_told_so() -> None:
    broken = exchange("allreduce").replace('dstoff="1"', 'dstoff="0"')
    assert valid(broken) == ()
    asked = Reading(collective="allreduce")
    assert valid(exchange(), asked) == ()


def test_another_kind_in_place_is_told() -> None:
    both = 'allreduce (--collective allreduce), in place (write inplace="1" into <algo>)'
    assert both in valid(ring(2, inplace=0, coll="broadcast"))


@pytest.mark.parametrize(
    ("coll", "chunks", "what"),
    [
        ("custom", 4, "coll is custom"),
        (None, 4, "coll is missing"),
        ("all2all", 4, "not one of"),
        ("alltoall", 3, "is not a multiple of ngpus=2"),
    ],
)
def test_a_file_that_cannot_be_what_it_says_is_told_what_it_is(
    tmp_path: Path, coll: str | None, chunks: int, what: str
) -> None:
    """Nothing can be checked by its own words; but it is valid as something."""
    gpus = [
        gpu(0, block(0, step(0, "s", "o0", cnt=chunks), send=1), chunks=(0, chunks, 0)),
        gpu(1, block(0, step(0, "r", "o0", "o0", cnt=chunks), recv=0), chunks=(0, chunks, 0)),
    ]
    path = tmp_path / "f.xml"
    path.write_text(algo(gpus, coll=coll, inplace=1, nchunksperloop=chunks))
    outcome = cli("verify", str(path))
    assert outcome.code == 2
    assert re.search(rf"{what}.*valid as broadcast \(--collective broadcast\)", outcome.err)
    assert "valid as" not in cli("verify", str(path), "--collective", "alltoall").err


def test_use_in_place_and_roots_are_told() -> None:
    in_place = 'allreduce in place (write inplace="1" into <algo>)'
    assert valid(ring(2, inplace=None)) == (in_place,)
    assert valid(ring(2, inplace=0, coll=None), Reading(collective="AllReduce")) == (in_place,)
    copies = block(1, step(0, "cpy", "i0", "o0"))
    gpus = [
        gpu(0, block(0, step(0, "r", "i0", "o0"), recv=1), chunks=(1, 1, 0)),
        gpu(1, block(0, step(0, "s", "i0"), send=0), copies, chunks=(1, 1, 0)),
    ]
    text = algo(gpus, coll="broadcast", inplace=0, nchunksperloop=1)
    assert valid(text) == ("broadcast (--root 1)",)


def test_the_command_says_as_what_it_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_text(exchange("allreduce"))
    outcome = cli("verify", str(path))
    assert outcome.code == 1
    assert outcome.out.splitlines()[-1] == "valid as alltoall (--collective alltoall)"
    noted = cli("verify", str(path), "--json").json()["notes"]
    assert noted == ["valid as alltoall (--collective alltoall)"]
    assert cli("verify", str(path), "--collective", "AllToAll").code == 0


# An old dialect: the number of gpus is that of the gpus.


def test_gpus_are_counted_where_their_number_is_missing() -> None:
    found = read_msccl(ring(3, ngpus=None), "f.xml")
    assert found.ranks == 3
    assert verify(found).verdict is Verdict.VALID
    assert any("ngpus is missing: 3, as many as there are gpus" in w for w in found.warnings)
    assert any("the runtime needs ngpus" in reason for reason in found.refused)
    assert not any("ngpus" in w for w in read_msccl(ring(3), "f.xml").warnings)


# Faults that were made at several steps alike.


@pytest.mark.parametrize("ranks", [2, 4])
def test_equal_faults_have_equal_repairs(ranks: int, tmp_path: Path) -> None:
    """No change of one step makes it valid; one on each gpu, and no more, does."""
    schedule = read_msccl(waiting(ranks), "f.xml")
    report = verify(schedule)
    assert len(report.violations) == ranks
    found = find_repair(schedule, report)
    assert found.repair is not None
    changes = [(found.repair.step, found.repair.change), *found.repair.further]
    assert len({number for number, _ in changes}) == len(changes) == ranks
    assert all("announce block 1 step 0" in change for _, change in changes)
    assert verify(found.repair.schedule).verdict is Verdict.VALID
    path = tmp_path / "f.xml"
    path.write_text(waiting(ranks))
    shown = cli("verify", str(path), "--fix").out
    assert shown.count("fix: rank") == ranks
    assert f"with these {ranks} changes the schedule is valid" in shown
    fix = cli("verify", str(path), "--fix", "--json").json()["fix"]
    assert [fix["repair"]["rank"], *(more["rank"] for more in fix["further"])] == [*range(ranks)]


def test_equal_repairs_that_do_not_suffice_are_not_told() -> None:
    """Beside the faults that are alike there is one of another kind."""
    text = waiting(2).replace('type="rrcs"', 'type="rrs"', 1)
    schedule = read_msccl(text, "f.xml")
    found = find_repair(schedule, verify(schedule))
    assert (found.repair, found.complete) == (None, True)


@pytest.mark.parametrize("number", [0, 3])
def test_an_offset_that_was_changed_is_found_before_dependencies_of_other_steps(
    number: int,
) -> None:
    """Who reads a wrong place races for it, so that there are races that no dependency mends."""
    right = classic("ring-all-reduce", 8)
    step = right.steps[number]
    (span,) = step.reads
    moved = replace(step, reads=(replace(span, start=(span.start + 1) % 8),))
    wrong = replace(right, steps=(*right.steps[:number], moved, *right.steps[number + 1 :]))
    report = verify(wrong)
    assert report.races
    found = find_repair(wrong, report, time_limit_s=600)
    assert found.repair is not None
    assert (found.repair.step, found.repair.schedule.steps) == (number, right.steps)
    assert found.tried < len(right.steps) / 2
