"""Schedules from moves of chunks: what the classics and lowered programs are built with."""
