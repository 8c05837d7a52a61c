"""What readers are told about an MSCCL XML file besides its correctness."""

from __future__ import annotations

import pytest

from p2smt.interop.msccl.read import read_msccl
from p2smt.schedules.model import StepRef
from tests.interop.msccl.texts import algo, block, gpu, ring, step, swap


def warnings(text: str) -> tuple[str, ...]:
    return read_msccl(text, "f.xml").warnings


def of_gpu(*inside: str, **more: object) -> tuple[str, ...]:
    """Warnings about the first gpu of two; its first block is on line 3."""
    return warnings(algo([gpu(0, *inside, chunks=(2, 2, 9)), gpu(1)], **more))


def nops(count: int) -> list[str]:
    return [step(index, "nop", cnt=0) for index in range(count)]


def copies(*targets: str, hasdep: int = 0) -> str:
    return block(0, *(step(k, "cpy", "s0", to, hasdep=hasdep) for k, to in enumerate(targets)))


def test_correct_files_give_none() -> None:
    assert warnings(ring()) == warnings(swap()) == ()


@pytest.mark.parametrize(
    ("hasdep", "warned"),
    [
        ((1, 0), ""),
        ((0, 1), "line 9: waits for a step with hasdep=0: the runtime waits for the next with"),
        ((0, 0), ""),
    ],
)
def test_waits_for_steps_that_are_not_announced(hasdep: tuple[int, int], warned: str) -> None:
    first = block(0, *(step(k, "cpy", "s0", "s1", hasdep=has) for k, has in enumerate(hasdep)))
    second = block(1, *nops(1), step(1, "cpy", "s1", "s2", depid=0, deps=0))
    shown = of_gpu(first, second)
    assert len(shown) == bool(warned)
    assert all(text.startswith(warned) for text in shown)


def test_a_nop_is_never_announced() -> None:
    first = block(0, step(0, "nop", cnt=0, depid=1, deps=0, hasdep=1))
    second = block(1, step(0, "cpy", "s0", "s1", hasdep=1), step(1, "nop", depid=0, deps=0))
    steps = read_msccl(algo([gpu(0, first, second, chunks=(2, 2, 9)), gpu(1)]), "f.xml").steps
    assert [step.unannounced for step in steps] == [(), (), (StepRef(0, 0),)]
    assert of_gpu(first, second) == ()


def test_a_file_without_hasdep_says_nothing_about_it() -> None:
    assert warnings(swap().replace('hasdep="0"', "").replace('hasdep="1"', "")) == ()


def test_nops_are_folded_into_the_next_step() -> None:
    first = copies("s1", hasdep=1)
    wait = step(0, "nop", cnt=0, depid=0, deps=0)
    assert of_gpu(first, block(1, wait, step(1, "cpy", "s1", "s2", depid=0, deps=0))) == ()


def test_nops_that_are_not_counted() -> None:
    assert of_gpu(block(0, *nops(1), step(1, "cpy", "s1", "s2"))) == ()
    (shown,) = of_gpu(block(0, *nops(1), step(1, "cpy", "s1", "s2", hasdep=1)))
    assert shown.startswith("line 4: the runtime does not count a nop that waits for nothing")


def test_reductions_that_are_joined() -> None:
    def two(**second: object) -> tuple[str, ...]:
        first = step(0, "re", "s0", "s4", cnt=2)
        return of_gpu(block(0, first, step(1, "re", "s2", "s4", **{"cnt": 1} | second)))

    assert two() == (
        "line 5: the runtime joins this re to the one before it and takes this cnt for both",
    )
    assert two(cnt=2) == two(dstoff=5) == two(srcbuf="o", srcoff=0) == ()


def test_input_overwritten_out_of_place() -> None:
    assert of_gpu(copies("i0", "o0")) == ()
    shown = of_gpu(copies("i0", "o0", "i1"), inplace=0)
    text = "overwrites the caller's input, although the file is used out of place"
    assert shown == (f"lines 4, 6: {text}",)


def test_many_lines_are_cut_short() -> None:
    (shown,) = of_gpu(copies(*["i0"] * 9), inplace=0)
    assert shown.startswith("lines 4, 5, 6, 7 and 5 more: ")
