"""What is held against a plan: ``check_plan`` (groups, meaning, times, bounds, memory, in order)
and ``check_restrictions``."""
