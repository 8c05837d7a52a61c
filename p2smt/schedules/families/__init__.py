"""Schedules for many sizes at once: each size up to a bound, or all by induction."""
