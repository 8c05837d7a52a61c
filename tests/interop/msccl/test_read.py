"""MSCCL XML to schedules: every type of step, every dialect, one error line for what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from p2smt.errors import InputError
from p2smt.interop.msccl.read import read_msccl
from p2smt.interop.reading import Reading
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, StepRef
from p2smt.schedules.verify.report import Kind, Verdict
from p2smt.schedules.verify.verify import verify
from tests.interop.msccl.texts import algo, attributes, block, gpu, ring, step, swap
from tests.refusals import refusal


def read(text: str, **more: Any) -> Schedule:
    return read_msccl(text, "f.xml", Reading(**more))


def kinds(text: str, **more: Any) -> set[Kind]:
    return {violation.kind for violation in verify(read(text, **more)).violations}


def one_step(kind: str, **more: object) -> str:
    """Gpu 0 has one block between peers 1 and 2, with one step from i1 to s2."""
    body = block(0, step(0, kind, "i1", "s2", **more), send=1, recv=2, chan=3)
    gpus = [gpu(0, body, chunks=(3, 3, 3)), gpu(1), gpu(2)]
    return algo(gpus, nchannels=4)


def span(text: str, count: int = 1) -> Span:
    return Span(0, Buffer(text[0]), int(text[1:]), count)


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_ring_is_valid(ranks: int) -> None:
    schedule = read(ring(ranks))
    assert verify(schedule).verdict is Verdict.VALID
    assert (schedule.form, schedule.protocol, schedule.name) == ("msccl-xml", "Simple", "test")
    assert schedule.warnings == ()


def test_dependencies_between_blocks() -> None:
    schedule = read(swap())
    assert verify(schedule).verdict is Verdict.VALID
    assert [s.waits for s in schedule.steps if s.kind == "re"] == [(StepRef(1, 0),)] * 2
    assert kinds(swap(gap=step(1, "re", "s0", "o0", cnt=2)))


@pytest.mark.parametrize(
    ("kind", "reads", "writes", "receives", "sends"),
    [
        ("s", ["i1"], [], False, True),
        ("r", [], ["s2"], True, False),
        ("rcs", [], ["s2"], True, True),
        ("rrc", ["i1"], ["s2"], True, False),
        ("rrs", ["i1"], [], True, True),
        ("rrcs", ["i1"], ["s2"], True, True),
        ("cpy", ["i1"], ["s2"], False, False),
        ("re", ["s2", "i1"], ["s2"], False, False),
        ("nop", [], [], False, False),
    ],
)
def test_types(kind: str, reads: list[str], writes: list[str], receives: bool, sends: bool) -> None:
    (found,) = read(one_step(kind)).steps
    assert found.reads == tuple(map(span, reads))
    assert found.writes == tuple(map(span, writes))
    assert found.receive == (Connection(2, 0, 3) if receives else None)
    assert found.send == (Connection(0, 1, 3) if sends else None)
    assert (found.kind, found.line, found.count) == (kind, 4, int(kind != "nop"))


def test_count_is_that_of_spans() -> None:
    (found,) = read(one_step("cpy", cnt=2)).steps
    assert (found.count, found.reads, found.writes) == (2, (span("i1", 2),), (span("s2", 2),))


@pytest.mark.parametrize("kind", ["s", "r", "rrcs", "cpy"])
def test_a_step_of_no_chunks_moves_nothing(kind: str) -> None:
    (found,) = read(one_step(kind, cnt=0)).steps
    assert (found.reads, found.writes, found.receive, found.send) == ((), (), None, None)


def test_op_with_one_place() -> None:
    """The dialect that writes <op>, ``step``, ``buf``, ``off``, and no defaults."""

    def op(number: int, kind: str, **more: object) -> str:
        return f"<op {attributes(step=number, type=kind, **more)}/>"

    gpus = [
        gpu(
            rank,
            block(0, op(0, "s", buf="i", off=0, cnt=2), send=1 - rank),
            block(1, op(0, "rrc", buf="i", off=0, cnt=2, depid=0, deps=0), recv=1 - rank),
        )
        for rank in (0, 1)
    ]
    assert verify(read(algo(gpus))).verdict is Verdict.VALID
    lacks = gpu(0, block(0, op(0, "cpy", buf="o", off=0)))
    assert "lacks the attribute 'srcoff'" in refusal(read, algo([lacks]))


def test_step_attributes_that_may_be_missing() -> None:
    bare = step(0, "r", "i1", "s2", s=None, cnt=1, depid=None, deps=None, hasdep=None)
    bare = bare.replace('srcbuf="i" srcoff="1"', "")
    body = block(0, bare, recv=1)
    (found,) = read(algo([gpu(0, body, chunks=(2, 2, 3)), gpu(1)])).steps
    assert (found.count, found.waits, found.writes) == (1, (), (span("s2"),))


def test_a_step_says_how_many_chunks_it_handles() -> None:
    bare = step(0, "r", "i1", "s2", cnt=None)
    with pytest.raises(InputError, match="lacks the attribute 'cnt'"):
        read(algo([gpu(0, block(0, bare, recv=1), chunks=(2, 2, 3)), gpu(1)]))


@pytest.mark.parametrize(
    "change",
    [
        {"outofplace": 0, "minBytes": 0, "maxBytes": 1 << 40},
        {"nthreads": 256, "redop": "sum", "author": "me"},
        {"proto": None},
        {"nchannels": None},
        {"nchunksperloop": None},
        {"name": None},
    ],
)
def test_algo_attributes_that_may_be_there_or_not(change: dict[str, object]) -> None:
    given = read(ring(3, **change))
    assert given.steps == read(ring(3)).steps
    assert given.contract == read(ring(3)).contract
    assert given.warnings == ()


def test_order_of_attributes_comments_and_declaration() -> None:
    text = ring().replace('s="0" type="s"', 'type="s"   s="0"').replace("</tb>", "<!-- x --></tb>")
    text = "<?xml version='1.0' encoding='utf-8'?><!-- <gpu> -->" + text
    assert read(text).steps == read(ring()).steps


def test_gpus_in_any_order() -> None:
    lines = algo([gpu(1, chunks=(2, 0, 1)), gpu(0, chunks=(2, 0, 5))])
    assert [sizes.scratch for sizes in read(lines).sizes] == [5, 1]


def test_copies_come_before_all_steps() -> None:
    gpus = []
    for rank in (0, 1):
        copy = f'    <copy i_off="0" o_off="{rank}"/>'
        send = block(0, step(0, "s", f"o{rank}"), send=1 - rank)
        receive = block(4, step(0, "r", f"o{1 - rank}"), recv=1 - rank)
        gpus.append(gpu(rank, copy, send, receive, chunks=(1, 2, 0)))
    schedule = read(algo(gpus, coll="allgather", inplace=0))
    copies = [s for s in schedule.steps if s.kind == "cpy"]
    assert [(c.rank, c.block, c.index, c.line) for c in copies] == [(0, 5, 0, 3), (1, 5, 0, 12)]
    assert all(s.waits == (StepRef(5, 0),) for s in schedule.steps if s.kind != "cpy")
    assert verify(schedule).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("given", "asked", "expected", "warned"),
    [
        ({"inplace": 1}, None, True, ""),
        ({"inplace": 0}, None, False, ""),
        ({"inplace": None}, None, False, ""),
        ({"inplace": 0, "outofplace": 1}, None, False, ""),
        ({"inplace": 1, "outofplace": 1}, None, True, "in place and out of place: checked in"),
        ({"inplace": 1, "outofplace": 1}, False, False, "checked out of place"),
        ({"inplace": 1, "outofplace": 0}, False, False, "in place: checked out of place, as asked"),
        ({"inplace": 0}, True, True, "checked in place, as asked"),
        ({"inplace": 0, "outofplace": 0}, None, False, "neither"),
    ],
)
def test_in_place(
    given: dict[str, object], asked: bool | None, expected: bool, warned: str
) -> None:
    schedule = read(algo([gpu(0), gpu(1)], **given), in_place=asked)
    assert schedule.in_place is expected
    assert len(schedule.warnings) == bool(warned)
    assert all(text.startswith("line 1: ") and warned in text for text in schedule.warnings)


@pytest.mark.parametrize(
    ("coll", "chunks", "starts", "goals"),
    [
        ("allreduce", 6, 6, 6),
        ("broadcast", 6, 6, 6),
        ("reduce", 6, 6, 0),
        ("allgather", 6, 2, 6),
        ("reduce_scatter", 6, 6, 2),
        ("alltoall", 6, 6, 6),
    ],
)
def test_chunks_of_the_larger_buffer(coll: str, chunks: int, starts: int, goals: int) -> None:
    gpus = [gpu(rank, chunks=(0, 0, 0)) for rank in range(3)]
    goal = read(algo(gpus, coll=coll, nchunksperloop=chunks, inplace=0)).contract
    assert goal.collective == coll
    assert len(goal.starts[1]) == starts
    assert sum(g.rank == 1 for g in goal.goals) == goals


@pytest.mark.parametrize("coll", ["allgather", "reduce_scatter", "alltoall"])
def test_every_rank_has_a_part(coll: str) -> None:
    text = algo([gpu(0), gpu(1)], coll=coll, nchunksperloop=3)
    assert "not a multiple of ngpus=2" in refusal(read, text)


def test_custom_needs_a_collective() -> None:
    text = algo([gpu(0), gpu(1)], coll="custom")
    assert "--collective" in refusal(read, text)
    assert read(text, collective="alltoall").contract.collective == "alltoall"
    assert "'sort'" in refusal(read, text, collective="sort")


def test_root_is_the_callers_to_say() -> None:
    text = algo([gpu(0), gpu(1)], coll="reduce")
    assert {goal.rank for goal in read(text).contract.goals} == {0}
    assert {goal.rank for goal in read(text, root=1).contract.goals} == {1}
    assert "the ranks are 0 to 1" in refusal(read, text, root=2)


def test_in_place_either_name_reaches_all_memory() -> None:
    body = block(0, step(0, "cpy", "i2", "s0"), step(1, "cpy", "s0", "o0"))
    gpus = [gpu(rank, body, chunks=(0, 4, 1)) for rank in range(2)]
    schedule = read(algo(gpus, coll="allgather", nchunksperloop=4))
    assert schedule.sizes == (Sizes(4, 4, 1), Sizes(2, 4, 1))
    assert kinds(algo(gpus, coll="allgather", nchunksperloop=4)) >= {Kind.BOUNDS}
    assert schedule.warnings == (
        "lines 4, 10: goes beyond i_chunks of its gpu, to which the runtime holds it",
    )


@pytest.mark.parametrize(
    ("source", "declared", "legal"),
    [("i1", (2, 2, 0), True), ("i1", (1, 2, 0), False), ("i2", (3, 2, 0), False)],
)
def test_out_of_place_bounds(source: str, declared: tuple[int, int, int], legal: bool) -> None:
    """Neither beyond what is declared nor beyond the caller's buffer."""
    body = block(0, step(0, "cpy", source, "o0"))
    text = algo([gpu(0, body, chunks=declared), gpu(1)], inplace=0)
    assert (Kind.BOUNDS in kinds(text)) is not legal


