"""Schedules of chunks over a fabric: questions to solvers, whose answers are replayed."""
