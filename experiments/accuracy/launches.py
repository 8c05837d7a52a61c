"""Tables for which one process drives all GPUs of a node, and what that costs a call.

The cost model's calls are those of one process for each GPU, as programs train.  One process
launches on its GPUs in turn, and the last one starts so much later: nccl-tests with ``-g 8``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from experiments.tables.tables import Published
from p2smt.cluster.topology import Topology

LAUNCH = "launch"
"""The constant: seconds from one launch of a process to its next."""
ONE_PROCESS = "one process drives all"
"""What the note of such a table says."""


def launched(topology: Topology, table: Published, constants: Mapping[str, float]) -> Topology:
    """The topology, its calls as long as they are where one process drives all GPUs of a node."""
    if ONE_PROCESS not in table.note:
        return topology
    later = (table.ranks // table.nodes - 1) * constants[LAUNCH]
    call_s = topology.known_library.call_s(table.collective)
    return replace(topology, calls=((table.collective, call_s + later),))
