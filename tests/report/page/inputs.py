"""Files of every kind that a page is made of, made by the commands themselves."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from tests.cli.tools import H100, RACKS, SMALL, TINY, cli

PLAN = "plan --model small.yaml --global-batch 16 --seq 1024 -t tiny.yaml"
COMMANDS = {
    "training.json": f"{PLAN} -o training.json",
    "other.json": f"{PLAN} --fix tp=4 -o other.json",
    "hosted.json": "solve -t racks.yaml --hosts n[1-4] -a dp=2,tp=2 --reduce dp=1GiB "
    "-o hosted.json",
    "placed.json": "solve -t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB -o placed.json",
    "moved.json": "redistribute -t tiny.yaml -m dp=2,tp=4 --shape 64,64 --from S(dp),S(tp) "
    "--to S(tp),S(dp) -o moved.json",
    "ring.yaml": "classics ring-all-reduce --ranks 9 -o ring.yaml",
    "puts.json": "classics one-shot-all-reduce --ranks 4 -o puts.json",
    "forest.json": "synthesize --fabric dgx-a100:2 --collective all-reduce --objective throughput "
    "-o forest.json",
    "times.json": "synthesize -t dgx1-v100:1 --fabric dgx1 --collective all-gather "
    "--size 1KiB..1GiB --certificate times.json",
    "swap.xml": "classics pairwise-all-to-all --ranks 4 -o swap.xml",
}
PRINTED = {
    "on_hosts.json": f"{PLAN.replace('tiny', 'named')} --hosts all --json",
    "printed.json": f"{PLAN} --compare tp=8 --json",
    "solved.json": "solve -t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB --json",
    "sizes.json": "synthesize -t dgx1-v100:1 --fabric dgx1 --collective all-gather "
    "--size 1KiB..1GiB --json",
    "listed.json": "placements -a dp=2,tp=4 --levels 2,4 --json",
}
KINDS = (*COMMANDS, *PRINTED)


def write_inputs(folder: Path) -> None:
    """All of them, in the folder that is the current one."""
    (folder / "tiny.yaml").write_text(TINY + H100)
    (folder / "racks.yaml").write_text(RACKS)
    (folder / "named.yaml").write_text(TINY + H100 + 'hosts: "n[1-2]"\n')
    (folder / "small.yaml").write_text(SMALL)
    for name, command in (*COMMANDS.items(), *PRINTED.items()):
        done = cli(*shlex.split(command))
        assert done.code == 0, (name, done.err)
        if name in PRINTED:
            (folder / name).write_text(done.out)


def changed(value: Any, of: Any) -> Any:
    """Plain data with every text replaced by what a function makes of it and its key."""

    def walk(one: Any, key: str) -> Any:
        if isinstance(one, dict):
            return {name: walk(inner, name) for name, inner in one.items()}
        if isinstance(one, list):
            return [walk(inner, key) for inner in one]
        return of(key, one) if isinstance(one, str) else one

    return walk(value, "")


def read(path: Path) -> Any:
    """The data of a file."""
    return json.loads(path.read_text())
