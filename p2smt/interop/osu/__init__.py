"""Measured times that the OSU micro-benchmarks print."""
