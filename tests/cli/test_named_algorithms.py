"""--algorithm by name: what cannot run by it is said, and refused where that is everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import TINY, assert_one_error, cli

FOUR = ("-t", "dgx-h100:4", "--axes", "dp=32", "--reduce", "dp=64KiB")
COST = ("cost", *FOUR, "--placement", "[[4,8]]")
SPLIT = (
    "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node",
    "all-reduce parallel node in root (all-reduce dp)",
)
CLUSTER = """
name: pair
library: nccl-2.20
levels:
  - {name: node, size: 2, link: {kind: switch, fabric: infiniband, bandwidth: 50 GB/s, latency: 0 us}}
  - name: gpu
    size: 4
    link:
      {kind: switch, fabric: nvlink4, bandwidth: 450 GB/s, latency: 0 us, in_switch_reduction: {min_members: 2}}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        (("--algorithm", "nvls"), ("algorithm nvls", "nccl-2.30", "all-reduce inside root")),
        (("--algorithm", "nvls", "--sizes", "1KiB..1MiB"), ("algorithm nvls", "inside root")),
        (("--algorithm", "tree", "--kind", "all-gather"), ("algorithm tree", "all-gather")),
        (("--algorithm", "ring,direct"), ("algorithm direct", "runs only ring, tree")),
        (("--algorithm", "nvls", "--library", "none"), ("known to libraries only",)),
        (("--algorithm", "tree,pat", "--library", "none"), ("algorithm pat",)),
        (("--algorithm", "in-switch", "--library", "none"), ("algorithm in-switch",)),
        (("--algorithm", "nvls", "--library", "nccl-2.12"), ("runs only ring, tree",)),
    ],
)
def test_what_can_run_no_step_is_refused(more: tuple[str, ...], parts: tuple[str, ...]) -> None:
    outcome = cli(*COST, *more)
    assert_one_error(outcome)
    assert all(part in outcome.err for part in parts), outcome.err


def test_a_program_that_mixes_steps_says_which_do_not_run_so() -> None:
    program, step = SPLIT
    unsized = ["dp" if word == FOUR[-1] else word for word in COST]
    for more in ((), ("--sizes", "1KiB,1MiB"), ("--program", "single")):
        asked = unsized if "--sizes" in more else COST
        outcome = cli(*asked, "--algorithm", "nvls", "--program", program, *more, "--json")
        assert outcome.code == 0
        expected = step if "single" not in more else f"{step}; all-reduce inside root"
        assert outcome.err.startswith("note: by ring, as nccl-2.30 cannot run it by nvls: ")
        assert expected in outcome.err
        assert "reduce-scatter" not in outcome.err
        assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("more", [(), ("--algorithm", "best"), ("--algorithm", "ring,nvls")])
def test_nothing_is_said_where_what_is_named_runs(more: tuple[str, ...]) -> None:
    outcome = cli(*COST, *more, "--program", SPLIT[0])
    assert (outcome.code, outcome.err) == (0, "")


def test_a_send_has_no_choice() -> None:
    scene = ("-t", "dgx-h100:2", "--axes", "pp=2,dp=8", "--placement", "[[2,1],[1,8]]")
    outcome = cli("cost", *scene, "--send", "pp=1MiB", "--algorithm", "tree")
    assert (outcome.code, outcome.err) == (0, "")


def test_the_answer_of_a_search_says_so() -> None:
    outcome = cli("solve", *FOUR, "--algorithm", "nvls", "--details")
    note = f"by ring, as nccl-2.30 cannot run it by nvls: {SPLIT[1]}"
    assert outcome.code == 0
    assert f"note: {note}" in outcome.out.splitlines()
    assert cli("solve", *FOUR, "--algorithm", "nvls", "--json").json()["notes"] == [note]
    assert cli("solve", *FOUR, "--json").json()["notes"] == []


