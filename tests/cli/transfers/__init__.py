"""Tests of `p2smt transfer`, and of `verify` on its plans."""
