"""Strategies on their placements as a space: cubes are sizes of the axes, then rows of the matrix.

``space`` is the space, ``shelf`` what its cubes share in a process, ``closing`` closes a cube by
the branch and bound of ``p2smt.workload.search.branch``, ``wide`` makes the ordinary answer of all.
"""
