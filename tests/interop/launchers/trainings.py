"""Plans of trainings as files: a small strategy of Llama 3 8B on hosts with names or without."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from p2smt.api.workload import estimate
from p2smt.cluster.file import parse_topology
from p2smt.training.strategy import Batch
from p2smt.training.training_plan import training_plan, training_plan_data

DEVICE = """\
name: test
library: nccl-2.30
algorithms: [ring]
cpu: intel
device:
  name: h100
  peak: {bf16: 989 TFLOP/s, fp16: 989 TFLOP/s, fp8: 1979 TFLOP/s}
  memory_bandwidth: 3.35 TB/s
  memory: 81559 MiB
levels:
"""
NODES = """\
  - {{name: node, size: {}, link: {{kind: switch, ports: 2, bandwidth: 25 GB/s, latency: 5 us,
     fabric: infiniband}}}}
  - {{name: gpu, size: 2, link: {{kind: switch, bandwidth: 450 GB/s, latency: 1 us,
     fabric: nvlink4}}}}
"""
LEAF = """\
  - {{name: leaf, size: {}, link: {{kind: switch, bandwidth: {} GB/s, latency: 5 us,
     fabric: infiniband}}}}
"""


def nodes(count: int) -> str:
    """Nodes of two GPUs without names."""
    return DEVICE + NODES.format(count)


def leaves(hosts: tuple[str, ...], rate: float) -> str:
    """Nodes of two GPUs under leaves, whose uplinks carry so many GB/s."""
    size = max(len(names.split(",")) for names in hosts)
    switches = [f"  - {{name: l{i}, hosts: '{names}'}}\n" for i, names in enumerate(hosts)]
    return (
        DEVICE
        + LEAF.format(len(hosts), rate)
        + NODES.format(size)
        + "switches:\n"
        + "".join(switches)
    )


TWO_LEAVES = leaves(("n1,n3", "n2,n4"), 12)


@cache
def _text(strategy: str, cluster: str, efficiency: str) -> str:
    run = estimate(
        "llama-3-8b", parse_topology(cluster, "test"), strategy, Batch(24, 4096), efficiency
    )
    return json.dumps(training_plan_data(training_plan(run, search=False)))


def training_data(
    strategy: str, cluster: str = TWO_LEAVES, efficiency: str = "megatron-h100"
) -> dict[str, Any]:
    """The data of a plan file, with a single collective for each request."""
    found: dict[str, Any] = json.loads(_text(strategy, cluster, efficiency))
    return found
