"""Programs and plans on ranks: moves, checks and times; the reference executor."""
