"""`p2smt run` with a schedule file: what is printed, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import assert_one_error, cli

# Two ranks exchange halves, reduce, and exchange the results; RIGHT has rrc in line 5.
TWO = """<algo name="two" ngpus="2" coll="allreduce" proto="Simple" nchannels="1" \
nchunksperloop="2" inplace="1" outofplace="0" minBytes="0" maxBytes="0">
<gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
<tb id="0" send="1" recv="1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="KIND" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="2" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="3" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb></gpu>
<gpu id="1" i_chunks="2" o_chunks="2" s_chunks="0">
<tb id="0" send="0" recv="0" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="rrc" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="2" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="3" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb></gpu>
</algo>
"""  # noqa: E501 - one step a line


def written(folder: Path, kind: str = "rrc") -> str:
    path = folder / "two.xml"
    path.write_text(TWO.replace("KIND", kind))
    return str(path)


def test_json(tmp_path: Path) -> None:
    outcome = cli(
        "run", written(tmp_path), "--backend", "reference", "--repeat", "9", "--json", "--seed", "3"
    )
    assert (outcome.code, outcome.err) == (0, "")
    data = outcome.json()
    assert (data["verified"], data["verdict"], data["interleavings"]) == (True, "valid", 9)
    assert (data["collective"], data["steps_count"], data["fifo_depth"]) == ("allreduce", 8, 8)
    assert (data["measured_s"], data["samples_s"], data["errors"]) == (None, [], [])
    assert data["options"]["backend"] == "reference"
    assert data["options"]["dtype"] == "uint64"
    assert [machine["device"] for machine in data["ranks"]] == ["numpy", "numpy"]


def test_text_and_payload(tmp_path: Path) -> None:
    outcome = cli(
        "run", written(tmp_path), "--backend", "reference", "--payload", "1KiB", "--ranks", "2"
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (
        "verified: 2 ranks, reference, uint64\n"
        "two: allreduce, 8 steps, 1 KiB\n"
        "5 interleavings tried\n"
    )


def test_a_wrong_schedule_is_refused_or_found_wrong(tmp_path: Path) -> None:
    path = written(tmp_path, "r")
    refused = cli("run", path, "--backend", "reference")
    assert_one_error(refused)
    assert "is not right in every interleaving" in refused.err
    assert "--unverified" in refused.err
    outcome = cli("run", path, "--backend", "reference", "--unverified")
    assert outcome.code == 1
    assert outcome.out.startswith("WRONG RESULT: 2 ranks")
    assert "interleaving 0: rank 0: output chunk 0 does not hold what it must" in outcome.out


def test_depth(tmp_path: Path) -> None:
    outcome = cli("run", written(tmp_path), "--backend", "reference", "--fifo-depth", "1")
    assert outcome.code == 0
    bad = cli("run", written(tmp_path), "--backend", "reference", "--fifo-depth", "0")
    assert_one_error(bad)
    assert "fifo depth" in bad.err


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (("--pipeline", "2"), "takes none of them"),
        (("--axes", "dp=2"), "takes none of them"),
        (("--ranks", "3"), "3 ranks"),
        (("--payload", "1XB"), "payload"),
        (("--backend", "nccl"), "does not run schedules"),
        (("--dtype", "int8"), "dtype"),
    ],
)
def test_bad_options(tmp_path: Path, more: tuple[str, ...], text: str) -> None:
    outcome = cli("run", written(tmp_path), *more)
    assert_one_error(outcome)
    assert text in outcome.err


@pytest.mark.parametrize("more", [("--unverified",), ("--fifo-depth", "2"), ("--root", "1")])
def test_options_of_schedules_are_not_for_programs(more: tuple[str, ...]) -> None:
    assert_one_error(cli("run", "--topology", "dgx-a100:2", "--axes", "dp=16", *more))


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
def test_on_real_ranks(tmp_path: Path) -> None:
    outcome = cli("run", written(tmp_path), "--payload", "64KiB", "--repeat", "3", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    data = outcome.json()
    assert (data["verified"], data["float_checked"], data["payload_bytes"]) == (True, True, 65536)
    assert len(data["samples_s"]) == 3
    assert data["measured_s"] == sorted(data["samples_s"])[1]
    assert len(data["ranks"]) == 2
