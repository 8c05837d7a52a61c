"""Clusters: levels, links and presets (``topology``), and their files."""
