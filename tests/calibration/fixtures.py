"""Made-up measurements: times of the cost model, and nccl-tests output that shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from p2smt.calibration.samples import Sample, predicted_s
from p2smt.cluster.file import parse_topology
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective
from p2smt.cost.algorithms import Operation
from p2smt.programs.program import Grouping

INSIDE, ALL = Grouping(1, 2), Grouping(0, 2)
SIZES = tuple(2**i for i in range(3, 33))
FACTOR = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "alltoall": 1}

TRUTH = parse_topology(
    """
name: truth
algorithms: [ring]
levels:
  - name: node
    size: 4
    link:
      kind: switch
      ports: 4
      protocols:
        - {name: large, latency: 30 us, bandwidth: 20 GB/s}
        - {name: small, latency: 6 us, bandwidth: 2 GB/s}
  - name: gpu
    size: 8
    link:
      kind: switch
      protocols:
        - {name: large, latency: 4 us, bandwidth: 200 GB/s}
        - {name: small, latency: 1 us, bandwidth: 20 GB/s}
""",
    "truth",
)
START = parse_topology(
    """
name: start
algorithms: [ring, tree]
levels:
  - {name: node, size: 4, link: {kind: switch, ports: 4, bandwidth: 25 GB/s, latency: 1 us}}
  - {name: gpu, size: 8, link: {kind: switch, bandwidth: 225 GB/s, latency: 1 us}}
""",
    "start",
)


def made_samples(
    truth: Topology,
    grouping: Grouping,
    operation: Operation = Collective.ALL_REDUCE,
    outermost: int | None = None,
    sizes: Sequence[int] = SIZES,
) -> list[Sample]:
    """Samples with the model's own times."""
    plain = [Sample(operation, grouping, size, 1.0, outermost=outermost) for size in sizes]
    return [
        Sample(operation, grouping, s.payload_bytes, predicted_s(truth, s), outermost=outermost)
        for s in plain
    ]


def row(size: int, seconds: float, ranks: int, test: str = "all_reduce", wrong: str = "0") -> str:
    """Time, algbw, busbw and #wrong as nccl-tests prints them."""
    alg = size / seconds / 1e9
    bus = alg * FACTOR.get(test, 1) * ((ranks - 1) / ranks if test in FACTOR else 1)
    return f"{seconds * 1e6:8.2f} {alg:7.2f} {bus:7.2f} {wrong:>6}"


HEADER = """\
#                                                out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   \
algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  \
(GB/s)  (GB/s)
"""


def printed(samples: Sequence[Sample], ranks: int, hosts: int = 0, test: str = "all_reduce") -> str:
    """What nccl-tests prints for samples; with a device list if there are ``hosts``."""
    title = f"# Collective test starting: {test}_perf\n# nThread 1 nGpus 1 minBytes 8\n#\n"
    devices = "".join(
        f"#  Rank {r:2} Group  0 Pid {99 + r:6} on   host-{r * hosts // ranks} device  0 "
        "[0000:1b:00] NVIDIA X\n"
        for r in range(ranks if hosts else 0)
    )
    shared = ranks if FACTOR.get(test) == 1 else 1
    rows = "".join(
        f"{s.payload_bytes:12} {s.payload_bytes // (4 * shared):12} float sum -1 "
        f"{row(s.payload_bytes, s.seconds, ranks, test)} "
        f"{row(s.payload_bytes, s.seconds, ranks, test)}\n"
        for s in samples
    )
    end = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.5\n#\n"
    return f"{title}# Using devices\n{devices}#\n{HEADER}{rows}{end}"


def report(samples: Sequence[Sample], ranks: int, hosts: int) -> dict[str, Any]:
    """The same as ``-J`` reports it: two ranks per process, so half as many devices."""

    def cell(sample: Sample) -> dict[str, Any]:
        alg = sample.payload_bytes / sample.seconds / 1e9
        bus = alg * 2 * (ranks - 1) / ranks
        numbers = {"time": sample.seconds * 1e6, "alg_bw": alg, "bus_bw": bus, "nwrong": 0.0}
        return {key: round(value, 6) for key, value in numbers.items()}

    rows = [
        {
            "size": s.payload_bytes,
            "count": s.payload_bytes // 4,
            "type": "float",
            "redop": "sum",
            "root": "    -1",
            "out_of_place": cell(s),
            "in_place": None,
            "actual_iterations": 20,
        }
        for s in samples
    ]
    devices = [
        {"rank": 2 * i, "group": 0, "hostname": f"h{i * hosts * 2 // ranks}", "device": 0}
        for i in range(ranks // 2)
    ]
    return {
        "version": 3,
        "args": ["./build/all_reduce_perf", "-J", "x.json"],
        "env": ["TOKEN=very-secret", "HOME=/nowhere"],
        "config": {"nthreads": 1, "ngpus": 2, "devices": devices},
        "results": rows,
    }


def as_json(data: object) -> str:
    """JSON text."""
    return json.dumps(data)
