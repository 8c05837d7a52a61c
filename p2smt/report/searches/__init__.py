"""Searches over cubes, shown: who worked when, and what time was lost."""
