"""Bad input to `p2smt redistribute`: one clear line, exit code 2; a cap that no plan meets: 4."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.tools import TINY, assert_one_error, cli
from tests.strategies.draws import Draws, draws

SIX = """
name: six
library: none
levels:
  - {name: node, size: 6, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us}}
"""

GIVEN = {
    "--mesh": "dp=2,tp=4",
    "--shape": "64,64",
    "--dtype": "f32",
    "--from": "S(dp),S(tp)",
    "--to": "R,S(dp,tp)",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tiny.yaml").write_text(TINY)
    (tmp_path / "six.yaml").write_text(SIX)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments(topology: str = "tiny.yaml", **changed: str | None) -> list[str]:
    """A good command with some options changed, added, or (None) left out."""
    options: dict[str, str | None] = {"--topology": topology, **GIVEN}
    options |= {f"--{name.rstrip('_').replace('_', '-')}": text for name, text in changed.items()}
    pairs = [(name, text) for name, text in options.items() if text is not None]
    return ["redistribute", *(word for pair in pairs for word in pair)]


BAD: list[tuple[dict[str, str | None], str]] = [
    ({"mesh": None}, "--mesh: is missing"),
    ({"shape": None}, "--shape: is missing"),
    ({"from_": None}, "--from: is missing"),
    ({"to": None}, "--to: is missing"),
    ({"topology": None}, "topology: is missing"),
    # axes
    ({"mesh": "dp=2,dp=4"}, "mesh axis dp: is given twice"),
    ({"mesh": "dp=2,tp"}, "needs NAME=SIZE for each axis"),
    ({"mesh": "dp=2,tp=x"}, "size of mesh axis tp"),
    ({"mesh": "dp=2,tp=8"}, "a mesh of 16 devices: tiny has 8"),
    ({"mesh": "dp=2,tp=2"}, "a mesh of 4 devices: tiny has 8"),
    ({"from_": "S(dp),S(dp)"}, "dp and dp: an axis shards, or is partial, once at most"),
    ({"from_": "S(dp),R;P(dp)"}, "an axis shards, or is partial, once at most"),
    ({"from_": "S(tp:(1)2),S(tp)"}, "an axis shards, or is partial, once at most"),
    ({"from_": "S(pp),R"}, "axis 'pp': is none of the mesh's dp, tp"),
    ({"from_": "S(tp:(2)4),R"}, "has no such part: the product must divide 4"),
    ({"from_": "S(dp)"}, "a layout of 1 dimensions: the array has 2"),
    ({"from_": "S(dp),"}, "has an empty entry or an open bracket"),
    ({"from_": "dp,tp"}, "entry 'dp' is none"),
    ({"from_": "S(dp),R;P"}, "is no P(axis)"),
    # partial values
    ({"from_": "R,R;P(dp);P(tp,max)"}, "partial values of one array have one reduction"),
    ({"from_": "R,R;P(dp,min)", "to": "R,R;P(dp,max)"}, "have one reduction"),
    ({"from_": "R,R;P(dp,mean)"}, "reduction 'mean': is none of sum, avg"),
    ({"to": "R,R;P(dp)"}, "no step makes partial values"),
    ({"dtype": "i32", "from_": "R,R;P(dp,avg)"}, "partial averages of i32"),
    # shapes
    ({"shape": ""}, "an array without dimensions has nothing to shard"),
    ({"shape": "()"}, "an array without dimensions has nothing to shard"),
    ({"shape": "", "from_": "", "to": ""}, "an array without dimensions has nothing to shard"),
    ({"shape": "64x"}, "is not a whole number"),
    ({"shape": "64,0"}, "an empty array has nothing to move"),
    ({"shape": "64,-1"}, "is not a whole number"),
    ({"shape": "64,,64"}, "is not a whole number"),
    ({"shape": "64,2"}, "dimension 1 of size 2: does not divide into 4 equal shards"),
    ({"shape": "65,64"}, "dimension 0 of size 65: does not divide into 2 equal shards"),
    ({"shape": "64,6"}, "does not divide into 4 equal shards"),
    ({"shape": "9007199254740992,64"}, "has more than 2^53 elements"),
    (
        {"shape": "65,64", "uneven": "nested", "from_": "S(tp:(1)2),R"},
        "nested uneven dimensions are sharded by whole axes only",
    ),
    ({"uneven": "ragged"}, "must be one of refuse, padded, nested"),
    ({"dtype": "f8"}, "dtype 'f8': is none of"),
    # devices
    ({"device_ids": "0,1,2"}, "3 devices: the axes' product is 8"),
    ({"device_ids": "0,1,2,3,4,5,6,6"}, "each position needs a device of its own"),
    ({"device_ids": "0,1,2,3,4,5,6,x"}, "is not a whole number"),
    ({"device_ids": "0,1,2,3,4,5,6,8"}, "device 8: devices are numbered 0 to 7"),
    ({"to_device_ids": "0,1,2,3,4,5,6,9"}, "a destination on other devices: is not planned"),
    ({"to_device_ids": "0,1,2,3"}, "4 devices: the axes' product is 8"),
    ({"placement": "[[2,1],[1,4]]", "device_ids": "0,1,2,3,4,5,6,7"}, "drop one of them"),
    ({"placement": "[[2,1],[1,2]]"}, "its row products (axis sizes) are [2, 2], not [2, 4]"),
    ({"placement": "[0,1]"}, "is an order of ranks"),
    # limits
    (
        {"memory": "1KiB"},
        "memory 1 KiB: is below the source's 2 KiB on a device; give at least 2048B",
    ),
    ({"memory": "2KiB", "to": "R,S(tp)"}, "is below the destination's 4 KiB on a device"),
    ({"memory": "much"}, "--memory"),
    ({"steps": "0"}, "--steps"),
    ({"steps": "65"}, "--steps '65': is not a whole number from 1 to 64"),
    ({"cuts": "prime"}, "cuts 'prime': are neither primes nor levels"),
    ({"time_limit": "soon"}, "time limit"),
    ({"compare": "gspmd"}, "gspmd"),
    # files
    ({"svg": "made.png"}, "must be named .svg"),
    ({"svg": "no/made.svg"}, "is not a file in an existing folder"),
    ({"output": "no/plan.json"}, "is not a file in an existing folder"),
    ({"output": "plan.yaml"}, "plan.yaml"),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("changed", "told"), BAD, ids=[told[:40] for _, told in BAD])
def test_bad_input_is_one_line(changed: dict[str, str | None], told: str) -> None:
    done = cli(*arguments(**changed))  # type: ignore[arg-type]
    assert_one_error(done)
    assert told in done.err


@pytest.mark.usefixtures("folder")
def test_parts_that_cannot_coexist() -> None:
    """6 split as 2 times 3 by one type, as 3 times 2 by the other."""
    one, other = "S(x:(1)2),R", "S(x:(1)3),R"
    done = cli(*arguments("six.yaml", mesh="x=6", shape="6,6", from_=one, to=other))
    assert_one_error(done)
    assert "axis x of 6 cannot be cut after 2 and after 3 both" in done.err


@pytest.mark.usefixtures("folder")
def test_a_cap_that_no_plan_meets_and_the_least_that_one_meets() -> None:
    """Source and destination fit, but not input, output and pack buffer of any step together."""
    asked = arguments(memory="2KiB")
    done = cli(*asked)
    assert done.code == 4
    assert "infeasible: no plan keeps to 2 KiB (2048 bytes) per device" in done.out
    data = cli(*asked, "--json").json()
    least = data["least_limit_bytes"]
    assert data["status"] == "infeasible"
    assert (data["steps"], data["objective_s"]) == ([], None)
    assert least == data["least_memory_bytes"]
    assert f"--memory {least}B" in done.out
    again = cli(*arguments(memory=f"{least}B"), "--json")
    assert (again.code, again.json()["peak_step_bytes"]) == (0, least)
    below = cli(*arguments(memory=f"{least - 1}B"), "--json")
    assert (below.code, below.json()["least_limit_bytes"]) == (4, least)


@pytest.mark.usefixtures("folder")
def test_an_infeasible_question_writes_nothing(folder: Path) -> None:
    done = cli(*arguments(memory="2KiB", output="plan.json", svg="made.svg"))
    assert done.code == 4
    assert not (folder / "plan.json").exists()
    assert not (folder / "made.svg").exists()


ODD = st.sampled_from(
    ["", "x", "-1", "0", "1e9", "nan", "\n", "[]", "R", "S()", ";", ",", "()", "8"]
)
LAYOUTS = st.lists(
    st.sampled_from(["R", "S(dp)", "S(tp)", "S(tp:(2)2)", "S(dp,tp)", "S(pp)"]), max_size=3
).map(",".join)
PARTIAL = st.sampled_from(["", ";P(dp)", ";P(tp,max)", ";P(dp);P(tp,min)", ";P(tp:(1)2)", ";P"])
TEXTS = st.builds(str.__add__, LAYOUTS, PARTIAL)
VALUES: dict[str, st.SearchStrategy[str]] = {
    "from_": TEXTS,
    "to": TEXTS,
    "shape": st.sampled_from(["8,8", "64", "4,4,4", "7,9", "8,8,", "0,8"]),
    "mesh": st.sampled_from(["dp=2,tp=4", "dp=8", "dp=4,tp=2", "dp=2,tp=3", "tp=8"]),
    "dtype": st.sampled_from(["bf16", "bool", "i8", "f8"]),
    "uneven": st.sampled_from(["padded", "nested", "refuse", "uneven"]),
    "memory": st.sampled_from(["1KiB", "1MiB", "0"]),
    "steps": st.sampled_from(["1", "2", "99"]),
    "cuts": st.sampled_from(["levels", "primes", "none"]),
    "device_ids": st.sampled_from(["7,6,5,4,3,2,1,0", "0,1", "[0]"]),
}


@pytest.mark.usefixtures("in_folder")
@given(draws())
def test_half_valid_commands_end_with_a_documented_code(data: Draws) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=4, unique=True))
    changed = {
        name: data.draw(VALUES[name] if data.draw(st.integers(0, 5)) else ODD) for name in names
    }
    done = cli(*arguments(**changed), "--time-limit", "5")
    assert done.code in (0, 2, 3, 4), done.err
    if done.code == 2:
        assert_one_error(done)


@pytest.fixture(scope="module")
def in_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = tmp_path_factory.mktemp("half")
    (path / "tiny.yaml").write_text(TINY)
    with chdir(path):
        yield
