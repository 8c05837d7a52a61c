"""Shapes of what commands print of redistributions with ``--json``."""
