"""Schedules on the command line: `p2smt convert`, `p2smt classics`, and the options they share."""
