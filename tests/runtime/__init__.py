"""Tests of the executors: against the semantics, on real ranks, and where ranks fail."""
