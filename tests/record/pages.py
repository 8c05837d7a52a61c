"""The commands that the pages show, and which of them are in no scene."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from tests.imports import ROOT
from tests.record.scenes import Scene

PAGES = ("README.md", "docs/*.md", "docs/*/*.md")
ASKED = re.compile(r'^ASKED="(.*)"$')
"""The tutorial's options that several commands share."""

PUBLISHED = "reads tables that were published elsewhere"
MEASURED = "its answer is what was measured on this machine"
LIMITED = "a time limit ends it"
OWN = "the test of its page runs it"
UNRECORDED = {
    "calibrate --from-nccl-tests a100-1n8g-allreduce-mleng.txt --topology dgx-b200:1 "
    "--details": PUBLISHED,
    "calibrate --from-nccl-tests aws-p5-1n8g-batch-allreduce.txt "
    "issue309-h100-2n16g-allreduce.txt --topology dgx-h100:2 --library nccl-2.20 "
    "--details": PUBLISHED,
    "calibrate --from-nccl-tests gb300-oci-4g-allreduce.txt gb300-oci-8g-allreduce.txt "
    "--topology gb300-nvl72:1 --note 'rack 3, drivers of May' -o rack.yaml --details": PUBLISHED,
    "calibrate --from-nccl-tests issue309-h100-4n32g-allreduce.txt "
    "--topology gcp-a3-mega:4 --details": PUBLISHED,
    "calibrate --topology experiments/executor/laptop.yaml "
    "--backend gloo -o measured.yaml --details": MEASURED,
    "solve --topology measured.yaml --axes dp=8 --reduce dp=8MiB -o plan.json": MEASURED,
    "run plan.json --backend gloo": MEASURED,
    "run plan.json --backend gloo --ranks 8": MEASURED,
    "topology detect": "reads this machine",
    "solve -t dgx-a100:4 --axes dp=8,tp=4 --reduce dp=1G --time-limit 5m": OWN,
    "solve -t dgx-a100:2 --axes dp=2,tp=8 --reduce dp=5m": OWN,
    "solve --axes dp=2,tp=8": OWN,
    "synthesize --fabric cube:2 --collective all-reduce --steps 2 --rounds 3 --chunks 3 "
    "--symmetry none --budget 10s --journal search.jsonl": LIMITED,
    "verify search.jsonl --details": LIMITED,
    "synthesize -t dgx1-v100:1 --fabric dgx1 --collective all-gather --size 1KiB..1GiB "
    "-o gather.xml --certificate sizes.json": OWN,
    "verify sizes.json --fabric dgx1 --details": OWN,
    "cost gather-2-3-2.xml gather-3-7-6.xml -t dgx1-v100:1 --sizes '1KiB..1GiB*32'": OWN,
    "plan --model llama-3-8b --topology dgx-h100:4 --global-batch 256 --seq 8192 "
    "--what-if 'node*2' --what-if hosts=3 --what-if hosts=8 --what-if memory=141GB "
    "--what-if batch=512": OWN,
    "estimate --model llama-3-70b --topology dgx-h100:8 --strategy tp=8,pp=2,sp=1,zero=1 "
    "--global-batch 128 --seq 8192 --measured 'tp=4,pp=4,sp=1,zero=1: 16.4s, 81GB'": OWN,
    "estimate --model llama-3-70b --topology dgx-h100:8 --strategy "
    "tp=4,pp=4,cp=2,dp=2,vpp=5,mbs=1,sp=1,zero=1 --global-batch 128 --seq 8192 -o own.json "
    "--details": OWN,
    "estimate --model llama-3-70b --topology dgx-h100:8 --strategy "
    "tp=2,dp=16,cp=2,sp=1,zero=3 --global-batch 128 --seq 8192 -o other.json": OWN,
    "compare own.json other.json": OWN,
    "estimate --model llama-3-8b -t cluster.yaml --hosts 'n[01-14]' --global-batch 504 "
    "--seq 8192 --strategy dp=14,cp=8,mbs=12,zero=3": OWN,
    "plan --model llama-3-8b -t cluster.yaml --hosts 'n[01-14]' --global-batch 500..540 "
    "--seq 8192 -o plan.json": OWN,
    "plan --model qwen3-30b-a3b -t cluster.yaml --hosts 'n[01-06]' --global-batch 480..512 "
    "--seq 4096 --dispatcher flex --overlap 0 --max-etp 1 --max-mbs 4 --recompute none": OWN,
    "plan --model llama-3-8b -t cluster.yaml --hosts 'n[01-14]' --global-batch 500..540 "
    "--seq 8192 --compare tp=4,dp=28,sp=1,zero=1": OWN,
    "plan --model llama-3-8b --topology dgx-h100:4 --global-batch 256 --seq 8192 "
    "--compare tp=8,pp=2,sp=1": OWN,
    "topology import topology.conf --node dgx-h100 --oversubscription leaf=8 -o gpus.yaml": OWN,
    "estimate launch.sh -t gpus.yaml --hosts job.txt --set SLURM_NNODES=12": OWN,
    "plan -t gpus.yaml --hosts job.txt --compare launch.sh --set SLURM_NNODES=12 "
    "--launcher megatron": OWN,
    "plan -t gpus.yaml --hosts job.txt --compare launch.sh --set SLURM_NNODES=12 "
    "--launcher megatron --max-cp 2 -o better.json": OWN,
    "verify better.json --details": OWN,
    "order better.json -t gpus.yaml --hosts 'n[08-19]' --to hostlist": OWN,
    "export better.json --to sbatch -o better.sh": OWN,
    "plan --model llama-3-8b -t cluster.yaml --hosts 'n[01-14]' --global-batch 500..540 "
    "--seq 8192 --pick fastest --what-if hosts=12 --what-if 'leaf*2'": OWN,
    "plan -m llama-3-8b -t dgx-h100:4 --use gpu=2 --global-batch 24 --seq 4096 "
    "--launcher megatron --fix pp=2 --fix dp=4 --fix vpp=1 --fix zero=1 -o train.json": OWN,
    "export train.json --to sbatch -o train.sh": OWN,
    "export train.json --to sbatch --hosts 'n[1,3,2,4]' -o pinned.sh": OWN,
    "export train.json --to kubernetes --hosts 'n[1,3,2,4]' -o train.yaml": OWN,
    "order train.json -t gpus.yaml --hosts 'n[1-5]' --to hostlist": OWN,
    "order train.json -t gpus.yaml --hosts 'n[1-3]'": OWN,
    "plan -m llama-3-70b -t dgx-h100:8 --global-batch 128 --seq 8192 --zero 0,1 -o plan.json": OWN,
    "calibrate --from-osu examples/mpi/ring.txt=ring "
    "examples/mpi/halving-doubling.txt=halving-doubling -t examples/mpi/cluster.yaml "
    "--ranks 8": OWN,
    "calibrate --from-osu examples/mpi/ring.txt=ring "
    "examples/mpi/halving-doubling.txt=halving-doubling -t examples/mpi/cluster.yaml "
    "--ranks 8 -o measured.yaml": OWN,
    "export --to ompi-tuned -t measured.yaml --comms 4x2 "
    "--measured own=examples/mpi/openmpi/own.txt --measured ring=examples/mpi/openmpi/ring.txt "
    "-o rules.conf": OWN,
    "export --to ompi-han -t measured.yaml --comms 4x2 "
    "--measured own=examples/mpi/openmpi/own.txt --measured ring=examples/mpi/openmpi/ring.txt "
    "-o han.conf": OWN,
    "solve -t measured.yaml --axes dp=8 --reduce dp=8MiB -o plan.json": OWN,
    "verify rules.conf --comms 4x2": OWN,
    "verify examples/lost_dependency.xml --fix": OWN,
    "verify examples/hierarchical_all_reduce.yaml --set m=128 --set g=8 --details": OWN,
    "redistribute -t dgx-h100:2 --mesh dp=2,tp=8 --shape 128000,8192 --dtype bf16 "
    "--from 'S(dp,tp),R' --to 'R,S(dp,tp)' --compare dtensor": OWN,
    "redistribute -t dgx-h100:2 --mesh dp=2,tp=8 --shape 128000,8192 --dtype bf16 "
    "--from 'S(dp,tp),R' --to 'R,S(dp,tp)' -o plan.json": OWN,
    "transfer -t dgx-h100:16 --model llama-3-70b --from megatron:tp=8,pp=4,dp=2 "
    "--to vllm:tp=8,engines=8 --to-device-ids 64-127": OWN,
    "cost --topology dgx-h100:1 --axes dp=8 --placement '[[1,8]]' --reduce dp=64MiB": OWN,
    "transfer -t dgx-h100:16 --from megatron:tp=8,pp=4,dp=2 --to vllm:tp=4,engines=16 "
    "--to-device-ids 64-127 --model llama-3-70b --nominal": OWN,
    "transfer -t dgx-h100:16 --from megatron:tp=8,pp=4,dp=2 --to vllm:tp=4,engines=16 "
    "--to-device-ids 64-127 --model llama-3-70b --nominal "
    "--compare megatron,awex,alpa,m2n,gather": OWN,
    "transfer -t dgx-h100:4 --from fsdp:dp=32 --to fsdp:dp=24 --model llama-3-70b --nominal "
    "--relay": OWN,
    "transfer -t dgx-h100:16 --from megatron:tp=8,pp=4,dp=2 --to vllm:tp=8,engines=8 "
    "--to-device-ids 64-127 --model llama-3-70b --nominal --memory 1GiB "
    "--compare megatron,awex,alpa,m2n": OWN,
    "transfer -t dgx-h100:3 --from trainer.json --to engines.json --to-device-ids 16-23 --nominal "
    "-o plan.json": OWN,
    "transfer -t dgx-h100:2 --from megatron:tp=2,pp=2,dp=2 --to vllm:tp=2,engines=2 "
    "--to-device-ids 8-11 --model config.json --memory 1MiB --nominal -o small.json "
    "--code transfer.py --svg transfer.svg": OWN,
    "run small.json --backend reference": OWN,
    "models qwen3-32b": OWN,
    "estimate -m model.yaml -t dgx-h100:4 --strategy tp=8,pp=2,dp=2,sp=1,zero=1 "
    "--global-batch 64 --seq 4096": OWN,
    "export plan.json --to megatron-options": OWN,
    "redistribute -t dgx-h100:1 --mesh tp=8 --to-mesh dp=2,tp=4 --shape 8192,8192 --dtype bf16 "
    "--from 'S(tp),R' --to 'S(tp),R'": OWN,
    "export plan.json --to jax-shard-map -o reshard_jax.py": OWN,
    "classics ring-all-reduce --ranks 8 -o ring.xml": OWN,
    "verify ring.xml --cost 64MiB --topology dgx-h100:1": OWN,
    "verify -t dgx-a100:2 --program 'reduce-scatter inside node; all-reduce inside root; "
    "all-gather inside node'": OWN,
    "verify -t dgx-a100:2 --program 'reduce-scatter inside node; all-reduce parallel node in root; "
    "all-gather inside node'": OWN,
    "synthesize --fabric ring:4 --collective all-gather --pareto": OWN,
    "synthesize --fabric dgx-a100:2 --collective all-gather --objective throughput "
    "-o forest.json": OWN,
    "verify forest.json --fabric dgx-a100:2": OWN,
    "synthesize --fabric dgx1 --collective all-gather --objective throughput --pieces 24 "
    "-o algo.xml": OWN,
    "verify algo.xml": OWN,
    "export --to nccl-tuner -t gcp-a3-mega:4 --comms 4x8 -o nccl_tuner.conf": OWN,
    "export --to nccl-tuner -t gcp-a3-mega:4 --comms 4x8 --measured own=own.txt "
    "--measured ring/ll128=ring-ll128.txt -o nccl_tuner.conf": OWN,
    "verify nccl_tuner.conf --details": OWN,
}
"""Commands without a scene, and why."""


def shown_commands() -> list[str]:
    """Every command line of p2smt behind a ``$``, without what the shell does with it."""
    found = list[str]()
    for page in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        asked = ""
        for line in re.findall(r"^ *\$ (.*)$", page.read_text(encoding="utf-8"), re.M):
            if setting := ASKED.match(line):
                asked = setting[1]
            elif line.startswith("p2smt "):
                found.append(_plain(line.replace("$ASKED", asked)))
    return found


def _plain(line: str) -> str:
    """The words of a command, without pipes and files that its output goes to."""
    lexer = shlex.shlex(line.removeprefix("p2smt "), posix=True, punctuation_chars="|<>&;")
    lexer.whitespace_split = True
    words = list[str]()
    for word in lexer:
        if set(word) <= set("|<>&;"):
            return shlex.join(words[:-1] if words[-1:] == ["2"] else words)
        words.append(word)
    return shlex.join(words)


def unrecorded(scenes: Iterable[Scene]) -> set[str]:
    """The commands of the pages that no scene has."""
    recorded = {shlex.join(shlex.split(c)) for scene in scenes for c in scene.commands}
    return {command for command in shown_commands() if command not in recorded}
