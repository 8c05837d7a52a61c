"""What NCCL's and RCCL's own sources say of a step, in seconds: what fitted factors multiply.

A factor moves all steps of a place together, so what no table shows moves with what one does, and
their order stays: LL no more than LL128, LL128 no more than Simple.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

US = 1e-6
Hops = Mapping[str, Mapping[str, float]]
_SENDS = {"simple-1": 0.6, "simple-4": 0.6, "simple-8": 0.6, "simple-16": 0.6}
_NCCL: Mapping[str, Hops] = {  # microseconds by family and protocol
    "inside": {
        "ring": {"ll": 0.6, "ll128": 1.9, "simple": 3.4},
        "tree": {"ll": 0.6, "ll128": 1.25, "simple": 4},
        "nvls": {"simple": 25},
        "pat": {"simple": 4},
        "p2p": {"ll": 0.6, "simple": 3.4, **_SENDS},
    },
    "pcie": {
        "ring": {"ll": 1, "ll128": 2.5, "simple": 5.7},
        "tree": {"ll": 1, "ll128": 1.9, "simple": 4},
        "pat": {"simple": 4},
        "p2p": {"ll": 1, "simple": 5.7},
    },
    "network": {
        "ring": {"ll": 2.7, "ll128": 4, "simple": 14},
        "tree": {"ll": 5, "ll128": 8.5, "simple": 14},
        "nvls": {"simple": 18},
        "pat": {"simple": 14},
        "p2p": {"ll": 2.7, "simple": 14},
    },
}
"""``hwLatencies`` of src/graph/tuning.cc, NCCL 2.30.7.  Messages from peer to peer, which it does
not list, have those of a ring; PAT, charged 4 us a round and 2.8 us a rank, has the hop."""
_RCCL: Mapping[str, Hops] = {
    "inside": {
        "ring": {"ll": 0.8, "simple": 2.1},
        "tree": {"ll": 0.9, "simple": 2.3},
        "p2p": {"ll": 0.8, "simple": 2.1},
    },
    "pcie": {
        "ring": {"ll": 2.2, "simple": 5.7},
        "tree": {"ll": 2.2, "simple": 5.7},
        "p2p": {"ll": 2.2, "simple": 5.7},
    },
    "network": {
        "ring": {"ll": 9.5, "simple": 14},
        "tree": {"ll": 10.5, "simple": 25},
        "p2p": {"ll": 9.5, "simple": 14},
    },
}
"""``tuning_model_5`` of RCCL's src/graph/tuning.cc; Simple rings across nodes as NCCL has them, as
its 320 us keep such rings away from small sizes."""
_OWN = {"nccl": _NCCL, "rccl": _RCCL}


def own_hops(group: str) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Every step by place, family and protocol of NCCL (``nccl``) or RCCL (``rccl``)."""
    for place, families in _OWN[group].items():
        for family, protocols in families.items():
            for protocol, micro in protocols.items():
                yield (place, family, protocol), micro * US
