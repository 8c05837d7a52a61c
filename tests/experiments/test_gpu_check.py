"""experiments/gpu_check: its cases, what becomes of them, and the packed folder on its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from experiments.gpu_check.bundle import MOST_BYTES, README, pack
from experiments.gpu_check.bundle import main as bundle_main
from experiments.gpu_check.case_sets import FILE, CaseSet, read_sets, text_of
from experiments.gpu_check.checking import FAILED, NOT_RUN, VERIFIED, Checker, Clock, Row, StepRow
from experiments.gpu_check.gpu_check import main, options_on
from experiments.gpu_check.make_cases import LARGE_BYTES, case_sets
from experiments.gpu_check.one_rank import TYPES, collectives
from experiments.gpu_check.table import data, markdown
from experiments.gpu_check.work_data import data_of, value_of
from p2smt.collectives.names import Collective, Form, RequestKind
from p2smt.errors import ExecutionError
from p2smt.programs.program import parse_program
from p2smt.runtime.arrays.block_values import block_of
from p2smt.runtime.arrays.rank_steps import ArrayJob
from p2smt.runtime.job import Job
from p2smt.runtime.payload import RankReport, RunOptions
from p2smt.runtime.programs.reference_backend import run_reference
from p2smt.runtime.schedules.schedule_job import ScheduleJob
from p2smt.runtime.work import Work

REFERENCE = RunOptions(backend="reference")
SETS = read_sets()
JOBS = [one for one in SETS if isinstance(one.work, Job)]
PROGRAMS = next(one for one in SETS if one.name == "programs on 2 x 2")
WRONG = 5


def checker(run: object = None, left_s: float = 1e6) -> Checker:
    return Checker(run or on_reference, REFERENCE, Clock(left_s))  # type: ignore[arg-type]


def on_reference(work: Work, options: RunOptions) -> list[RankReport]:
    assert isinstance(work, Job)
    return run_reference(work, options)


def test_the_file_is_what_its_maker_makes() -> None:
    assert FILE.read_bytes() == text_of(case_sets()).encode()


@pytest.mark.parametrize("one", SETS, ids=lambda one: one.name)
def test_work_is_read_as_it_was(one: CaseSet) -> None:
    again = value_of(json.loads(json.dumps(data_of(one.work))))
    assert again == one.work
    assert data_of(again) == data_of(one.work)


def test_no_other_class_is_made() -> None:
    with pytest.raises(KeyError):
        value_of({"is": "Popen", "args": "true"})


def test_the_cases_touch_everything() -> None:
    requests = [request for one in JOBS for request in one.work.requests]  # type: ignore[union-attr]
    operations = {step.operation for request in requests for step in request.steps}
    assert operations >= {*Collective, RequestKind.ALL_TO_ALL, RequestKind.SEND}
    assert {request.kind for request in requests} == set(RequestKind)
    assert any(request.chunks > 1 for request in requests)
    assert {1, 2, 3} <= {len(request.steps) for request in requests}
    named = [step.name for r in requests if r.kind.has_programs for step in r.steps]
    forms = {i.form for name in named for i in parse_program(name).instructions}
    assert forms == set(Form)
    assert max(request.payload_bytes for request in requests) == LARGE_BYTES
    planned = next(one.work for one in JOBS if one.name.startswith("plan"))
    assert isinstance(planned, Job)
    assert all(s.predicted_s for request in planned.requests for s in request.steps)
    assert len({len(step.groups) for step in planned.requests[0].steps}) == 1
    assert any(isinstance(one.work, ScheduleJob) and one.predicted_s for one in SETS)


def test_some_redistributions_are_uneven_and_some_shard_is_empty() -> None:
    jobs = [one.work for one in SETS if isinstance(one.work, ArrayJob)]
    assert {job.frame.nested for job in jobs} == {False, True}
    assert {len(job.frame.orders) for job in jobs} == {1, 2}
    sizes = [
        min(block_of(job.frame, state, device).shape)
        for job in jobs
        for state in (job.start, job.end)
        for device in range(job.ranks)
    ]
    assert min(sizes) == 0


@pytest.mark.parametrize("one", [one for one in JOBS if not one.large], ids=lambda one: one.name)
def test_every_case_is_right(one: CaseSet) -> None:
    rows = checker().rows(one)
    assert [row.case for row in rows] == list(one.cases)
    assert {row.state for row in rows} == {VERIFIED}
    assert all("every element on every rank" in row.said for row in rows)


def breaks(at: int, text: str) -> Checker:
    """A start that has the request of a number breaks, and says this of it."""
    assert isinstance(PROGRAMS.work, Job)
    name = PROGRAMS.work.requests[at].name

    def run(work: Work, options: RunOptions) -> list[RankReport]:
        assert isinstance(work, Job)
        names = [request.name for request in work.requests]
        if name in names:
            raise ExecutionError(text.format(names.index(name) + 1))
        return on_reference(work, options)

    return checker(run)


@pytest.mark.parametrize("at", [0, 1, WRONG, 10])
@pytest.mark.parametrize(
    "text",
    [
        "rank 3: was killed\nby SIGSEGV",
        "no result within 9 s (ranks 0, 1: request {} (x), program)",
    ],
)
def test_a_case_that_breaks_its_start_is_found(at: int, text: str) -> None:
    rows = breaks(at, text).rows(PROGRAMS)
    assert [row.case for row in rows] == list(PROGRAMS.cases)
    others = NOT_RUN if at == 0 else VERIFIED  # where the first does not run, nothing does
    assert [row.state for row in rows] == [FAILED if n == at else others for n in range(11)]
    assert "\n" not in rows[at].said


def test_a_hanging_case_is_tried_once_more_alone() -> None:
    starts: list[Any] = []
    found = breaks(WRONG, "no result within 9 s (rank 0: request {} (x), program)")
    run = found.run
    found.run = lambda work, options: starts.append(work) or run(work, options)  # type: ignore[func-returns-value]
    found.rows(PROGRAMS)
    assert [len(work.requests) for work in starts] == [1, 10, 4, 1, 5]


def test_a_case_that_only_breaks_in_company_is_told() -> None:
    def run(work: Work, options: RunOptions) -> list[RankReport]:
        assert isinstance(work, Job)
        if len(work.requests) > 5:
            raise ExecutionError("no result within 9 s (rank 0: request 5 (x), check)")
        return on_reference(work, options)

    rows = checker(run).rows(PROGRAMS)
    assert {row.state for row in rows} == {VERIFIED}
    assert [n for n, row in enumerate(rows) if "in one start with others: no" in row.said] == [
        WRONG
    ]


def test_nothing_more_is_tried_where_nothing_runs() -> None:
    starts: list[Any] = []

    def run(work: Work, _: RunOptions) -> list[RankReport]:
        starts.append(work)
        raise ExecutionError("Duplicate GPU detected")

    found = checker(run)
    rows = [row for one in JOBS if one.work.ranks == 4 for row in found.rows(one)]
    assert len(starts) == 1
    assert Counter(row.state for row in rows) == {FAILED: 1, NOT_RUN: len(rows) - 1}
    assert {row.said for row in rows[1:]} == {"reference did not run: Duplicate GPU detected"}


def test_nothing_is_started_when_the_time_is_over() -> None:
    rows = checker(left_s=1.0).rows(PROGRAMS)
    assert {(row.state, row.said) for row in rows} == {(NOT_RUN, "the time is over")}


def test_a_start_gets_no_more_time_than_there_is() -> None:
    limits = []

    def run(work: Work, options: RunOptions) -> list[RankReport]:
        limits.append(options.time_limit_s)
        return on_reference(work, options)

    checker(run, 30.0).rows(PROGRAMS)
    assert limits
    assert all(limit <= 30 for limit in limits)


def test_a_wrong_result_is_a_row() -> None:
    assert isinstance(PROGRAMS.work, Job)
    first, second, *others = PROGRAMS.work.requests
    twice = replace(second, steps=(*second.steps, *second.steps))
    rows = checker().rows(replace(PROGRAMS, work=Job(4, (first, twice, *others))))
    assert [row.case for row in rows if row.state == FAILED] == [second.name]
    assert "wrong value" in rows[1].said


@pytest.mark.parametrize(
    ("ranks", "gpus", "each"), [(1, 1, 1), (2, 1, 2), (4, 1, 4), (4, 2, 2), (4, 3, 2), (4, 8, 1)]
)
def test_ranks_share_gpus_only_where_they_must(ranks: int, gpus: int, each: int) -> None:
    assert options_on("nccl", "cuda", ranks, gpus).ranks_per_gpu == each


def row(**changes: object) -> Row:
    one = Row("nccl", "cuda", 4, 4, "float32", "plan", "a | b", VERIFIED, "every element")
    return replace(one, **changes)  # type: ignore[arg-type]


def test_the_page_claims_of_nccl_what_ran_over_it() -> None:
    refused = "NCCL did not run: Duplicate GPU"
    rows = [
        row(ranks=1, ranks_per_gpu=1, case="all-reduce"),
        *(row(state=NOT_RUN, said=refused, case=name) for name in ("a", "b", "c")),
        row(backend="gloo", measured_s=2.0, predicted_s=0.5, steps=(StepRow("x|y", 1.0, None),)),
    ]
    text = markdown(data(rows, [{"nccl": "2.28.9", "gpu": "G"}], Clock(9.0)))
    assert "* nccl on cuda: nothing ran on several ranks; 1 cases verified on one." in text
    assert "* gloo on cuda: 1 of 1 cases verified, on up to 4 ranks, up to 4 on one GPU." in text
    assert f"| not run | nccl | cuda | 4 | float32 | plan: a and 2 more | {refused} |" in text
    assert "| gloo | cuda | 4 | plan: a \\| b | all | 2 s | 500 ms |" in text
    assert "| gloo | cuda | 4 | plan: a \\| b | x\\|y | 1 s |  |" in text
    assert "predict nothing of a cluster" in text


@pytest.mark.parametrize(
    ("nccl", "how"), [("2.28.9", "NCCL_HOSTID"), ("2.30.1", "NCCL_MULTI_RANK_GPU_ENABLE=1")]
)
def test_the_page_says_how_ranks_shared_a_gpu(nccl: str, how: str) -> None:
    assert how in markdown(data([row()], [{"nccl": nccl}], Clock(9.0)))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    alarms: list[int] = []
    assert main(["--out", str(tmp_path)], alarms.append) == 5
    assert 500 < alarms[0] < 540
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "finds no CUDA GPU" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--budget", "--start"])
@pytest.mark.parametrize("seconds", ["nan", "inf", "1e300", "14.9", "0", "-20"])
def test_a_time_in_which_nothing_runs_is_refused(
    option: str, seconds: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    alarms: list[int] = []
    out = tmp_path / "out"
    given = ["--device", "cpu", f"{option}={seconds}", "--out", str(out)]
    assert main(given, alarms.append) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n"), alarms, out.exists()) == ("", 1, [], False)
    assert f"error: {option} {float(seconds):g}: must be from 15 s" in said.err


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed") / "bundle"
    pack(folder)
    return folder


@pytest.fixture
def bundle(packed: Path, tmp_path: Path) -> Path:
    """One of its own."""
    return Path(shutil.copytree(packed, tmp_path / "bundle"))


def test_the_bundle_is_small_and_has_neither_search_nor_solvers(bundle: Path) -> None:
    names = {str(p.relative_to(bundle)) for p in bundle.rglob("*") if p.is_file()}
    tops = {name.split("/")[1] for name in names if name.startswith("p2smt/")}
    assert not tops & {"search", "solvers", "encodings", "cli", "report", "interop", "training"}
    assert "experiments/gpu_check/make_cases.py" not in names
    assert (bundle / "README.md").read_text() == README
    assert "experiments/gpu_check/cases.json" in names
    assert sum((bundle / name).stat().st_size for name in names) < MOST_BYTES


def test_a_bundle_is_packed_anew(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.gpu_check.bundle.files", lambda: [FILE])
    assert pack(bundle) == FILE.stat().st_size + len(README.encode())
    assert sorted(p.name for p in bundle.rglob("*") if p.is_file()) == ["README.md", "cases.json"]
    monkeypatch.setattr("experiments.gpu_check.bundle.MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="at most 1000 may be packed"):
        pack(bundle)


def test_no_other_folder_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").touch()
    assert bundle_main([str(tmp_path)]) == 2
    assert "is there already and is no bundle" in capsys.readouterr().err
    assert (tmp_path / "mine").exists()


def test_a_checkout_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "experiments" / "gpu_check").mkdir(parents=True)
    (tmp_path / "experiments" / "gpu_check" / "cases.json").touch()
    (tmp_path / "README.md").write_text("# p2smt\n")
    assert bundle_main([str(tmp_path)]) == 2
    assert (tmp_path / "experiments" / "gpu_check" / "cases.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "0 arguments: one is expected: the folder to write"),
        (["a", "b"], "2 arguments: one is expected"),
        (["/dev/null/a"], "/dev/null/a"),
    ],
)
def test_a_bundle_without_one_folder_is_told(
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("experiments.gpu_check.bundle.files", lambda: [FILE])
    assert bundle_main(arguments) == 2
    err = capsys.readouterr().err
    assert (err.startswith("bundle: error: "), err.count("\n")) == (True, 1)
    assert said in err


GUARD = '''
import os, sys
from importlib.machinery import PathFinder

BUNDLE = os.environ["BUNDLE"]
OF_TORCH = {"torch", "torchgen", "functorch", "numpy", "typing_extensions", "sympy", "mpmath"}
OF_TORCH |= {"networkx", "jinja2", "markupsafe", "fsspec", "filelock", "setuptools", "triton"}

class Guard:
    """Finds the standard library, numpy, torch with its needs; the product in the bundle alone."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in ("p2smt", "experiments"):
            return PathFinder.find_spec(name, [BUNDLE] if path is None else path)
        if top in sys.stdlib_module_names or top in OF_TORCH or top.startswith("_sysconfigdata"):
            return self.inner.find_spec(name, path, target)
        return None

