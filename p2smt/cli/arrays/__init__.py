"""`p2smt redistribute` and what it shares with other commands."""
