"""Shapes of what `estimate` and `plan` print with ``--json``."""
