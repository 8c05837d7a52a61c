"""Network files of ASTRA-sim's analytical backends: ``read`` to levels, ``write`` from a topology.

Facts about them (astra-sim/astra-network-analytical, common/network-parser and congestion_aware):
four lists with an entry per dimension, the innermost dimension first: ``topology`` (Ring, Switch or
FullyConnected), ``npus_count`` (2 or more), ``bandwidth`` of each link and direction in GB/s and
``latency`` in ns.  Every NPU has links of its own in every dimension: 2 on a ring, one to a switch,
one to each other NPU where they are fully connected.
"""
