"""What communication libraries choose, and what that costs; libraries as values:
:mod:`p2smt.cluster.library`.

In reading order: ``estimate`` (the times of a rule of choice), ``choice`` (the rule applied to
groups), ``rules`` (what an algorithm loads), ``ways`` (prices), ``suits`` (whether a library can
run on a topology as asked).
"""
