"""A device whose times are of the order of its small models' calls."""

from __future__ import annotations

from p2smt.cluster.link import Device

SMALL_DEVICE = Device("small", (("bf16", 2e9), ("fp16", 1e9)), 1e9, 10**9)
