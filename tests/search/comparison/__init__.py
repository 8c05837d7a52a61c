"""Rank orders side by side."""
