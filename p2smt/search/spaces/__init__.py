"""Spaces of matrices, cut into subproblems by their rows: all placements, and the best ones.

``matrix_subproblems`` cuts, ``placement_space`` lists, ``solve_space`` optimises, and makes the
same answer of a search in parts as of one in one piece.
"""
