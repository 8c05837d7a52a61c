"""`p2smt synthesize`: its options, and the files that it writes."""
