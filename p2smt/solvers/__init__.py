"""The one door to the solvers: ``ask`` a problem a question, of a solver.

Only here are encodings imported: one table says which folder has a problem's.
"""
