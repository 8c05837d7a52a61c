"""Schedules on ranks: chains of steps as messages; the reference executor."""
