"""Topology files that tests read and change."""

from __future__ import annotations

GOOD = """\
name: small
levels:
  - name: node
    size: 2
    link: {kind: switch, ports: 4, bandwidth: 100 Gb/s, latency: 14 us}
  - name: gpu
    size: 8
    link:
      kind: switch
      device_bandwidth: 200 GB/s
      in_switch_reduction: {min_members: 5}
      measured:
        all-reduce: [{name: a, latency: 9 us, bandwidth: 90 GB/s}]
      protocols:
        - {name: simple, latency: 3.4 us, bandwidth: 300 GB/s}
        - {name: ll, latency: 600 ns, bandwidth: 87.7 GB/s}
"""

LIBRARY = """\
library: gloo
overrides:
  broadcast: binomial
  reduce: scatter-gather
"""
