"""Nodes by name, under switches that need not be full: ``hosts`` (what they are), ``hostlist``
(their names as text), ``host_file`` (files of these), ``file_model`` (their keys in a topology
file), ``allocation`` (those that a job got), ``trim`` (a part of each node), ``blocking`` (whether
uplinks can be the bottleneck).
"""
