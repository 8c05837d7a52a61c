"""What communication libraries choose, and what that costs; libraries as values:
:mod:`p2smt.cluster.library`.

In reading order: ``channels`` (what a search finds for a group), ``tuner`` (which algorithm and
protocol run, as NCCL chooses), ``ways`` (what an algorithm loads, and prices).
"""
