"""What is held against a plan: ``plan`` (groups, meaning, times, bounds, memory, in order) and
``restrictions``."""
