"""The systems of the study: presets with a number of nodes, and two files of its own."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.placement_448x.store import HERE
from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError


@dataclass(frozen=True, slots=True)
class System:
    """A cluster of the study.

    ``spec`` is a preset with its number of nodes, or a file of the study's folder; ``part`` is
    ``paper`` (one of the two systems of the paper), ``preset`` (another one) or ``deep`` (three
    or four levels with racks); ``label`` is how tables name it.  ``nominal`` names the library
    that runs on it at the nominal rates of its links, where these count and not the effective ones.
    """

    spec: str
    part: str
    label: str
    nominal: str = ""

    @property
    def name(self) -> str:
        """The name of its results, without a suffix."""
        return self.spec.replace(":", "-").removesuffix(".yaml")

    def topology(self) -> Topology:
        """The cluster itself."""
        path = HERE / self.spec
        found = load_topology(str(path) if path.suffix == ".yaml" else self.spec)
        return found.nominal().under(self.nominal) if self.nominal else found


PAPER_LIBRARY = "nccl-2.12"
"""The library of the paper's time."""

SYSTEMS = (
    System("paper-gcp-a100:4", "paper", "A100, 4 nodes, effective"),
    System("paper-gcp-a100:2", "paper", "A100, 2 nodes, effective"),
    System("gcp-a2-highgpu-16g:4", "paper", "A100, 4 nodes, nominal", PAPER_LIBRARY),
    System("gcp-a2-highgpu-16g:2", "paper", "A100, 2 nodes, nominal", PAPER_LIBRARY),
    System("paper-gcp-v100:4", "paper", "V100, 4 nodes, effective"),
    System("paper-gcp-v100:2", "paper", "V100, 2 nodes, effective"),
    # The same node at nominal rates: 8 V100 on NVLink rings of 150 GB/s, one 100 Gb/s card.
    System("aws-p3dn:4", "paper", "V100, 4 nodes, nominal", PAPER_LIBRARY),
    System("aws-p3dn:2", "paper", "V100, 2 nodes, nominal", PAPER_LIBRARY),
    System("dgx2:4", "preset", "DGX-2, 4 nodes"),
    System("azure-ndv4:4", "preset", "Azure NDv4, 4 nodes"),
    System("aws-p4d:4", "preset", "AWS p4d, 4 nodes"),
    System("dgx-h100:4", "preset", "DGX H100, 4 nodes"),
    System("gcp-a3-high:4", "preset", "GCP A3 High, 4 nodes"),
    System("mi300x:4", "preset", "MI300X, 4 nodes"),
    System("gb200-nvl72:2", "preset", "GB200 NVL72, 2 racks"),
    System("tpu-v5p:2", "preset", "TPU v5p, 2 slices"),
    System("dgx1-v100:4", "deep", "DGX-1, 4 nodes x 2 halves"),
    System("racks-2x4x8.yaml", "deep", "2 racks x 4 nodes x 8"),
    System("sockets-2x2x2x4.yaml", "deep", "2 racks x 2 nodes x 2 sockets x 4"),
)


def system(name: str) -> System:
    """The system whose results have this name.

    Raises:
        InputError: there is none.
    """
    found = next((one for one in SYSTEMS if one.name == name), None)
    if found is None:
        known = ", ".join(one.name for one in SYSTEMS)
        raise InputError(f"system {name}", "is not one of the study", f"give one of {known}")
    return found
