"""Two examples of each command: its help shows them, and a test runs all of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from p2smt.cli.guide.commands import PATHS

_TRAIN, _VERIFY, _RESHARD, _ = (" ".join(words) for words in PATHS.values())
_PLACED = "-t dgx-a100:4 --axes dp=8,tp=4 --placement '[[4,2],[1,4]]'"

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "plan": (
            _TRAIN,
            "p2smt plan -m llama-3-8b -t dgx-h100:4 --global-batch 256 --seq 8192 --max-cp 1 "
            "--compare tp=8,pp=2,sp=1",
        ),
        "estimate": (
            "p2smt estimate -m llama-3-70b -t dgx-h100:8 --strategy tp=4,pp=4,sp=1,zero=1 "
            "--global-batch 128 --seq 8192",
            "p2smt estimate train.sh -t dgx-h100:4",
        ),
        "models": ("p2smt models", "p2smt models llama-3-70b"),
        "solve": (
            "p2smt solve -t dgx-a100:4 --axes dp=8,tp=4 --reduce dp=1GiB --reduce 'tp=64MiB*128'",
            "p2smt solve -t dgx-h100:4 --axes dp=4,pp=2,tp=4 --reduce dp=1GiB --send 'pp=64MiB*8' "
            "--require 'tp within node' -o plan.json",
        ),
        "placements": (
            "p2smt placements -t dgx-h100:4 --axes dp=8,tp=4",
            "p2smt placements --levels 4,8 --axes 8,4 --json",
        ),
        "programs": (
            "p2smt programs --factors 2,8",
            f"p2smt programs {_PLACED} --reduce dp=1GiB --top 3",
        ),
        "compare": (
            "p2smt compare -t dgx-h100:4 --axes dp=4,pp=2,tp=4 --reduce dp=1GiB "
            "--send 'pp=64MiB*8'",
            "p2smt compare own.json other.json",
        ),
        "cost": (
            f"p2smt cost {_PLACED} --reduce dp=1GiB",
            "p2smt cost -t dgx-h100:4 --axes dp=32 --placement '[[4,8]]' --reduce dp "
            "--sizes '4KiB..1GiB*64'",
        ),
        "crossings": (
            "p2smt crossings --factors 4,8 --bandwidth-ratio 1..16",
            "p2smt crossings -t dgx-a100 --axes dp=16 --reduce dp --length 3",
        ),
        "run": (
            "p2smt run plan.json --payload 64KiB --backend reference",
            "p2smt run schedule.xml --payload 16MiB --backend gloo",
        ),
        "synthesize": (
            "p2smt synthesize --fabric ring:4 --collective all-gather --steps 2 --rounds 3 "
            "--chunks 2 -o schedule.xml",
            "p2smt synthesize -t dgx-a100:1 --collective all-gather --size 1KiB..1GiB -o sized.xml",
        ),
        "redistribute": (
            _RESHARD,
            "p2smt redistribute -t dgx-h100:1 --mesh tp=8 --shape 8192,8192 --from 'S(tp),R' "
            "--to 'R,R' -o plan.json",
        ),
        "transfer": (
            "p2smt transfer -t dgx-h100:16 -m llama-3-70b --from megatron:tp=8,pp=4,dp=2 "
            "--to vllm:tp=8,engines=8 --to-device-ids 64-127 -o plan.json",
            "p2smt transfer -t dgx-h100:4 --from before.json --to after.json --code transfer.py",
        ),
        "verify": ("p2smt verify plan.json --prove", _VERIFY),
        "convert": (
            "p2smt convert schedule.xml schedule.json",
            "p2smt convert plan.json dp.json",
        ),
        "export": (
            "p2smt export plan.json --to torchrun",
            "p2smt export --to nccl-tuner -t dgx-h100:4 --comms 1x8,4x8 -o nccl_tuner.conf",
        ),
        "order": (
            "p2smt order plan.json -t cluster.yaml --hosts 'n[01-32]'",
            "p2smt order plan.json -t cluster.yaml --hosts job.txt --to hostlist",
        ),
        "classics": (
            "p2smt classics",
            "p2smt classics ring-all-reduce --ranks 4 -o ring.xml",
        ),
        "calibrate": (
            "p2smt calibrate --from-nccl-tests one.txt two.txt -t dgx-h100:4 -o cluster.yaml",
            "p2smt calibrate --runs runs.csv",
        ),
        "topology list": ("p2smt topology list", "p2smt topology list --json"),
        "topology show": ("p2smt topology show dgx-h100:8", "p2smt topology show cluster.yaml"),
        "topology check": (
            "p2smt topology check cluster.yaml",
            "p2smt topology check gb200-nvl72:2 --json",
        ),
        "topology fabric": ("p2smt topology fabric dgx1", "p2smt topology fabric torus:4x4"),
        "topology import": (
            "p2smt topology import topology.conf --node dgx-h100 --uplink leaf=400GB/s -o c.yaml",
            "p2smt topology import nodes.json --node dgx-h100 --labels topograph",
        ),
        "topology detect": (
            "p2smt topology detect",
            "p2smt topology detect --nic 8x400Gb/s -o cluster.yaml",
        ),
        "topology export": (
            "p2smt topology export dgx-h100:4 --to astra-sim",
            "p2smt topology export cluster.yaml --to astra-sim -o network.yml",
        ),
        "docs": ("p2smt docs", "p2smt docs planning"),
        "report": (
            "p2smt report plan.json -o report.html",
            "p2smt report today.json better.json -o gain.html --anonymous",
        ),
        "show": ("p2smt show plan.json", "p2smt show ring.xml"),
        "schema": ("p2smt schema", "p2smt schema plan"),
    }
)
"""Commands of a shell by the command of ours whose help shows them."""
