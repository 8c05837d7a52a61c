"""`p2smt redistribute`: answers, JSON, files and limits."""

from __future__ import annotations

from pathlib import Path

import pytest

import p2smt
from p2smt.resharding import search as portfolio
from tests.cli.redistribute.test_redistribute_bad import arguments
from tests.cli.tools import TINY, cli


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tiny.yaml").write_text(TINY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_fields_that_tools_rely_on() -> None:
    done = cli(*arguments(), "--json")
    data = done.json()
    assert (done.code, done.err, data["status"]) == (0, "", "optimal")
    assert data["objective_s"] == data["bound_s"] >= data["physical_bound_s"] > 0
    assert data["objective_s"] == pytest.approx(sum(step["seconds"] for step in data["steps"]))
    assert (data["gap"], data["max_steps"], data["peak_bytes"]) == (0.0, None, 2048)
    assert data["peak_step_bytes"] == max(step["step_bytes"] for step in data["steps"])
    assert data["steps"][-1]["after"] == data["to"] == "R,S(dp,tp)"
    assert set(data["steps"][0]) >= {"kind", "text", "after"}


def test_the_table_says_time_proof_and_memory() -> None:
    lines = cli(*arguments(steps="2"), "--details").out.splitlines()
    assert lines[0].startswith("optimal: ")
    assert lines[0].endswith("proved among plans of at most 2 steps")
    assert lines[1].startswith("range: ")
    assert "link-level bound" in lines[2]
    assert lines[3].startswith("memory per device: largest state 2 KiB (cap 2 KiB)")
    assert "R,S(dp,tp)" in lines[-1]


def test_times_have_ranges_and_what_they_rest_on() -> None:
    data = cli(*arguments(), "--json").json()
    low, high = data["range_s"]
    assert 0 < low <= data["objective_s"] <= high
    assert data["basis"] == "assumed"
    sent = [step for step in data["steps"] if step["range_s"] is not None]
    assert [one["kind"] for one in data["steps"] if one["range_s"] is None] == [
        one["kind"] for one in data["steps"] if one["kind"] == "slice"
    ]
    assert low == pytest.approx(sum(step["range_s"][0] for step in sent))
    assert high == pytest.approx(sum(step["range_s"][1] for step in sent))
    still = cli(*arguments(from_="R,S(dp,tp)", to="R,S(dp,tp)"), "--json").json()
    assert (still["objective_s"], still["range_s"], still["basis"]) == (0, None, None)


def test_more_steps_are_never_slower() -> None:
    times = [cli(*arguments(steps=str(n)), "--json").json()["objective_s"] for n in (2, 3, 4)]
    assert sorted(times, reverse=True) == times


def test_too_few_steps_are_infeasible() -> None:
    done = cli(*arguments(steps="1"), "--details")
    assert (done.code, done.out) == (
        4,
        "infeasible: no plan of at most 1 step exists, whatever the memory; give more --steps\n",
    )
    data = cli(*arguments(steps="1"), "--json").json()
    assert (data["too_few_steps"], data["least_memory_bytes"]) == (True, None)
    assert data["bound_s"] is None


def test_few_steps_under_a_cap_have_a_least_memory() -> None:
    asked = {"from_": "S(tp),S(dp)", "steps": "2"}
    done = cli(*arguments(**asked, memory="2KiB"))
    assert (done.code, done.out.splitlines()[0]) == (
        4,
        "infeasible: no plan of at most 2 steps keeps to 2 KiB (2048 bytes) per device",
    )
    given = done.out.split("--memory ")[1].split()[0]
    assert cli(*arguments(**asked, memory=given)).code == 0


def test_a_cap_on_steps_is_told() -> None:
    done = cli(*arguments(memory="8KiB"), "--details")
    assert "pack buffer of a step 6 KiB (cap 8 KiB)" in done.out
    kept = cli(*arguments(memory="8KiB"), "--keep-source", "--details")
    assert kept.code == 0
    assert "pack buffer of a step beside the source" in kept.out


