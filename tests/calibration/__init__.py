"""Tests of the encodings: solvers against each other and against brute force."""
