"""What `p2smt verify` says of the journal of a search."""
