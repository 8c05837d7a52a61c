"""Every kind of file that a command reads: a small one, and the command lines that read it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2smt.cluster.library.file import packaged_text
from p2smt.fabric.fabric_file import load_fabric
from p2smt.synthesis.bounds import rate_bound
from p2smt.training.efficiencies import efficiency_files as efficiencies
from tests.calibration.fixtures import INSIDE, TRUTH, as_json, made_samples, printed
from tests.calibration.fixtures import report as json_report
from tests.cli.tools import H100, RACKS, SMALL, TINY, Outcome, cli
from tests.interop.arrays.peers import test_shardy_file as shardy
from tests.interop.clusters.nodes.test_astra_sim import TEXT as ASTRA_SIM
from tests.interop.clusters.nodes.texts import (
    CUBE,
    alike,
    cells_of,
    devices,
    matrix,
    rocm,
    switched,
)
from tests.interop.clusters.texts import EVERY
from tests.interop.mscclpp.plans import all_gather
from tests.interop.test_fabrics import EVEN, HUB
from tests.interop.test_model_config import GPT2
from tests.schedules.folded.files import HALVING
from tests.training.measured.csv_rows import text_of
from tests.transfer.files import COLUMNS, ROWS

SCENE = "-t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB"
HOSTED = "-t racks.yaml -a dp=2,pp=2,tp=2 --reduce dp=1GiB"
TRAINED = "-t gpus.yaml --global-batch 16 --seq 128"
SIZES = tuple(2**i for i in range(12, 20, 2))


@dataclass(frozen=True, slots=True)
class Reader:
    """A file, and the command that reads it, in which ``FILE`` stands for its name."""

    name: str
    command: str
    text: Callable[[Path], str]

    @property
    def is_json(self) -> bool:
        """Whether the file is JSON, or lines of it."""
        return self.name.endswith((".json", ".jsonl"))

    def run(self, folder: Path, text: str | None = None) -> Outcome:
        """Run the command on the file as it is, or on another text in its place."""
        name = f"given-{self.name}"
        (folder / name).write_text(self.text(folder) if text is None else text)
        with chdir(folder):
            return cli(*shlex.split(self.command.replace("FILE", name)))


def _saved(name: str) -> Callable[[Path], str]:
    """The text of a file that a command wrote into the folder."""
    return lambda folder: (folder / name).read_text()


def _plain(text: str) -> Callable[[Path], str]:
    return lambda _: text


def _data(value: Any) -> Callable[[Path], str]:
    return lambda _: json.dumps(value)


WIRES = """\
name: pair
ranks: 4
links:
  - {ranks: [0, 1], bandwidth: 10 GB/s}
  - {ranks: [1, 2], bandwidth: 10 GB/s}
  - {ranks: [2, 3], bandwidth: 10 GB/s}
