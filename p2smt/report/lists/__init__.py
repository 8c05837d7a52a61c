"""Lists of placements and of programs."""
