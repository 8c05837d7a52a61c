"""Throughput-optimal forests."""
