"""What the texts of published tables do not say in one way: system, ranks, library version.

A folder of texts is read by :mod:`experiments.tables.convert`, which looks a file up here by its
name.  Every entry was read off the page that its text is from; versions are those the page names.
"""

from __future__ import annotations

from dataclasses import dataclass

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all-reduce", "all-gather", "reduce-scatter"
ALL_TO_ALL, SEND = "all-to-all", "send"


@dataclass(frozen=True, slots=True)
class Known:
    """One table: ``file`` is the name of its text without ``.txt``.

    ``nodes`` counts machines, not NVLink domains, which are ``racks`` where machines share one (0:
    the page does not say).  ``library`` is what ran, ``algorithm`` what it was told to take, empty
    if the page does not say.  ``source`` replaces the text's own, where that is no address.
    """

    file: str
    name: str
    system: str
    nodes: int
    ranks: int
    collective: str = ALL_REDUCE
    library: str = ""
    note: str = ""
    source: str = ""
    racks: int = 0
    algorithm: str = ""


ONE_PROCESS = "one process drives all 8 GPUs"
OCI = "OCI GB300 guide in a public GitHub repository, nccl-tests of NCCL 2.28.7"
GKE = "a GKE A4 guide in a public GitHub repository, NCCL on 1 and 2 x a4-highgpu-8g"
CUT = "the page shows its largest rows only"
OCI_2 = "NCCL 2.28.7"
POC = "a public GitHub repository's summary of a test of two B200 nodes at Vultr"
FROM_4K = "rows from 4 KiB"
ISSUE_1801 = "https://github.com/NVIDIA/nccl/issues/1801"
ISSUE_1368 = "https://github.com/NVIDIA/nccl/issues/1368"
ISSUE_1221 = "https://github.com/NVIDIA/nccl/issues/1221"
ONE_ROW = "one row, as the page says it: bus bandwidth"

_IN_FILES = {
    ALL_REDUCE: "allreduce",
    ALL_GATHER: "allgather",
    REDUCE_SCATTER: "reducescatter",
    ALL_TO_ALL: "alltoall",
    SEND: "sendrecv",
}


def _one_of(
    collective: str,
    file: str,
    name: str,
    system: str,
    nodes: int,
    ranks: int,
    racks: int = 0,
    **said: str,
) -> Known:
    """A table of a system that has several: ``file`` and ``name`` without the collective."""
    suffix = "" if collective == ALL_REDUCE else f"-{collective}"
    whole = f"{file}-{_IN_FILES[collective]}", f"{name}{suffix}"
    return Known(*whole, system, nodes, ranks, collective, racks=racks, **said)


