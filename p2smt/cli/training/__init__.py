"""Training on the command line: `p2smt plan`, `p2smt estimate`, and the options they share."""
