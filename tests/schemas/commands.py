"""The commands whose JSON is held against its schema, by the name of the schema."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from p2smt.report.outputs.catalogue import OUTPUTS
from tests.cli.tools import EVERY_KIND

SYMBOLIC = Path(__file__).parent.parent / "schedules" / "symbolic"
HIERARCHICAL = Path(__file__).parents[2] / "examples" / "hierarchical_all_reduce.yaml"
SCENE = "-t tiny.yaml --axes dp=2,tp=4 --placement '[[1,2],[2,2]]' --reduce"
MI300X = "-t mi300x:2 --axes dp=8,tp=2 --placement '[[2,4],[1,2]]' --reduce dp=16MiB"
ARRAY = "-t tiny.yaml --mesh dp=2,tp=4 --shape 64,64 --from 'S(dp),S(tp)'"
TRAINED = "--model small.yaml --global-batch 144 --seq 1024"
ON_HOSTS = "--model small.yaml --seq 1024 -t hosts.yaml --max-cp 1 --fix vpp=1 --zero 0"
MIXED_ON_HOSTS = (
    "--model granite-3.0-1b-a400m --seq 1024 -t hosts.yaml --max-cp 1 --fix vpp=1 --zero 0 "
    "--max-ep 2 --max-etp 1 --max-mbs 1 --dispatcher flex --overlap 0 --recompute none"
)
OF_8B = "--model llama-3-8b --seq 4096 -t hosts.yaml --fix cp=2 --fix mbs=1 --fix zero=1"
OWN = "--measured 'tp=2,pp=2: 12ms, 100MB' --what-if node*2 --what-if hosts=7 --what-if batch=288"
ERRORS = """
errors:
  - {level: node, operation: all-reduce, least: 1 B, error: 0.1, basis: left out}