@pytest.mark.parametrize(
    ("topology", "more", "part"),
    [
        ("dgx-h100:4", ("--algorithm", "nvls", "--length", "1"), "runs only inside a node"),
        ("dgx-h100:4", ("--algorithm", "pat", "--length", "1"), "algorithms pat: "),
        ("dgx-h100:4", ("--algorithm", "ring,direct"), "algorithm direct"),
        ("dgx2:2", ("--algorithm", "nvls", "--library", "nccl-2.20"), "in_switch_reduction"),
    ],
)
def test_a_search_that_can_find_nothing_by_it_is_refused(
    topology: str, more: tuple[str, ...], part: str
) -> None:
    outcome = cli("solve", "-t", topology, "--axes", "dp=32", "--reduce", "dp=64KiB", *more)
    assert_one_error(outcome)
    assert part in outcome.err


@pytest.mark.parametrize(
    "named", ["overrides: {all-reduce: nvls}\n", "restricted: true\nalgorithms: [nvls]\n"]
)
def test_what_a_file_names_is_noted_by_all_that_price(tmp_path: Path, named: str) -> None:
    """Nobody asked for it in this question: a ring runs where it cannot, with a note."""
    path = tmp_path / "pair.yaml"
    path.write_text(CLUSTER + named)
    scene = ("-t", str(path), "--axes", "dp=8", "--reduce", "dp=1MiB")
    unsized = ("-t", str(path), "--axes", "dp=8", "--reduce", "dp", "--placement", "[[2,4]]")
    note = "by ring, as nccl-2.20 cannot run it by nvls: all-reduce inside root (all-reduce dp)"
    placed = (*scene, "--placement", "[[2,4]]")
    for command in (
        ("cost", *placed),
        ("cost", *unsized, "--sizes", "1KiB,1MiB"),
        ("programs", *placed, "--top", "1", "--length", "1"),
    ):
        outcome = cli(*command)
        assert (outcome.code, outcome.err) == (0, f"note: {note}\n"), command
    listed = cli("programs", *placed, "--top", "2")
    assert listed.code == 0
    assert "note: by ring, as nccl-2.20 cannot run it by nvls: " in listed.err
    every = cli("programs", *placed)
    assert (every.code, every.err) == (0, "")


def test_what_a_file_names_for_all_reduce_is_noted_by_solve(tmp_path: Path) -> None:
    path = tmp_path / "pair.yaml"
    path.write_text(CLUSTER + "overrides: {all-reduce: nvls}\n")
    asked = ("solve", "-t", str(path), "--axes", "dp=8", "--reduce", "dp=1MiB", "--length", "1")
    note = "by ring, as nccl-2.20 cannot run it by nvls: all-reduce inside root (all-reduce dp)"
    assert cli(*asked, "--json").json()["notes"] == [note]


def test_what_a_file_names_and_the_library_does_not_know_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pair.yaml"
    path.write_text(CLUSTER + "overrides: {all-reduce: nvls}\n")
    scene = ("cost", "-t", str(path), "--axes", "dp=8", "--placement", "[[2,4]]")
    mixed = cli(*scene, "--reduce", "dp=1MiB", "--program", SPLIT[0])
    assert (mixed.code, mixed.err.count("by ring, as nccl-2.20 cannot run it by nvls")) == (0, 1)
    path.write_text(CLUSTER + "overrides: {broadcast: tree}\n")
    for command in (("topology", "check", str(path)), (*scene, "--reduce", "dp=1MiB")):
        outcome = cli(*command)
        assert_one_error(outcome)
        assert "overrides.broadcast tree: nccl-2.20 runs broadcast only by ring" in outcome.err


def test_the_textbook_says_it_too(tmp_path: Path) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY.replace("{kind: switch, bandwidth: 100", "{kind: ring, bandwidth: 100"))
    scene = ("cost", "-t", str(path), "--axes", "dp=8", "--placement", "[[2,4]]")
    asked = (*scene, "--reduce", "dp=1MiB", "--algorithm", "tree")
    assert_one_error(cli(*asked))
    mixed = cli(*asked, "--program", SPLIT[0])
    steps = "reduce-scatter inside node (all-reduce dp); all-gather inside node (all-reduce dp)"
    assert mixed.err == f"note: by ring, as the topology cannot run it by tree: {steps}\n"


def test_auto_is_the_older_name_of_best() -> None:
    sizes = ("--sizes", "1KiB..1GiB", "--json")
    best, auto = (cli(*COST, *sizes, "--algorithm", name).json() for name in ("best", "auto"))
    assert best == auto
    assert best != cli(*COST, *sizes).json()
