"""What communication libraries choose, and what that costs; libraries as values:
:mod:`p2smt.cluster.library`.

In reading order: ``tuner`` (which algorithm and protocol run, as NCCL chooses), ``rules`` (what an
algorithm loads), ``ways`` (prices), ``suits`` (whether a library can run on a topology as asked).
"""
