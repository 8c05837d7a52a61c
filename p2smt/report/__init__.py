"""Tables for people, and the data of ``--json``."""
