"""Schemas of what `synthesize` prints."""
