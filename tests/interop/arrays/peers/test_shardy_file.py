"""Sequences of collectives are read from MLIR, each step checked by its rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.interop.arrays.peers import compare_peers as shardy_file
from p2smt.interop.arrays.peers.compare_peers import ShardyCase, read_shardy
from p2smt.interop.arrays.peers.peer_replay import PeerPath
from p2smt.resharding.endpoints import Ends, ends_of
from p2smt.resharding.steps import StepKind
from p2smt.resharding.types import ArrayType, ElementType, layout_text
from tests.refusals import found_or_refusal

FILE = Path(__file__).parent / "resharding.mlir"
READ = read_shardy(FILE.read_text(), FILE.name)


def case(name: str) -> ShardyCase:
    return next(one for one in READ.cases if one.name == name)


def path(name: str, shape: tuple[int, ...] = (16, 8)) -> tuple[Ends, PeerPath]:
    return case(name).path(ends_of(*case(name).array_types(shape)))


def test_functions_are_read_in_their_order() -> None:
    names = ["sub_axes", "other_order", "from_replicated", "nothing_to_do", "wrong_end"]
    assert [one.name for one in READ.cases] == names
    left = dict(READ.left_out)
    assert sorted(left) == ["empty_mesh", "kept"]
    assert "keeps its reshard" in left["kept"]


def test_a_sequence_with_sub_axes() -> None:
    ends, found = path("sub_axes")
    assert not found.outside
    assert [step.kind for step in found.steps] == [
        StepKind.PERMUTE,
        StepKind.ALL_TO_ALL,
        StepKind.ALL_GATHER,
    ]
    texts = [
        layout_text(ends.frame.layout(state), ends.frame.mesh)
        for state in (ends.source, *(step.after for step in found.steps))
    ]
    assert texts == [
        "S(x,y),R",
        "S(x:(1)2,y,x:(2)2),R",
        "S(x:(1)2,y),S(x:(2)2)",
        "S(x:(1)2),S(x:(2)2)",
    ]
    assert found.steps[-1].after == ends.target


def test_another_order_of_devices_and_partial_sums() -> None:
    ends, found = path("other_order")
    assert case("other_order").element is ElementType.BF16
    assert not found.outside
    assert found.steps[0].after.order == 1
    assert len(found.steps[0].after.partial) == 1
    assert ends.frame.orders[1] == tuple(range(7, -1, -1))


def test_without_a_sharding_the_argument_is_replicated() -> None:
    ends, found = path("from_replicated")
    assert ends.source.sharding == frozenset()
    assert [step.kind for step in found.steps] == [StepKind.SLICE]


def test_nothing_to_do() -> None:
    assert path("nothing_to_do")[1] == PeerPath(())


def test_a_sequence_that_ends_elsewhere_is_said() -> None:
    found = path("wrong_end")[1]
    assert "does not end in the type" in found.outside


def test_other_shapes_and_ones_that_do_not_divide() -> None:
    assert not path("sub_axes", (32, 64))[1].outside
    with pytest.raises(InputError, match="equal shards"):
        path("sub_axes", (12, 8))


def test_types_of_a_case() -> None:
    source, target = case("sub_axes").array_types((16, 8))
    assert isinstance(source, ArrayType)
    assert layout_text(target.layout, target.mesh) == "S(x:(1)2),S(x:(2)2)"


def test_output_of_the_pass_itself_is_read() -> None:
    text = """sdy.mesh @m = <["x"=2, "y"=2]>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_gather [{}, {"y"}] %arg0 out_sharding=<@m, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_to_all [{"x"}: 0->1] %0 out_sharding=<@m, [{}, {"x"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
"""  # noqa: E501
    (only,) = read_shardy(text, "text").cases
    ends, found = only.path(ends_of(*only.array_types((8, 8))))
    assert len(found.steps) == 2
    assert found.steps[-1].after == ends.target


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sdy.all_slice", "sdy.sharded_to_unreduced", "none of the six steps"),
        ('{"x"}, {"y"}]> : t', '{"x"}, {"q"}]> : t', "axis 'q'"),
        ("tensor<16x8xf32>", "tensor<16x8xc64>", "c64"),
    ],
)
def test_what_cannot_be_read_is_left_out(old: str, new: str, message: str) -> None:
    read = read_shardy(FILE.read_text().replace(old, new), "changed")
    assert message in dict(read.left_out)["from_replicated"]


def test_a_text_without_functions_is_refused() -> None:
    with pytest.raises(InputError, match="has no func"):
        read_shardy("module {}", "module")


def test_a_wrong_kind_of_step_is_said() -> None:
    text = FILE.read_text().replace("sdy.all_slice", "sdy.all_gather")
    changed = next(one for one in read_shardy(text, "x").cases if one.name == "from_replicated")
    assert "digits leave" in changed.path(ends_of(*changed.array_types((16, 8))))[1].outside


class Counted:
    """A pattern that counts the characters that it is given, of one line at a time."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.characters = pattern, 0

    def _noted(self, line: str, start: int) -> None:
        assert "\n" not in line
        self.characters += len(line) - start

    def match(self, line: str, start: int = 0) -> re.Match[str] | None:
        """As that of the pattern."""
        self._noted(line, start)
        return self.pattern.match(line, start)

    def search(self, line: str, start: int = 0) -> re.Match[str] | None:
        """As that of the pattern."""
        self._noted(line, start)
        return self.pattern.search(line, start)


HEAD = "func.func @f(%arg0 : tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {\n"
LONG = 100_000


@pytest.mark.parametrize(
    "more",
    [
        *("\n", " \n", "// a\n", "// CHECK\n", "// CHECK-LABEL: a\n", "%0 = a\n", HEAD),
        *(
            "sdy.a ",
            "sdy.a out_sharding=<@mesh, [",
            "// CHECK",
            "sdy.sharding = #sdy.sharding<@m, [",
        ),
        *("tensor<1x", "1x", "x", "%", "%a = sdy.reshard "),
    ],
)
def test_a_hostile_file_is_looked_at_a_few_times(
    more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pattern sees each line about once, from left to right, whatever is in the file."""
    patterns = {
        name: Counted(value)
        for name, value in vars(shardy_file).items()
        if isinstance(value, re.Pattern)
    }
    assert len(patterns) == 7
    for name, counted in patterns.items():
        monkeypatch.setattr(shardy_file, name, counted)
    text = FILE.read_text() + HEAD + more * (LONG // len(more)) + "\n}\n"
    found = read_shardy(text, "text")
    assert [one.name for one in found.cases] == [one.name for one in READ.cases]
    for name, counted in patterns.items():
        assert counted.characters <= 4 * len(text), name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tensor<16x8xf32>", f"tensor<{'9' * 5000}x8xf32>"),
        ("tensor<16x8xf32>", f"tensor<16x{'9' * 19}xf32>"),
        ("[7, 6, 5, 4, 3, 2, 1, 0]", f"[{'7' * 5000}, 6, 5, 4, 3, 2, 1, 0]"),
        ("[7, 6, 5, 4, 3, 2, 1, 0]", "[7 6, 5, 4, 3, 2, 1, 0]"),
        ('["x"=4, "y"=2]>', f'["x"={"4" * 5000}, "y"=2]>'),
    ],
    ids=lambda text: text[:20],
)
def test_a_number_of_many_digits_is_refused(old: str, new: str) -> None:
    """In one line, of the case that has it or of the whole file."""
    text = FILE.read_text()
    assert old in text
    found, _ = found_or_refusal(read_shardy, text.replace(old, new), "text")
    said = dict(found.left_out)["sub_axes"] if found else "the whole file"
    assert said
    assert "\n" not in said