def test_a_matrix_and_its_devices_are_the_same() -> None:
    placed = cli(*arguments(placement="[[1,2],[2,2]]"), "--json").json()
    assert placed["device_ids"] == [0, 1, 4, 5, 2, 3, 6, 7]
    listed = cli(*arguments(device_ids="[0,1,4,5,2,3,6,7]"), "--json").json()
    assert listed == placed


def test_another_order_of_devices_is_a_permute() -> None:
    done = cli(*arguments(to="S(dp),S(tp)", to_device_ids="7,6,5,4,3,2,1,0"), "--json")
    data = done.json()
    assert data["to_device_ids"] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert [step["kind"] for step in data["steps"]] == ["permute"]
    assert "on the destination's devices" in data["steps"][0]["text"]


def test_files_are_written_and_the_plan_is_verified(folder: Path) -> None:
    done = cli(*arguments(output="plan.json", svg="made.svg"))
    assert done.code == 0
    assert done.out.splitlines()[-4:] == [
        "plan written to plan.json",
        "picture written to made.svg",
        "next, in JAX: p2smt export plan.json --to jax-shard-map -o moves.py",
        'in torch: p2smt.torch_function(p2smt.read_redistribution("plan.json"), mesh)',
    ]
    assert cli("export", "plan.json", "--to", "jax-shard-map", "-o", "moves.py").code == 0
    assert p2smt.read_redistribution("plan.json").steps
    assert (folder / "made.svg").read_text().startswith("<svg")
    verified = cli("verify", "plan.json")
    assert (verified.code, verified.err) == (0, "")


@pytest.mark.parametrize("shape", ["(64, 64)", "64x64", "[64,64]", "64,64,"])
def test_shapes_and_dtypes_as_frameworks_write_them(shape: str) -> None:
    asked = cli(*arguments(dtype="bf16"), "--json").json()
    assert cli(*arguments(shape=shape, dtype="torch.bfloat16"), "--json").json() == asked


def test_padding_is_named() -> None:
    asked = arguments(shape="65,64", uneven="padded", svg="made.svg")
    assert "\n65,64 padded to 66,64 f32 on dp=2,tp=4" in cli(*asked).out
    data = cli(*asked, "--json").json()
    assert (data["shape"], data["padded_shape"]) == ([65, 64], [66, 64])
    assert cli(*arguments(), "--json").json()["padded_shape"] == [64, 64]


def test_axes_of_one_device_are_named_by_no_type() -> None:
    """As everywhere else: only the given layouts name them."""
    done = cli(*arguments(mesh="a=1,dp=2,tp=4", from_="S(a,dp),S(tp)"), "--details")
    assert done.out.splitlines()[7].split()[0] == "S(dp),S(tp)"
    data = cli(*arguments(mesh="a=1,dp=2,tp=4", from_="S(a,dp),S(tp)"), "--json").json()
    assert data["from"] == "S(a,dp),S(tp)"


def test_nothing_to_do_has_no_steps() -> None:
    done = cli(*arguments(to="S(dp),S(tp)", output="plan.json", svg="made.svg"), "--json")
    data = done.json()
    assert (done.code, data["steps"], data["objective_s"], data["gap"]) == (0, [], 0.0, 0.0)
    assert cli("verify", "plan.json").code == 0


def test_no_time_is_not_settled() -> None:
    done = cli(*arguments(from_="S(tp),S(dp)", time_limit="0"))
    assert done.code == 3
    status, rest = done.out.splitlines()[0].split(":", 1)
    assert status in ("feasible", "unknown")
    assert rest.endswith("the time limit came")


