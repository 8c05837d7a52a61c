"""Spaces of matrices, cut into cubes by their rows: all placements, and the best ones.

``rows`` cuts, ``placements`` lists, ``solve`` optimises; ``wide`` runs a search over the latter and
makes the same answer of it as a search in one piece.
"""
