"""Topologies as tables, and as data where they were imported."""