def test_unused_buffers_need_not_be_declared() -> None:
    gpus = [
        gpu(0, block(0, step(0, "s", "i0", cnt=2), send=1), chunks=(2, 0, 0)),
        gpu(1, block(0, step(0, "rrc", "i0", cnt=2), recv=0), chunks=(2, 0, 0)),
    ]
    assert verify(read(algo(gpus, coll="reduce"), root=1)).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ('srcoff="2" dstbuf="i" dstoff="2"', 'srcoff="7" dstbuf="i" dstoff="7"', Kind.BOUNDS),
        ('srcoff="2" dstbuf="i" dstoff="2"', 'srcoff="-1" dstbuf="i" dstoff="-1"', Kind.BOUNDS),
        ('send="1"', 'send="-1"', Kind.PEER),
        ('send="1"', 'send="0"', Kind.PEER),
        ('send="1"', 'send="77"', Kind.PEER),
        ('depid="-1" deps="-1"', 'depid="5" deps="0"', Kind.DEPENDENCY),
        ('depid="-1" deps="-1"', 'depid="0" deps="-1"', Kind.DEPENDENCY),
        ('cnt="1"', 'cnt="2"', Kind.COUNT),
    ],
)
def test_what_the_checker_must_report(old: str, new: str, kind: Kind) -> None:
    """Semantic errors are not input errors: they are violations, with a line number."""
    text = ring(4).replace(old, new, 1)
    found = [v for v in verify(read(text)).violations if v.kind is kind]
    assert found
    assert any("(line " in violation.message for violation in found)


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ('type="rrcs"', 'type="rrxs"', 5, "<step> has type='rrxs', not one of s, r, rcs"),
        ('type="rrcs"', "", 5, "lacks the attribute 'type'"),
        ('srcbuf="i"', 'srcbuf="x"', 4, "srcbuf='x', not one of i, o, s"),
        (
            '<step s="1"',
            '<step s="2"',
            5,
            "is step 1 of its block in document order, but its number is 2",
        ),
        ('<step s="1"', '<step s="0"', 5, "its number is 0"),
        ('cnt="1"', 'cnt="-1"', 4, "cnt='-1', not a whole number from 0"),
        ('cnt="1"', 'cnt="1.0"', 4, "cnt='1.0'"),
        ('cnt="1"', 'cnt="NaN"', 4, "cnt='NaN'"),
        ('cnt="1"', 'cnt="1e3"', 4, "cnt='1e3'"),
        ('cnt="1"', 'cnt="1' + "0" * 30 + '"', 4, "cnt='1000"),
        ('cnt="1"', 'cnt="\u0661"', 4, "cnt='\\u0661'"),
        ('hasdep="0"', 'hasdep="2"', 4, "hasdep='2'"),
        ('<gpu id="1"', '<gpu id="0"', 9, "of the gpu on line 2"),
        ('<gpu id="1"', '<gpu id="2"', 9, "id='2', not a whole number from 0 to 1"),
        ('ngpus="2"', 'ngpus="3"', 1, "there is no gpu 2"),
        ('ngpus="2"', 'ngpus="0"', 1, "ngpus='0'"),
        ('ngpus="2"', 'ngpus="5000"', 1, "from 1 to 4096"),
        ('coll="allreduce"', 'coll="allreduc"', 1, "did you mean 'allreduce'?"),
        ('proto="Simple"', 'proto="LL64"', 1, "not one of Simple, LL, LL128"),
        ('nchunksperloop="2"', 'nchunksperloop="0"', 1, "nchunksperloop='0'"),
        ('nchunksperloop="2"', 'nchunksperloop="999999"', 1, "more than 1048576 chunks"),
        ('s_chunks="0"', 's_chunks="99999999"', 2, "beyond 4194304 chunks"),
        ("</gpu>", "<tp/></gpu>", 8, "<gpu> holds <tp>; <tb> and <copy> may be there"),
        ("</tb>", "<step><step/></step></tb>", 7, "lacks the attribute 'type'"),
        ("</tb>", "text</tb>", 7, "text 'text' between elements"),
        ("</tb>", "", 8, "is not valid XML: mismatched tag"),
        ("</algo>", "", 17, "is not valid XML: no element found"),
    ],
)
def test_input_errors(old: str, new: str, line: int, what: str) -> None:
    text = ring(2)
    assert old in text
    shown = refusal(read, text.replace(old, new, 1))
    assert shown.startswith(f"f.xml, line {line}: ")
    assert what in shown


def test_blocks_are_numbered_once() -> None:
    shown = refusal(read, algo([gpu(0, block(3), block(3))]))
    assert shown.startswith("f.xml, line 6: <tb> has id=3 of the block on line 3")


def test_names_are_one_line() -> None:
    assert read(ring(name="a &#10; b &lt;")).name == "a b <"
