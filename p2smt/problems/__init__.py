"""Frozen questions: plain data, the same for every solver; like ones share a file."""
