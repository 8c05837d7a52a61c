"""The one door to the solvers: ``ask`` a problem one of the ``questions``, of a solver.

Only here are encodings imported: one table says which folder has a problem's.
"""
