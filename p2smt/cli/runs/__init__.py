"""`p2smt run`: the command, and what its options mean."""