sys.meta_path[:] = map(Guard, sys.meta_path)
'''


def alone(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A module of the bundle, with nothing else to import in any process that it starts."""
    guard = folder.parent / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(GUARD)
    told = {"PYTHONPATH": str(guard), "BUNDLE": str(folder), "OUT": str(folder.parent / "out")}
    command = [sys.executable, "-m", *arguments]
    environment = {**os.environ, **told}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800
    )


def test_the_guard_blocks(bundle: Path) -> None:
    (bundle / "experiments" / "gpu_check" / "other.py").write_text("import pydantic\n")
    done = alone(bundle, "experiments.gpu_check.other")
    assert "No module named 'pydantic'" in done.stderr


@pytest.mark.exhaustive
@pytest.mark.cluster
@pytest.mark.slow
def test_the_bundle_runs_on_its_own(bundle: Path) -> None:
    """One set of each kind, small, over Gloo on CPUs."""
    wanted = ("programs on 2 ranks", "the plan's all-reduce as MSCCL XML, 64 KiB")
    chosen = [one for one in SETS if one.name in wanted or one.name.startswith("f32[9] ")]
    assert len(chosen) == 3
    (bundle / "experiments" / "gpu_check" / "cases.json").write_text(text_of(chosen))
    limits = ("--budget", "1500", "--start", "400")
    done = alone(bundle, "experiments.gpu_check.gpu_check", "--device", "cpu", *limits)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((bundle.parent / "out" / "results.json").read_text())
    assert (bundle.parent / "out" / "results.md").read_text() == done.stdout
    cases = len(collectives()) * len(TYPES) + sum(len(one.cases) for one in chosen)
    assert (found["verified"], found["failed"], found["not_run"]) == (cases, 0, 0)
    assert {(case["backend"], case["device"]) for case in found["cases"]} == {("gloo", "cpu")}


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_gpus(tmp_path: Path) -> None:
    assert main(["--backend", "gloo", "--out", str(tmp_path)]) == 0
