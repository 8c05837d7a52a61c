"""Whether a runtime would run a file: apart from what the file means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.interop.msccl.read import read_msccl
from p2smt.interop.reading import AS_IT_STANDS, Reading
from p2smt.interop.schedule_files import (
    FORMATS,
    RUNTIMES,
    read_schedule,
    runnable,
    runtime_named,
    runtime_of,
    written,
)
from p2smt.schedules.classics import classic
from p2smt.schedules.language.schedule_text import dump_schedule
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify
from tests.cli.tools import cli
from tests.interop.msccl.texts import algo, block, gpu, ring, step, swap
from tests.interop.mscclpp.plans import NOP, all_gather, move, near, op, pair, read

USES = {"outofplace": 0, "minBytes": 0, "maxBytes": 1024}
"""What RCCL wants to be told."""


def refused(text: str) -> tuple[str, ...]:
    return read_msccl(text, "f.xml").refused


def of_gpu(*inside: str, **more: object) -> tuple[str, ...]:
    """Refusals of the first gpu of two; its first block is on line 3."""
    return refused(algo([gpu(0, *inside, chunks=(2, 2, 9)), gpu(1)], **more))


def nops(count: int) -> list[str]:
    return [step(index, "nop", cnt=0) for index in range(count)]


def reasons(text: str, name: str) -> tuple[str, ...]:
    """Why a runtime would not run an XML file."""
    schedule = read_schedule(text, "f.xml", AS_IT_STANDS)
    return runnable(schedule, name, text, "f.xml").reasons


def test_correct_files_are_run() -> None:
    assert refused(ring()) == refused(swap()) == read(all_gather()).refused == ()


def test_steps_per_block() -> None:
    assert of_gpu(block(0, *nops(256))) == ()
    assert of_gpu(block(0, *nops(257))) == ("line 3: the runtime runs at most 256 steps per block",)


def test_blocks_per_gpu_and_channel() -> None:
    def blocks(count: int, channels: int) -> tuple[str, ...]:
        inside = [block(number, chan=number % channels) for number in range(count)]
        return of_gpu(*inside, nchannels=channels)

    assert blocks(216, 7) == blocks(32, 1) == ()
    assert blocks(217, 7) == ("line 2: the runtime runs at most 216 blocks per gpu",)
    assert blocks(33, 1) == ("line 2: the runtime runs at most 32 blocks per channel",)


def test_chunks_per_step() -> None:
    body = block(0, *(step(k, "cpy", "s0", "s80", cnt=cnt) for k, cnt in enumerate((71, 72))))
    shown = refused(algo([gpu(0, body, chunks=(2, 2, 152)), gpu(1)]))
    assert shown == ("line 5: the runtime handles at most 71 chunks in a step",)


def test_numbers_of_blocks() -> None:
    assert of_gpu(block(1), block(0)) == ()
    (shown,) = of_gpu(block(0), block(2))
    assert shown == "line 2: the runtime refuses a gpu whose blocks are not numbered 0, 1, .."


def test_channels() -> None:
    (shown,) = of_gpu(block(0), block(1, chan=2), nchannels=2)
    assert shown == "line 6: the runtime connects channels below nchannels=2 only"


def test_nops_that_cannot_be_folded_into_the_next_step() -> None:
    first = block(0, step(0, "cpy", "s0", "s1", hasdep=1))
    wait = step(0, "nop", cnt=0, depid=0, deps=0)
    assert of_gpu(first, block(1, wait, step(1, "cpy", "s1", "s2", depid=0, deps=0))) == ()
    (shown,) = of_gpu(first, block(1, wait, step(1, "cpy", "s1", "s2")))
    assert (
        shown == "line 8: the runtime refuses a step that waits for nothing after a nop that does"
    )


def test_places_that_are_not_declared() -> None:
    assert of_gpu(block(0, step(0, "cpy", "s0", "s8"))) == ()
    shown = of_gpu(block(0, step(0, "cpy", "s0", "s8"), step(1, "cpy", "s9", "i2")))
    beyond = "the runtime refuses a place beyond"
    assert shown == (
        f"line 5: {beyond} s_chunks of its gpu",
        f"line 5: {beyond} i_chunks of its gpu",
    )


def test_a_file_that_does_not_name_its_collective() -> None:
    text = ring(coll=None)
    schedule = read_msccl(text, "f.xml", Reading(collective="allreduce"))
    assert schedule.refused == ("line 1: the runtime needs coll",)
    assert verify(schedule).verdict is Verdict.VALID


def test_rccl_has_tables_of_its_own() -> None:
    long = algo([gpu(0, block(0, *nops(65)), chunks=(2, 2, 0)), gpu(1)], **USES)
    assert reasons(long, "msccl") == ()
    assert reasons(long, "rccl") == ("line 3: the runtime runs at most 64 steps per block",)
    assert reasons(ring(**USES), "rccl") == ()
    assert len(reasons(ring(), "rccl")) == 2


@pytest.mark.parametrize("excess", [0, 1])
def test_limits_of_mscclpp(excess: int) -> None:
    many = [NOP] * (63 + excess)
    plan = pair([*many, move("copy", [near("i", 0)], [near("o", 0)])])
    assert len(read(plan).refused) == excess
    barrier = op("barrier", barrier_id=15 + excess, num_threadblocks=1)
    assert len(read(pair([barrier])).refused) == excess


def test_limits_say_nothing_about_the_meaning() -> None:
    schedule = read_msccl(
        written(classic("chain-broadcast", 2, chunks=257), "f.xml", force=True), "f.xml"
    )
    assert schedule.refused
    report = verify(schedule)
    assert report.verdict is Verdict.VALID
    assert report.warnings == ()


def test_what_the_runtime_would_not_run_is_written_only_if_forced() -> None:
    long = classic("chain-broadcast", 2, chunks=257)
    with pytest.raises(InputError, match=r"MSCCL would not run it .* 256 steps.*--force"):
        written(long, "f.xml")
    assert written(long, "f.xml", force=True).startswith("<algo")
    assert written(long, "f.yaml").startswith("p2smt_schedule")
    short = classic("ring-all-reduce", 8)
    assert written(short, "f.xml") == written(short, "f.xml", force=True)


def test_a_schedule_of_another_format_is_judged_as_it_would_be_written() -> None:
    def why(schedule: Schedule, name: str) -> tuple[str, ...]:
        return reasons(dump_schedule(schedule), name)

    assert why(classic("ring-all-reduce", 4), "msccl") == ()
    assert "256 steps" in why(classic("chain-broadcast", 2, chunks=257), "msccl")[0]
    assert why(read(all_gather()), "mscclpp") == ()
    assert why(read(all_gather()), "msccl") != ()


@pytest.mark.parametrize(
    ("ending", "schedule", "name", "words"),
    [
        ("xml", classic("chain-broadcast", 2, chunks=257), "msccl", "at most 256 steps per block"),
        ("xml", classic("chain-broadcast", 2, chunks=257), "rccl", "at most 64 steps per block"),
        ("json", read(pair([NOP] * 65)), "mscclpp", "has 65 operations"),
    ],
)
def test_yaml_that_was_converted_is_judged_as_yaml(
    tmp_path: Path, ending: str, schedule: Schedule, name: str, words: str
) -> None:
    """It says what it was converted from, which is not what it is."""
    origin, path = tmp_path / f"f.{ending}", tmp_path / "f.yaml"
    origin.write_text(written(schedule, str(origin), force=True))
    assert cli("convert", str(origin), str(path)).code == 0
    assert "form: " in path.read_text()
    found = cli("verify", str(path), "--runtime", name)
    assert found.code == 1, found.err
    assert "runnable: no (" in found.out
    assert "once it is converted)" in found.out
    assert words in found.out
    plain = cli("verify", str(path))
    assert "runnable" not in plain.out
    assert ", yaml)" in plain.out.replace("\n", " ")
    assert json.loads(cli("verify", str(path), "--json").out)["runtime"] is None


def test_p2smt_alone_runs_yaml() -> None:
    found = runnable(classic("chain-broadcast", 2, chunks=257))
    assert found
    assert found.runtime is None


def test_every_format_of_a_runtime_has_one() -> None:
    assert {runtime.form for runtime in RUNTIMES} <= {row.name for row in FORMATS}
    for row in FORMATS:
        runtime = runtime_of(row.name)
        assert (runtime.title if runtime else "") == row.runtime
    with pytest.raises(InputError, match="runtime 'nccl': is not known; one of msccl, rccl"):
        runtime_named("nccl")


def test_nothing_is_written_over_a_file_that_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "f.xml"
    command = [
        "classics",
        "chain-broadcast",
        "--ranks",
        "2",
        "--set",
        "chunks=257",
        "-o",
        str(target),
    ]
    assert cli(*command).code == 2
    assert not target.exists()
    assert cli(*command, "--force").code == 0
    assert cli("verify", str(target)).code == 0
    assert cli("verify", str(target), "--runtime", "msccl").code == 1
