"""Groups on systems whose NCCL logs are known."""

from __future__ import annotations

from p2smt.cost.library.channels import GroupShape


def a100(nodes: int, local: int = 8) -> GroupShape:
    """DGX A100: 12 NVLinks of 25 GB/s per GPU, 8 x 200 Gb/s."""
    rate = 25e9 * local
    return GroupShape(
        nodes * local, nodes, local, "nvlink3", "infiniband", 300e9, rate, cards=local
    )


def h100(nodes: int, local: int = 8, fabric: str = "infiniband") -> GroupShape:
    """DGX H100: 18 NVLinks of 25 GB/s per GPU, 8 x 400 Gb/s."""
    rate = 50e9 * local
    return GroupShape(nodes * local, nodes, local, "nvlink4", fabric, 450e9, rate, local, True)


def b200(nodes: int, local: int = 8) -> GroupShape:
    """DGX B200: 18 NVLinks of 50 GB/s per GPU, 8 x 400 Gb/s."""
    rate = 50e9 * local
    return GroupShape(
        nodes * local, nodes, local, "nvlink5", "infiniband", 900e9, rate, local, True
    )


def mi300x(nodes: int, local: int = 8) -> GroupShape:
    """8 MI300X in a full mesh of 64 GB/s, 8 x 400 Gb/s."""
    rate = 50e9 * local
    mesh = 64e9 * (local - 1)
    return GroupShape(nodes * local, nodes, local, "xgmi", "infiniband", mesh, rate, local)
