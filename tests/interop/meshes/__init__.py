"""Exports to frameworks, run by what they are for."""
