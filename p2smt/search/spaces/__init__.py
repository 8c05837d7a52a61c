"""Spaces of matrices, cut into subproblems by their rows: all placements, and the best ones.

``rows`` cuts, ``placements`` lists, ``solve`` optimises, and makes the same answer of a search in
parts as of one in one piece.
"""
