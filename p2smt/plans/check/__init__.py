"""What is held against a plan: ``plan`` (all of it, in order), ``steps`` (groups and meaning),
``numbers`` (times, bounds, memory) and ``restrictions``."""