def test_an_interrupt_leaves_the_best_plan_so_far(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(portfolio, "EXACT_S", 0.0)
    monkeypatch.setattr(portfolio, "best_layered", interrupted)
    asked = arguments(from_="S(tp),S(dp)", dtype="f64", output="plan.json")  # not asked before
    done = cli(*asked)
    assert done.code == 130
    assert done.out.startswith("interrupted: the best found so far\nfeasible: ")
    assert cli("verify", "plan.json").code == 0
    data = cli(*asked, "--json").json()
    assert (data["status"], data["interrupted"]) == ("feasible", True)
    (folder / "plan.json").unlink()
    monkeypatch.setattr(portfolio, "coarse_path", lambda *_: None)
    assert cli(*asked).code == 130
    assert not (folder / "plan.json").exists()
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert cli(*asked, "--json").json()["interrupted"] is False


def test_shardy_without_its_file_has_no_plan() -> None:
    data = cli(*arguments(compare="shardy"), "--json").json()
    (row,) = data["compared"]
    assert (row["name"], row["seconds"]) == ("shardy", None)
    assert "no package to run" in row["note"]
    done = cli(*arguments(shardy_file="made.mlir"))
    assert done.code == 2
    assert "--shardy-file: is what --compare shardy reads" in done.err


@pytest.mark.slow
def test_dtensor_stands_beside_it() -> None:
    pytest.importorskip("torch")
    done = cli(*arguments(compare="dtensor"), "--json")
    data = done.json()
    assert {row["name"] for row in data["compared"]} >= {"dtensor greedy", "dtensor graph"}
    assert all(row["seconds"] >= data["objective_s"] for row in data["compared"] if row["seconds"])


def test_algorithms_are_those_named() -> None:
    changed = {"mesh": "dp=2,tp=8", "from_": "R,R;P(tp)", "to": "R,R", "shape": "64,64"}
    asked = arguments("dgx-a100:2", **changed)
    rings = cli(*asked, "--algorithm", "ring", "--json").json()
    assert {step["algorithm"] for step in rings["steps"] if step["bottleneck"]} == {"ring"}
    assert rings["objective_s"] >= cli(*asked, "--json").json()["objective_s"] * (1 - 1e-9)
    assert cli(*asked, "--algorithm", "rings").code == 2


def test_the_gradient_of_a_partial_source_is_gathered() -> None:
    asked = arguments(from_="S(dp),R;P(tp)", to="S(dp),S(tp)")
    data = cli(*asked, "--backward", "--json").json()
    back = data["backward"]
    assert (back["status"], back["from"], back["to"]) == ("optimal", "S(dp),S(tp)", "S(dp),R")
    assert {step["kind"] for step in data["steps"]} == {"reduce-scatter"}
    assert {step["kind"] for step in back["steps"]} == {"all-gather"}
    local = back["steps"][0]["local_bytes"] if back["steps"][1:] else back["peak_bytes"]
    assert back["peak_step_bytes"] > local
    lines = cli(*asked, "--backward").out.splitlines()
    place = lines.index("the gradient's way back, while its source is kept")
    assert lines[place + 1].startswith("optimal: ")
    assert cli(*asked, "--json").json()["backward"] is None


def test_a_gradient_that_no_plan_brings_back_leaves_the_plan() -> None:
    """A slice needs no pack buffer, but the gather back does."""
    asked = arguments(shape="3,1024", from_="R,R", to="R,S(dp,tp)", memory="14KiB")
    data = cli(*asked, "--backward", "--json").json()
    assert (data["status"], data["backward"]["status"]) == ("optimal", "infeasible")
    assert (data["backward"]["steps"], data["backward"]["objective_s"]) == ([], None)
    done = cli(*asked, "--backward")
    assert (done.code, done.out.splitlines()[0][:8]) == (0, "optimal:")
    assert "infeasible: no plan keeps to 14 KiB" in done.out


def test_integers_have_no_way_back() -> None:
    done = cli(*arguments(dtype="i32"), "--backward")
    assert (done.code, done.out) == (2, "")
    assert "an array of i32: has no gradient; use a floating dtype" in done.err
