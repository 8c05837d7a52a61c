"""Redistributions as tables, data and pictures."""
