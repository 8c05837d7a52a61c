"""What holds for every hardware, for people and for ``--json``."""
