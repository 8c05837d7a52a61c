"""Verification of journals: from a header to its space (``spaces``), how its cubes are counted
(``shares``), and both together (``verify``).
"""
