"""Runs a small set of programs on this machine's GPUs and checks every result.

    python -m experiments.gpu_check.gpu_check --out DIRECTORY

Over NCCL, and with CUDA tensors over Gloo, on 1, 2 and 4 ranks, in every data type; where there
are fewer GPUs than ranks, several ranks share one.  Writes ``results.json`` and ``results.md``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.runtime.job import Job
from p2smt.runtime.options import RunOptions
from p2smt.runtime.payload import DataType
from p2smt.runtime.ranks.launch import launch
from p2smt.runtime.summary import RunResult, summarize

if TYPE_CHECKING:
    from experiments.gpu_check.checking import Row

HERE = Path(__file__).resolve().parent
OK, WRONG, BAD_INPUT, NO_GPU = 0, 1, 2, 5
RANKS = (1, 2, 4)
TYPES = [data_type.value for data_type in DataType]


def main(arguments: Sequence[str]) -> int:
    """Check, write, and say how it went: 0 if every case verified."""
    given = _parser().parse_args(arguments)
    if given.device == "cuda" and (reason := why_no_gpu()):
        print(f"gpu_check: error: {reason}", file=sys.stderr)
        return NO_GPU
    try:
        chosen = [
            RunOptions(backend, given.device, DataType(name), 0, 1, time_limit_s=given.time_limit)
            for backend in given.backend
            or (("nccl", "gloo") if given.device == "cuda" else ("gloo",))
            for name in given.dtype or TYPES
        ]
        return check(chosen, given.ranks or RANKS, given.out)
    except (InputError, OSError) as error:
        print(f"gpu_check: error: {error}", file=sys.stderr)
        return BAD_INPUT


def why_no_gpu() -> str:
    """Why nothing can run on a GPU here; empty if something can."""
    remedy = "or try the script itself with --backend gloo --device cpu"
    try:
        import torch
    except ImportError:
        return f"torch is not installed; install a CUDA build of it, {remedy}"
    if not torch.cuda.is_available():
        return f"this torch ({torch.__version__}) finds no CUDA GPU; use a CUDA build, {remedy}"
    return ""


def check(chosen: Sequence[RunOptions], ranks: Sequence[int], out: Path) -> int:
    """Check all cases with these options and numbers of ranks; write what was found."""
    import torch

    from experiments.gpu_check.cases import cases
    from experiments.gpu_check.checking import Checker, options_on

    machines: list[dict[str, str]] = []

    def run(job: Job, options: RunOptions) -> RunResult:
        result = summarize(job, launch(job, options))
        machines.extend(result.machines)
        return result

    rows: list[Row] = []
    for options in chosen:
        gpus = torch.cuda.device_count() if options.device == "cuda" else 0
        for count in ranks:
            found = Checker(run, options_on(options, count, gpus)).rows(cases(count))
            right = sum(row.reason is None for row in found)
            where = f"{options.backend}, {options.data_type.value}, {count} rank(s)"
            print(f"{where}: {right} of {len(found)} verified", file=sys.stderr)
            rows += found
            write(rows, machines, out)  # so that an interrupted run leaves what it found
    print((out / "results.md").read_text(encoding="utf-8"), end="")
    return OK if all(row.reason is None for row in rows) else WRONG


def write(rows: Sequence[Row], machines: Sequence[dict[str, str]], out: Path) -> None:
    """Write both files."""
    from experiments.gpu_check.table import data, markdown

    written = data(rows, machines)
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    (out / "results.md").write_text(markdown(written), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpu_check", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--backend", action="append", choices=("nccl", "gloo"), help="may repeat; default: both")
    add("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: to try the script")
    add("--ranks", action="append", type=int, choices=RANKS, help="may repeat; default: all")
    add("--dtype", action="append", choices=TYPES, help="may repeat; default: all")
    add("--time-limit", type=float, default=180.0, metavar="S", help="of a launch (180)")
    add("--out", type=Path, default=HERE, metavar="DIR", help="for results.json and results.md")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
