"""Nodes by name, under switches that need not be full: ``hosts`` (what they are), ``hostlist``
(their names as text), ``file_model`` (their keys in a file), ``allocation`` (those that a job
got), ``trim`` (a part of each node)."""