"""
MIXTURE = "--model qwen3-30b-a3b -t dgx-h100:2 --global-batch 128 --seq 4096"
FOLDED = "tp=2,dp=4,pp=2,vpp=2,sp=1,zero=1,ep=4,etp=2,dispatcher=flex,overlap=1"
IN_8_BITS = "recompute=moe_act,graphs=partial,dtype=fp8,fp8_attention=1,fp8_params=0,dropout=1"
LESS_AGAIN = "dp=16,zero=1,recompute=full:2,dp_replicate=2"
BESIDE = "dp=64,pp=4,zero=1,ep=16,split=20/20/21/0m,shared_overlap=1,offload=0"
AHEAD = "--model deepseek-v3 -t dgx-h100:32 --global-batch 4096 --seq 4096"
ASSUMED = "--imbalance 1.3 --optimizer-bytes 8"
OFFLOADED = "dp=16,zero=1,offload=0.5"
TWO_STEPS = "--program 'reduce inside root; broadcast inside root'"

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "solve": (
        "-t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB --what-if node*2 --what-if node=1",
        f"-t tiny.yaml {shlex.join(EVERY_KIND)}",
        "-t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB --compare '[0,4,1,5,2,6,3,7]' --sensitivity",
        "-t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB --reduce tp=1GiB --within 1000%",
        "-t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB --nominal --algorithm ring --explain",
        "-t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB --objective max --pipeline auto --solver z3",
        "-t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB --require 'dp within node' --fix dp=node:2",
        "-t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB --time-limit 0.0001",
        "-t mi300x:2 -a dp=8,tp=2 --reduce dp=16MiB --fix dp=node:2",
        "-t tiny.yaml -a dp=8 --reduce dp=1GiB --split",
        "-t racks.yaml --hosts n[1-4] -a dp=2,pp=2,tp=2 --reduce dp=1GiB --send pp=1MiB",
        "-t unstated.yaml --hosts n[1-5] -a dp=5,tp=2 --reduce dp=1GiB",
        "-t racks.yaml --hosts n[1-4] -a dp=2,pp=2,tp=2 --reduce dp=1GiB --within 5% --explain",
        "-t tiny.yaml --use gpu=2 -a dp=2,tp=2 --reduce dp=1GiB",
    ),
    "compare": (
        "-t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB --send tp=1MiB",
        "-t tiny.yaml -a dp=4,tp=2 --reduce dp=1GiB default '[0,4,1,5,2,6,3,7]' tp-dp",
        "-t racks.yaml --hosts n[1-4] -a dp=2,pp=2,tp=2 --reduce dp=1GiB --send pp=1MiB",
        "-t unstated.yaml -a dp=2,pp=2,tp=2 --reduce dp=1GiB --send pp=1MiB --hosts n[1-4]",
    ),
    "compare-answers": ("plan.json slow_plan.json", "swap.json slow_swap.json"),
    "convert": ("ring.xml made.yaml", "plan.json made.xml --force"),
    "export": (
        "plan.json --to csv",
        "plan.json --to hostlist -o made.txt",
        "swap.json --to jax-shard-map",
    ),
    "error": ("-t nowhere", "-t tiny.yaml --axes dp=3 --reduce dp=1X", "--no-such-option"),
    "order": ("plan.json --hosts a,b,c", "hosted.json --hosts n[1-4] --to hostlist"),
    "synthesize": (
        "--fabric ring:4 --collective all-reduce --steps 2 --rounds 2 --chunks 2",
        "--fabric ring:4 --collective broadcast --steps 2 --rounds 2 --chunks 2 --svg made.svg",
        "--fabric ring:4 --collective all-gather --steps 1 --rounds 2 --chunks 1",
        "--fabric ring:4 --collective all-gather --steps 2 --rounds 3 --chunks 2 --time-limit 0",
        "--fabric mesh:60 --collective broadcast --steps 1 --rounds 1 --chunks 1 --time-limit 0",
    ),
    "synthesize-pareto": (
        "--fabric ring:4 --collective all-reduce --max-steps 3",
        "--fabric ring:4 --collective all-gather --time-limit 0",
        "--fabric mesh:60 --collective broadcast --time-limit 0",
    ),
    "synthesize-sizes": (
        "-t dgx1-v100:1 --fabric dgx1 --collective all-gather --size 1KiB..1MiB*32 --max-steps 2",
        "-t dgx1-v100:1 --fabric dgx1 --collective broadcast --size 1KiB --library none",
        "-t dgx1-v100:1 --fabric dgx1 --collective all-gather --size 1KiB --time-limit 0",
        "-t dgx-a100:13 --fabric mesh:104 --collective broadcast --size 1KiB --time-limit 0",
    ),
    "synthesize-throughput": (
        "--fabric ring:4 --collective all-gather",
        "--fabric mi250 --collective all-reduce --pieces 1 -o made.xml --certificate made.json",
        "-t tiny.yaml --collective broadcast",
        "--fabric ring:4 --collective all-gather --without 'link 0-1'",
        "--fabric ring:4 --collective reduce --time-limit 0",
        "--fabric mesh:60 --collective broadcast --time-limit 0",
    ),
    "redistribute": (
        f"{ARRAY} --to 'R,S(dp,tp)' --compare dtensor",
        f"{ARRAY} --to 'R,S(dp,tp)' --backward",
        f"{ARRAY} --to 'R,S(dp,tp)' --memory 2KiB",
        f"{ARRAY} --to 'S(dp),S(tp)'",
        "-t inverted.yaml --mesh a=2,b=4 --shape 16 --from 'S(a,b)' --to 'S(b)'",
        "-t tiny.yaml --mesh dp=2,tp=4 --shape 2,3 --from 'S(tp),R' --to 'R,S(tp)' --uneven nested",
    ),
    "transfer": (
        "-t tiny.yaml --from rows.json --to columns.json",
        "-t tiny.yaml --from rows.json --to columns.json --time-limit 0",
        "-t tiny.yaml --from rows.json --to columns.json --compare alpa",
        "-t tiny.yaml --from rows.json --to rows.json",
    ),
    "estimate": (
        f"{TRAINED} -t measured.yaml --strategy tp=2,zero=1 {OWN}",
        f"{TRAINED} -t gpus.yaml --strategy tp=2,pp=2,dp=2,zero=1",
        f"{TRAINED} -t gpus.yaml --strategy tp=4,pp=2,split=1/3 --efficiency fsdp-h100",
        f"{TRAINED} -t six.yaml --strategy pp=4,dp=9 --memory 1MB",
        f"{TRAINED} -t hosts.yaml --strategy dp=4 --hosts n[1-3]",
        f"{MIXTURE} --strategy {FOLDED},{IN_8_BITS}",
        f"{MIXTURE} --strategy {LESS_AGAIN}",
        f"{MIXTURE} --strategy {OFFLOADED}",
        f"{AHEAD} --strategy {BESIDE} {ASSUMED}",
    ),
    "plan-training": (
        f"{TRAINED} -t measured.yaml --fix zero=1 --fix vpp=1 {OWN}",
        f"{TRAINED} -t gpus.yaml",
        f"{TRAINED} -t gpus.yaml --fix tp=4 --launcher torchtitan --prices programs",
        "--model llama-3-8b -t dgx-h100:1 --global-batch 64 --seq 8192 --fix tp=1 --fix pp=1",
        f"{TRAINED} -t gpus.yaml --memory 1MB",
        f"{TRAINED} -t gpus.yaml --efficiency megatron-bridge-h100 --fix tp=4",
        f"{TRAINED} -t gpus.yaml --time-limit 0.0001",
        f"{TRAINED} -t gpus.yaml --fix vpp=1 --compare tp=4,pp=2",
        f"{TRAINED} -t gpus.yaml --fix tp=4 --memory 1MB --compare tp=4,mbs=7,dropout=1",
        f"{MIXTURE} --fix pp=1 --fix ep=8 --fix etp=1 --fix tp=1 --fix mbs=1 --dispatcher flex "
        "--recompute none --overlap 1 --compare dp=16,ep=16,zero=1,dispatcher=flex,overlap=1",
        f"{TRAINED} -t gpus.yaml --fix tp=4 --compare tp=4,zero=1,dp=2,dp_replicate=2",
        f"{MIXTURE} --fix pp=1 --fix ep=8 --fix etp=2 --fix tp=1 --dispatcher flex --overlap 1 "
        "--dtype fp8 --recompute moe_act --graphs partial --fp8-attention 1 --within 50% "
        f"--dropout 1 {ASSUMED}",
        f"{MIXTURE} --fix pp=1 --fix ep=4 --fix etp=2 --fix tp=4 --dispatcher flex --overlap 1 "
        "--dtype fp8 --recompute moe_act --graphs partial --fp8-attention 1 --memory 1GB "
        f"--dropout 1 {ASSUMED}",
    ),
    "plan-hosts": (
        f"{ON_HOSTS} --global-batch 9..16 --hosts n[1-3] --what-if hosts=2",
        f"{ON_HOSTS} --global-batch 7..9 --hosts n[1-3] --efficiency megatron-bridge-h100",
        f"{MIXED_ON_HOSTS} --global-batch 30..34 --hosts n[1-3]",
        f"{ON_HOSTS} --global-batch 8 --hosts n[1-4] --memory 1MB",
        f"{ON_HOSTS} --global-batch 9..16 --hosts n[1-3] --compare tp=2 "
        "--measured tp=2,batch=12:1s --force",
        f"{OF_8B} --global-batch 24 --hosts n[1-4] --compare dp=4,cp=2,zero=1 --fix pp=1",
        f"{ON_HOSTS} --global-batch 8 --hosts n[1-4] --time-limit 0",
    ),
    "placements": ("--levels 4,16 --axes 4,16", "--levels 4,16 --axes 4,16 --limit 1"),
    "programs": (
        "--factors 2,2 --length 2",
        "--factors 4,2 --kind all-gather --top 2",
        f"{SCENE} tp --limit 3",
        f"{SCENE} tp=1GiB --top 2",
        f"{SCENE} tp --all-gather tp --length 2",
        f"{SCENE} tp=1MiB --all-gather tp=1MiB --send dp=1MiB --top 1",
        f"{MI300X} --top 1",
        f"{MI300X} --reduce tp=1MiB --top 1",
    ),
    "cost": (
        f"{SCENE} tp=1GiB*2",
        f"{SCENE} tp=1MiB --pipeline auto {TWO_STEPS}",
        f"{SCENE} tp=1MiB {TWO_STEPS} --program single",
        f"{SCENE} tp=1MiB --all-to-all dp=1MiB",
        f"{SCENE} tp --sizes 1MiB,1GiB",
        f"{SCENE} tp {TWO_STEPS} --program single --sizes 1MiB,1GiB",
        f"{SCENE} tp --send dp --sizes 1MiB,1GiB",
    ),
    "cost-symbolic": (
        f"{SCENE} tp=1MiB {TWO_STEPS} --program single --nominal --algorithm ring --symbolic",
        f"{SCENE} tp --all-to-all dp --nominal --algorithm ring --symbolic",
        "-t azure-ndv4 --axes dp=16 --placement [[2,8]] --reduce dp --symbolic",
        f"{SCENE} tp --nominal --algorithm tree --program single --symbolic",
    ),
    "crossings": (
        "--factors 4,8 --latency-ratio 4 --ports 8,1",
        "--factors 2,3 --bandwidth-ratio 2 --cost-per-call 1/2 --kind all-gather",
        "--factors 2,3 --time-limit 0.0001",
    ),
    "crossings-payload": (
        f"{SCENE} tp --nominal --algorithm ring",
        "-t azure-ndv4 --axes dp=16 --reduce dp --length 1",
        "-t azure-ndv4 --axes dp=16 --reduce dp --time-limit 0.0001",
    ),
    "crossings-placement": (
        "-t tiny.yaml --axes dp=2,tp=4 --reduce dp --reduce tp=1MiB*3",
        "-t tiny.yaml --axes dp=2,tp=4 --reduce dp --reduce tp --time-limit 0.0001",
    ),
    "crossings-sufficient": (
        "--factors 2,3 --sufficient",
        "--factors 2,3 --sufficient -o made.json",
        "--factors 2,3 --sufficient --time-limit 0.0001",
    ),
    "verify-sizes": ("sizes.json --fabric dgx1", "wrong_sizes.json", "sizes.json"),
    "verify-certificate": ("rounds.json --fabric ring:5", "wrong_rounds.json", "rounds.json"),
    "verify-forest": ("forest.json", "forest.json --fabric ring:5", "wrong_forest.json"),
    "verify-sufficient": ("set.json", "wrong_set.json", "set.json --prove"),
    "cost-plan": ("plan.json", "wrong_plan.json", "unstated_plan.json"),
    "verify-plan": (
        "plan.json",
        "wrong_plan.json",
        "wrong_times.json",
        "plan.json --prove",
        "slow_plan.json --prove",
        "unstated_plan.json --prove",
    ),
    "verify-journal": ("list.jsonl", "best.jsonl --all", "cut.jsonl", "wrong.jsonl", "died.jsonl"),
    "cost-schedules": (
        "ring.xml -t dgx-a100:1 --sizes 1KiB..1MiB*32",
        "ring.xml -t dgx-a100:1 --sizes 1KiB --library none",
    ),
    "cost-redistribution": ("swap.json", "wrong_swap.json"),
    "verify-tuner": (
        "tuner.conf",
        "tuner.conf --comms 1x8 --as ncclx-tuner",
        "tuner.conf --as rccl-tuner --comms 2x8",
        "bad.conf",
    ),
    "verify-redistribution": (
        "swap.json",
        "wrong_swap.json",
        "swap.json --prove",
        "slow_swap.json --prove",
    ),
    "verify-transfer": ("sent.json", "wrong_sent.json", "unsent.json"),
    "verify-schedule": (
        "ring.xml",
        "pairs.yaml",
        "plan_of_mscclpp.json",
        "ring.yaml",
        "wrong.xml --fix",
        "alike.xml --fix",
        "racy.yaml",
        "ring.xml -t tiny.yaml --cost 1MiB --fifo-depth 2",
        "ring.xml -t unstated.yaml --cost 1MiB",
        f"{SYMBOLIC / 'ring_all_reduce.yaml'} --set n=4",
        f"{HIERARCHICAL} --set m=2 --set g=4",
        f"{HIERARCHICAL} --set m=2 --set g=8 --fabric dgx-h100:2",
    ),
    "verify-family": (
        f"{SYMBOLIC / 'ring_all_reduce.yaml'} --upto 4",
        "wrong_family.yaml --upto 4",
        "--program 'all-reduce inside root' --levels 2,2",
        "--program 'all-reduce inside root' --levels 2,2 --upto 4",
    ),
    "run-plan": (
        "plan.json --backend reference --payload 64KiB",
        f"{SCENE} tp=1MiB --backend reference --repeat 0",
    ),
    "run-schedule": (
        "ring.xml --backend reference --payload 64KiB",
        "wrong.xml --backend reference --payload 64KiB --unverified",
    ),
    "run-redistribution": (
        "swap.json --backend reference",
        "wrong_swap.json --backend reference",
        "pair.json --repeat 1",
    ),
    "run-transfer": (
        "sent.json --backend reference",
        "unsent.json --backend reference --unverified",
        "sent.json --repeat 1",
    ),
    "calibrate": (
        "--from-nccl-tests inside.txt across.json",
        "--from-nccl-tests --topology derived.yaml wrong.txt",
        "--from-nccl-tests --topology dgx-h100:2 one.txt two.txt",
    ),
    "calibrate-runs": ("--runs group.csv", "--runs runs.csv"),
    "topology-list": ("",),
    "topology-show": ("dgx-a100:4", "tiny.yaml"),
    "topology-check": ("tiny.yaml",),
    "topology-fabric": ("dgx1:2", "ring:5"),
    "topology-import": (
        "twice.conf --node dgx-h100 --uplink leaf=400GB/s",
        "deep.conf --node dgx1-v100 --oversubscription leaf=2",
    ),
    "classics": ("",),
    "models": ("", "deepseek-v3"),
    "classics-name": ("ring-all-reduce --ranks 3", "ring-all-reduce --ranks 3 -o made.xml"),
    "schema": ("",),
}
"""The commands of each schema, without their names and --json."""

WORDS = {
    "cost-plan": ("cost",),
    "compare-answers": ("compare",),
    "cost-symbolic": ("cost",),
    "crossings-payload": ("crossings",),
    "crossings-placement": ("crossings",),
    "crossings-sufficient": ("crossings",),
    "cost-redistribution": ("cost",),
    "cost-schedules": ("cost",),
    "classics-name": ("classics",),
    "calibrate-runs": ("calibrate",),
    "plan-training": ("plan",),
    "error": ("solve",),
    "plan-hosts": ("plan",),
    "synthesize-pareto": ("synthesize", "--pareto"),
    "synthesize-sizes": ("synthesize",),
    "synthesize-throughput": ("synthesize", "--objective", "throughput"),
    **{name: (name.partition("-")[0],) for name in OUTPUTS if name[:4] in ("veri", "run-")},
    **{name: tuple(name.split("-")) for name in OUTPUTS if name.startswith("topology-")},
}
"""The words of the command, where they are not the schema's name."""
