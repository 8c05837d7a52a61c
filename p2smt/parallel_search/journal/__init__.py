"""Journals of searches: written line by line, continued, and verified."""