TABLES = (
    Known("a100-1n8g-allreduce-mleng", "a100-node-1x8", "a100-node", 1, 8, note=ONE_PROCESS),
    Known("aws-p4de-2n16g-allreduce", "aws-p4de-2x8", "aws-p4de", 2, 16),
    Known("aws-p5-1n8g-batch-allreduce", "aws-p5-1x8", "aws-p5", 1, 8),
    Known("aws-p5-2n16g-allreduce", "aws-p5-2x8", "aws-p5", 2, 16),
    Known(
        "issue309-h100-2n16g-allreduce",
        "dell-xe9680-h100-8xNDR400-2x8",
        "dell-xe9680-h100-8xNDR400",
        2,
        16,
        library="NCCL 2.26.2",
    ),
    Known(
        "issue309-h100-4n32g-allreduce",
        "dell-xe9680-h100-8xNDR400-4x8",
        "dell-xe9680-h100-8xNDR400",
        4,
        32,
        library="NCCL 2.26.2",
    ),
    Known(
        "b200-gcp-a4-1n8g-allreduce",
        "gcp-a4-1x8",
        "gcp-a4",
        1,
        8,
        note=ONE_PROCESS,
        source=GKE,
    ),
    Known("b200-gcp-a4-2n16g-allreduce", "gcp-a4-2x8", "gcp-a4", 2, 16, source=GKE),
    Known(
        "gb200-coreweave-1rack-72g-allreduce",
        "gb200-nvl72-18x4",
        "gb200-nvl72",
        18,
        72,
        library="NCCL 2.26.2",
        source="https://github.com/coreweave/nccl-tests",
        note=CUT,
    ),
    *(
        _one_of(collective, *where, library=OCI_2, source=OCI, note=CUT)
        for collective in (ALL_REDUCE, ALL_TO_ALL)
        for where in (
            ("gb300-oci-4g", "gb300-1x4", "gb300-nvl72", 1, 4),
            ("gb300-oci-8g", "gb300-2x4", "gb300-nvl72", 2, 8),
        )
    ),
    Known(
        "gcp-a3high-2n16g-allgather-dstack",
        "gcp-a3-high-2x8-all-gather",
        "gcp-a3-high",
        2,
        16,
        ALL_GATHER,
        note="GPUDirect-TCPX",
        source="https://github.com/dstackai/dstack/blob/master/mkdocs/docs/examples/clusters/gcp.md",
    ),
    Known(
        "gcp-a3mega-2n16g-h100-allreduce",
        "gcp-a3-mega-2x8",
        "gcp-a3-mega",
        2,
        16,
        source="https://github.com/lessizzmore/create-a3mega-ztan-fork/blob/main/ztan-NCCL-test-result.markdown",
    ),
    Known(
        "mi300x-1n8g-allreduce",
        "mi300x-1x8",
        "mi300x",
        1,
        8,
        library="RCCL (rccl-tests develop:a7809b3)",
        source="https://github.com/hisohara/ai-scripts/blob/main/training/01_rccl-smoketest/README.md",
    ),
    Known(
        "v100-dgx2-16n256g-allreduce",
        "dgx2-16x16",
        "dgx2",
        16,
        256,
        library="NCCL 2.8.4",
        source="https://github.com/NVIDIA/nccl-tests/issues/78",
        note=CUT,
    ),
    Known(
        "b200-lambda-2n16g-allreduce",
        "b200-lambda-2x8",
        "b200-lambda",
        2,
        16,
        library="NCCL 2.26.2",
    ),
    *(
        _one_of(collective, *where, note=FROM_4K, source=POC)
        for where, collectives in (
            (
                ("b200-vultr-1n8g", "b200-vultr-1x8", "b200-vultr", 1, 8),
                (ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, SEND),
            ),
            (
                ("b200-vultr-2n16g", "b200-vultr-2x8", "b200-vultr", 2, 16),
                (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL),
            ),
        )
        for collective in collectives
    ),
    Known(
        "h100-gcp-a3mega-2n16g-allgather",
        "gcp-a3-mega-2x8-all-gather",
        "gcp-a3-mega",
        2,
        16,
        ALL_GATHER,
        note="GPUDirect-TCPXO",
    ),
    Known("h100-nebius-2n16g-allreduce", "h100-nebius-2x8", "h100-nebius", 2, 16),
    Known(
        "mi300x-aac10-2n16g-allreduce", "mi300x-2x8", "mi300x", 2, 16, library="RCCL of ROCm 6.3.4"
    ),
    Known(
        "mi355x-aac14-2n16g-allreduce",
        "mi355x-aac14-2x8",
        "mi355x",
        2,
        16,
        library="RCCL 2.26.6 of ROCm 7.0.1",
    ),
    Known(
        "mi355x-vultr-2n16g-alltoall",
        "mi355x-vultr-2x8-all-to-all",
        "mi355x",
        2,
        16,
        ALL_TO_ALL,
        library="RCCL 2.27.7 of ROCm 7.2.2",
        note="rows from 64 KiB",
        source="an MI355X multi-node test guide in a public GitHub repository",
    ),
    Known(
        "gb200-coreweave-20rack-1440g-allreduce",
        "gb200-nvl72-360x4",
        "gb200-nvl72",
        360,
        1440,
        library="NCCL 2.26.2",
        source="https://github.com/coreweave/nccl-tests",
        note=CUT,
        racks=20,
    ),
    Known(
        "gb200-oci-2rack-128g-allreduce",
        "gb200-oci-32x4",
        "gb200-oci",
        32,
        128,
        library="NCCL 2.29.2",
        source="https://github.com/oracle-quickstart/oci-hpc-oke",
        racks=2,
    ),
    *(
        _one_of(
            collective,
            "gb300-oci-128g",
            "gb300-32x4",
            "gb300-nvl72",
            32,
            128,
            library=OCI_2,
            source=OCI,
            note=CUT,
            racks=2,
        )
        for collective in (ALL_REDUCE, ALL_TO_ALL)
    ),
    *(
        Known(
            f"issue1801-gb200-3rack-{3 * gpus}g-{algorithm}",
            f"gb200-issue1801-3x{gpus}-{algorithm}",
            "gb200-issue1801",
            3 * gpus // 4,
            3 * gpus,
            note=ONE_ROW,
            source=ISSUE_1801,
            racks=3,
            algorithm=algorithm,
        )
        for gpus in (4, 8)
        for algorithm in ("ring", "tree")
    ),
    Known(
        "mi300x-cx7-2n16g-allreduce",
        "mi300x-cx7-2x8",
        "mi300x-cx7",
        2,
        16,
        note="three sizes",
        source="AMD's README of multi-node training containers, ConnectX-7",
    ),
    Known(
        "mi355x-oci-2n16g-allreduce",
        "mi355x-oci-2x8",
        "mi355x-oci",
        2,
        16,
        library="RCCL 2.26.6",
        note="two sizes",
        source="OCI MI355X guide in a public GitHub repository, Pollara 8 x 400 Gb/s",
    ),
    Known(
        "h100-gcp-a3mega-2n16g-allgather-gke",
        "gcp-a3-mega-gke-2x8-all-gather",
        "gcp-a3-mega-gke",
        2,
        16,
        ALL_GATHER,
        note="GPUDirect-TCPXO, noisy",
        source="notes on GKE with A3 Mega in a public GitHub repository",
    ),
    Known(
        "a100-azure-sriov-2n16g-allreduce",
        "azure-ndv4-sriov-2x8",
        "azure-ndv4-sriov",
        2,
        16,
        note="virtual functions of InfiniBand; every second size",
        source="test outputs of RDMA on Azure Kubernetes Service in a public GitHub repository",
    ),
    Known(
        "b200-gcp-a4-2n16g-allgather-gke-old",
        "gcp-a4-gke-2x8-all-gather",
        "gcp-a4-gke",
        2,
        16,
        ALL_GATHER,
        source="Cluster Toolkit's guide of gke-a4-high, an older image",
    ),
    Known(
        "a100-roce-2n16g-alltoall",
        "a100-roce-2x8-all-to-all",
        "a100-roce",
        2,
        16,
        ALL_TO_ALL,
        note=ONE_PROCESS,
        source="notes on nccl-tests in a public GitHub repository",
    ),
    *(
        Known(
            f"issue1368-h100-5n40g-{algorithm}",
            f"h100-issue1368-5x8-{algorithm}",
            "h100-issue1368",
            5,
            40,
            note="one row, as the page says it: time",
            source=ISSUE_1368,
            algorithm=algorithm,
        )
        for algorithm in ("ring", "tree")
    ),
    *(
        Known(
            f"issue1221-h100-{nodes}n{8 * nodes}g-{'nvls' if nvls else 'ring'}",
            f"h100-issue1221-{nodes}x8{'' if nvls else '-ring'}",
            "h100-issue1221",
            nodes,
            8 * nodes,
            note=ONE_ROW,
            source=ISSUE_1221,
            algorithm="" if nvls else "ring",
        )
        for nodes in (1, 2, 4)
        for nvls in (True, False)
    ),
)
