"""Collective schedules, chunk by chunk: one representation, its readers, writers and checker."""
