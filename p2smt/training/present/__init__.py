"""The training that somebody runs now, beside the best one.

``launch_order`` (how a launcher numbers ranks), ``priced`` (what a run takes as it is launched),
``changes`` (one field changed), and ``comparison``, which has the same strategy in its best order,
and all of them side by side.
"""
