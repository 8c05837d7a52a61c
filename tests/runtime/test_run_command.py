"""`p2smt run` on the reference executor: what is printed, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import TINY, Outcome, assert_one_error, cli
from tests.runtime.processes import PAIRS, PROGRAM, on_pairs

Plan = dict[str, Any]
REQUESTS = ("--axes", "dp=2,tp=4", "--reduce", "dp=1MiB*3", "--all-gather", "tp=4KiB")
WRONG = "all-reduce inside node; all-reduce inside root"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "tiny.yaml").write_text(TINY)
    written = folder / "plan.json"
    outcome = cli("solve", "-t", str(folder / "tiny.yaml"), *REQUESTS, "-o", str(written))
    assert outcome.code == 0
    return written


def changed(plan: Path, folder: Path, **values: object) -> str:
    """A copy of the plan whose first step is changed."""
    data: Plan = json.loads(plan.read_text())
    data["requests"][0]["steps"][0].update(values)
    path = folder / "changed.json"
    path.write_text(json.dumps(data))
    return str(path)


def run(*arguments: str) -> Outcome:
    return cli("run", *arguments, "--backend", "reference")


def on_reference(folder: Path, *more: str, program: str = PROGRAM) -> Outcome:
    return cli(*without(on_pairs(folder, program=program), more), "--backend", "reference", *more)


def without(arguments: Sequence[str], given: Sequence[str]) -> list[str]:
    """The arguments but those options, with their values, that are given anew."""
    names = {word for word in given if word.startswith("--")}
    pairs = zip(("", *arguments), arguments, strict=False)
    return [word for before, word in pairs if not names & {before, word}]


def test_json_of_a_plan(plan: Path) -> None:
    outcome = run(str(plan), "--json", "--seed", "7")
    assert (outcome.code, outcome.err) == (0, "")
    data, written = outcome.json(), json.loads(plan.read_text())
    assert data["verified"] is True
    assert (data["measured_s"], data["baseline_s"], data["speedup"]) == (None, None, None)
    steps = [step for request in written["requests"] for step in request["steps"]]
    assert [s["instruction"] for s in data["steps"]] == [s["instruction"] for s in steps]
    assert [s["predicted_s"] for s in data["steps"]] == pytest.approx([s["seconds"] for s in steps])
    assert all(step["measured_s"] is None for step in data["steps"])
    assert data["options"] == {
        "backend": "reference",
        "device": "cpu",
        "dtype": "float32",
        "warmup": 1,
        "repeat": 5,
        "seed": 7,
        "ranks_per_gpu": 1,
    }
    assert len(data["ranks"]) == 8
    assert "p2smt" in data["versions"]
    first, second = data["requests"]
    assert (first["request"], first["kind"], first["times"]) == ("all-reduce dp", "all-reduce", 3)
    assert (first["verified"], first["errors"], first["float_checked"]) == (True, [], True)
    assert (second["payload_bytes"], second["chunks"]) == (4096, 1)
    assert first["groups"] == [list(g) for g in first["steps"][0]["groups"]]


def test_the_table(tmp_path: Path) -> None:
    outcome = on_reference(tmp_path)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "verified: 4 ranks, reference, float32"
    assert "request and steps" in outcome.out
    assert any(line.startswith("all-reduce dp 1 KiB") for line in lines)
    assert all(f"  {instruction}" in outcome.out for instruction in PROGRAM.split("; "))
    piped = on_reference(tmp_path, "--pipeline", "4").out
    assert "all-reduce dp 1 KiB in 4 chunks" in piped
    assert "reduce-scatter inside node (one chunk)" in piped


def test_predictions_for_other_sizes(plan: Path) -> None:
    small, large = (run(str(plan), "--payload", p, "--json").json() for p in ("1KiB", "4MiB"))
    assert [r["payload_bytes"] for r in small["requests"]] == [1024, 1024]
    assert small["requests"][0]["predicted_s"] < large["requests"][0]["predicted_s"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64"])
def test_types(tmp_path: Path, dtype: str) -> None:
    data = on_reference(tmp_path, "--dtype", dtype, "--json", "--pipeline", "3").json()
    (request,) = data["requests"]
    assert (request["verified"], request["chunks"]) == (True, 3)
    assert request["float_checked"] is (dtype in ("float32", "float16"))


def test_a_wrong_result_names_rank_and_element(tmp_path: Path) -> None:
    outcome = on_reference(tmp_path, program=WRONG)
    assert (outcome.code, outcome.err) == (1, "")
    first, second = outcome.out.splitlines()[:2]
    assert first == "WRONG RESULT: 4 ranks, reference, float32"
    start = "all-reduce dp: rank 0, element 0: wrong value: expected "
    assert second.startswith(start)
    expected, found = second.removeprefix(start).split(", found ")
    assert int(found) == 2 * int(expected)
    data = on_reference(tmp_path, "--json", program=WRONG).json()
    assert data["verified"] is False
    assert second in data["requests"][0]["errors"]


def test_a_plan_with_swapped_groups_is_refuted(plan: Path, tmp_path: Path) -> None:
    groups = [[0, 1], [2, 3], [4, 5], [6, 7]]
    outcome = run(changed(plan, tmp_path, groups=groups))
    assert outcome.code == 1
    assert "all-reduce dp: rank 0, element 0: wrong value" in outcome.out


def test_the_single_collective_without_a_program(tmp_path: Path) -> None:
    arguments = on_pairs(tmp_path, "--backend", "reference", "--json")
    at = arguments.index("--program")
    data = cli(*arguments[:at], *arguments[at + 2 :]).json()
    assert [step["instruction"] for step in data["steps"]] == ["all-reduce inside root"]


@pytest.mark.parametrize("kind", ["reduce-scatter", "all-gather"])
def test_other_kinds(tmp_path: Path, kind: str) -> None:
    program = f"{kind} inside node; {kind} parallel node in root"
    outcome = on_reference(tmp_path, "--kind", kind, "--json", program=program)
    assert outcome.json()["verified"] is True


# Refused ----------------------------------------------------------------------------------

OPTIONS = [
    (("--ranks", "5"), "5 ranks"),
    (("--ranks", "0"), "ranks '0'"),
    (("--ranks", "-1"), "-1"),
    (("--ranks", "four"), "four"),
    (("--dtype", "float8"), "dtype 'float8': must be one of float32, float16, bfloat16, int64"),
    (("--backend", "mpy"), "backend 'mpy': must be one of gloo, nccl, mpi, reference"),
    (("--device", "tpu"), "device 'tpu': must be cpu or cuda"),
    (("--device", "cuda"), "backend reference: does not run on device cuda"),
    (("--backend", "nccl", "--device", "cpu"), "backend nccl: does not run on device cpu"),
    (("--ranks-per-gpu", "2"), "2 ranks per GPU: needs a backend on GPUs"),
    (("--ranks-per-gpu", "0"), "ranks per GPU '0'"),
    (("--payload", "0"), "payload '0'"),
    (("--payload", "-1KiB"), "payload '-1KiB'"),
    (("--payload", "many"), "payload 'many'"),
    (("--payload", "4000TiB"), "of memory"),
    (("--payload", "4000TiB", "--backend", "gloo"), "give a smaller payload"),
    (("--pipeline", "0"), "pipeline '0'"),
    (("--pipeline", "1025"), "pipeline '1025'"),
    (("--repeat", "-1"), "-1"),
    (("--repeat", "1.5"), "repeat '1.5'"),
    (("--warmup", "1001"), "warmup '1001'"),
    (("--time-limit", "soon"), "time limit"),
    (("--time-limit", "-1"), "-1"),
    (("--seed", "-1"), "-1"),
    (("--port", "65536"), "port '65536'"),
    (("--program", PROGRAM), "a plan file with --axes, --placement, requests, --kind or"),
    (("--reduce", "dp=1KiB"), "a plan file with --axes, --placement, requests, --kind or"),
    (("--nonsense",), "--nonsense"),
]


@pytest.mark.parametrize(("options", "text"), OPTIONS)
def test_bad_options(plan: Path, options: tuple[str, ...], text: str) -> None:
    backend = () if "--backend" in options else ("--backend", "reference")
    outcome = cli("run", str(plan), *backend, *options)
    assert_one_error(outcome)
    assert text in outcome.err


def test_links_of_other_levels(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.yaml").write_text(PAIRS)
    outcome = run(str(plan), "--topology", str(tmp_path / "pairs.yaml"))
    assert_one_error(outcome)
    assert "topology pairs: has levels node 2, gpu 2, the plan has node 2, gpu 4" in outcome.err


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"instruction": "all-shuffle inside root"}, "instruction 'all-shuffle inside root'"),
        ({"instruction": "all-reduce inside rack"}, "level 'rack'"),
        ({"instruction": ""}, "instruction ''"),
        ({"groups": []}, "step 1: has no groups"),
        ({"groups": [[0, 1, 2, 99]]}, "rank 99 is not among 0 to 7"),
        ({"groups": [[0, 0]]}, "twice in one"),
        ({"groups": [[-1, 0]]}, "groups"),
    ],
)
def test_bad_plans(plan: Path, tmp_path: Path, values: dict[str, object], text: str) -> None:
    outcome = run(changed(plan, tmp_path, **values))
    assert_one_error(outcome)
    assert text in outcome.err


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (("--program", "all-reduce inside rack"), "level 'rack'"),
        (("--program", "reduce everything"), "instruction 'reduce everything'"),
        (("--program", "all-reduce inside gpu"), "forms groups of one device"),
        (("--kind", "send"), "kind 'send'"),
        (("--reduce", "dp"), "reduce dp: has no size"),
        (("--reduce", "dp=0"), "size in 'dp=0'"),
        (("--reduce", "xp=1KiB"), "xp"),
        (("--placement", "[[4,2]]"), "matrix"),
    ],
)
def test_bad_programs(tmp_path: Path, more: tuple[str, ...], text: str) -> None:
    outcome = on_reference(tmp_path, *more)
    assert_one_error(outcome)
    assert text in outcome.err


def test_nothing_to_run() -> None:
    for arguments in (("run",), ("run", "no-such-file.json")):
        assert_one_error(cli(*arguments))


def test_a_program_of_no_steps_is_wrong(tmp_path: Path) -> None:
    outcome = on_reference(tmp_path, program="")
    assert outcome.code == 1
    assert "rank 0, element 0: wrong value" in outcome.out
