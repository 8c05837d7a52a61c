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

    ``nodes`` counts machines, not NVLink domains.  ``library`` is what ran, empty if the page does
    not say.  ``source`` replaces the text's own, where that is no address.
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


ONE_PROCESS = "one process drives all 8 GPUs"
OCI = "OCI GB300 guide in a public GitHub repository, nccl-tests of NCCL 2.28.7"
GKE = "a GKE A4 guide in a public GitHub repository, NCCL on 1 and 2 x a4-highgpu-8g"
CUT = "the page shows its largest rows only"
OCI_2 = "NCCL 2.28.7"
POC = "a public GitHub repository's summary of a test of two B200 nodes at Vultr"
FROM_4K = "rows from 4 KiB"

_IN_FILES = {
    ALL_REDUCE: "allreduce",
    ALL_GATHER: "allgather",
    REDUCE_SCATTER: "reducescatter",
    ALL_TO_ALL: "alltoall",
    SEND: "sendrecv",
}


def _one_of(
    collective: str, file: str, name: str, system: str, nodes: int, ranks: int, **said: str
) -> Known:
    """A table of a system that has several: ``file`` and ``name`` without the collective."""
    suffix = "" if collective == ALL_REDUCE else f"-{collective}"
    whole = f"{file}-{_IN_FILES[collective]}", f"{name}{suffix}"
    return Known(*whole, system, nodes, ranks, collective, **said)


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
)
