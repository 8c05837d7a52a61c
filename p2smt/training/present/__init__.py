"""The training that somebody runs now, beside the best one.

``launch_order`` (how a launcher numbers ranks), ``priced`` (what a run takes as it is launched),
``best_order`` (the same strategy in its best order), ``changes`` (one field changed), and
``comparison``, which has them side by side.
"""