"""
ARRAY = "--mesh x=4,y=2 --shape 16,8 --dtype f32"
SHARDY = f"redistribute -t two.yaml {ARRAY} --from 'S(x,y),R' --to 'S(x:(1)2),S(x:(2)2)'"
RUN = "--backend reference --payload 1KiB"

READERS: Mapping[str, Reader] = {
    one.name: one
    for one in (
        Reader("plan.json", "verify FILE", _saved("plan.json")),
        Reader("plan-run.json", f"run FILE {RUN}", _saved("plan.json")),
        Reader("plan-cost.json", "cost FILE", _saved("plan.json")),
        Reader("plan-export.json", "export FILE --to csv", _saved("plan.json")),
        Reader("plan-show.json", "show FILE", _saved("plan.json")),
        Reader("training-show.json", "show FILE", _saved("training.json")),
        Reader("swap-show.json", "show FILE", _saved("swap.json")),
        Reader("ring-show.xml", "report FILE -o page.html", _saved("ring.xml")),
        Reader("hosts-plan.json", "verify FILE", _saved("hosts.json")),
        Reader("training-plan.json", "verify FILE", _saved("training.json")),
        Reader("swap.json", "verify FILE", _saved("swap.json")),
        Reader("swap-run.json", "run FILE --backend reference", _saved("swap.json")),
        Reader("sent.json", "verify FILE", _saved("sent.json")),
        Reader("sent-run.json", "run FILE --backend reference", _saved("sent.json")),
        Reader("sent-show.json", "show FILE", _saved("sent.json")),
        Reader(
            "layout.json",
            "transfer -t tiny.yaml --from FILE --to layout.json",
            _saved("layout.json"),
        ),
        Reader("set.json", "verify FILE", _saved("set.json")),
        Reader("rounds.json", "verify FILE --fabric ring:5", _saved("rounds.json")),
        Reader("sizes.json", "verify FILE", _saved("sizes.json")),
        Reader("ring-cost.xml", "cost FILE -t three.yaml --sizes 1KiB", _saved("ring.xml")),
        Reader("list.jsonl", "verify FILE", _saved("list.jsonl")),
        Reader("best.jsonl", "verify FILE", _saved("best.jsonl")),
        Reader("trained.jsonl", "verify FILE --all", _saved("trained.jsonl")),
        Reader("made.jsonl", "verify FILE", _saved("made.jsonl")),
        Reader(
            "goes-on.jsonl",
            "placements --levels 2,4 --axes 2,4 --journal FILE",
            _saved("list.jsonl"),
        ),
        Reader("mscclpp.json", "verify FILE", _data(all_gather())),
        Reader("ring.xml", "verify FILE", _saved("ring.xml")),
        Reader("ring.yaml", "verify FILE", _saved("ring.yaml")),
        Reader("halving.yaml", "verify FILE --fabric mesh:4", _plain(HALVING)),
        Reader("order.json", f"compare {SCENE} FILE", _data([[0, 1, 2, 3], [4, 5, 6, 7]])),
        Reader("order.txt", f"compare {SCENE} FILE", _plain("0\n4\n1\n5\n2\n6\n3\n7\n")),
        Reader(
            "order.csv",
            f"compare {HOSTED} --hosts n[1-4] FILE",
            _plain(
                "rank,host,local_rank\n" + "".join(f"{r},n{r // 2 + 1},{r % 2}\n" for r in range(8))
            ),
        ),
        Reader("topology.yaml", f"solve {SCENE.replace('tiny.yaml', 'FILE')}", _plain(TINY)),
        Reader("racks.yaml", "topology check FILE", _plain(RACKS)),
        Reader("device.yaml", "topology show FILE", _plain(TINY + H100)),
        Reader(
            "library.yaml",
            f"solve {SCENE} --library FILE",
            _plain(packaged_text("gloo")),
        ),
        Reader("hosts.txt", f"compare {HOSTED} --hosts FILE", _plain("n1\nn2\nn3\nn4\n")),
        Reader("model.yaml", f"estimate --model FILE {TRAINED} --strategy tp=8", _plain(SMALL)),
        Reader("config.json", f"estimate --model FILE {TRAINED} --strategy tp=4,dp=2", _data(GPT2)),
        Reader(
            "efficiency.yaml",
            f"estimate --model small.yaml {TRAINED} --strategy tp=4,dp=2 --efficiency FILE",
            lambda _: (Path(efficiencies.__file__).parent / "megatron-h100.yaml").read_text(),
        ),
        Reader(
            "runs.csv",
            "calibrate --runs FILE",
            _plain(text_of({"kind": "moe"}, {"mbs": ""}, {"group": "k22-a"}, {"group": "ours"})),
        ),
        Reader("inside.txt", "calibrate --from-nccl-tests FILE", _saved("inside.txt")),
        Reader("inside.json", "calibrate --from-nccl-tests FILE", _saved("inside.json")),
        Reader("fabric.yaml", "topology fabric FILE", _plain(WIRES)),
        Reader("hub.json", "topology fabric FILE", _data(HUB)),
        Reader("smi.txt", "topology fabric FILE --link-bandwidth 25GB/s", _plain(EVEN)),
        Reader(
            "case.mlir",
            f"{SHARDY} --compare shardy --shardy-file FILE",
            _plain(shardy.FILE.read_text()),
        ),
        *(
            Reader(
                f"cluster-{name}",
                f"topology import FILE --node dgx-h100 --uplink {outer}=400GB/s",
                _plain(text),
            )
            for name, text in EVERY.items()
            for outer in ("block" if "block" in name else "leaf",)
        ),
        Reader("astra.yaml", "topology import FILE", _plain(ASTRA_SIM)),
        Reader("topo.txt", "topology import FILE", _plain(matrix(cells_of(CUBE)))),
        Reader("nccl.xml", "topology import FILE", _plain(switched())),
        Reader("rocm.txt", "topology import FILE --gpu mi300x", _plain(rocm(alike(8, "XGMI")))),
        Reader(
            "devices.txt", "topology import FILE --nic 8x400Gb/s", _plain(devices(["a", "b"], 8))
        ),
    )
}
"""By the name of the file."""


def write_files(folder: Path) -> None:
    """What the command lines name beside the file, and what the readers' texts are taken from."""
    for name, text in (
        ("three.yaml", TINY.replace("size: 2", "size: 1").replace("size: 4", "size: 3")),
        ("tiny.yaml", TINY),
        ("two.yaml", TINY),
        ("gpus.yaml", TINY + H100),
        ("racks.yaml", RACKS),
        ("small.yaml", SMALL),
        ("layout.json", json.dumps(ROWS)),
        ("other.json", json.dumps(COLUMNS)),
    ):
        (folder / name).write_text(text)
    samples = made_samples(TRUTH, INSIDE, sizes=SIZES)
    (folder / "inside.txt").write_text(printed(samples, 8, 1))
    (folder / "inside.json").write_text(as_json(json_report(samples, 8, 1)))
    rate_bound(load_fabric("ring:5"), "all-reduce", 2).certificate.save(folder / "rounds.json")
    with chdir(folder):
        for line in WRITERS:
            assert (done := cli(*shlex.split(line))).code == 0, done.err


WRITERS = (
    f"solve {SCENE} --send tp=1MiB -o plan.json",
    "solve -t racks.yaml --hosts n[1-4] -a dp=2,pp=2,tp=2 --reduce dp=1GiB -o hosts.json",
    f"plan --model small.yaml {TRAINED} --fix tp=4 -o training.json --journal trained.jsonl",
    f"redistribute -t tiny.yaml {ARRAY} --from 'S(x),S(y)' --to 'S(y),S(x)' -o swap.json",
    "transfer -t tiny.yaml --from layout.json --to other.json -o sent.json",
    "crossings --factors 2,3 --sufficient -o set.json",
    "placements --levels 2,4 --axes 2,4 --journal list.jsonl",
    f"solve {SCENE} --journal best.jsonl",
    "synthesize --fabric ring:3 --collective broadcast --steps 2 --rounds 2 --chunks 1 "
    "--symmetry none --journal made.jsonl",
    "synthesize -t dgx-a100:1 --collective all-gather --size 1KiB --certificate sizes.json",
    "classics ring-all-reduce --ranks 3 -o ring.xml",
    "classics ring-all-reduce --ranks 3 -o ring.yaml",
)
