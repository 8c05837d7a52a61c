"""Frozen questions, one file each: plain data, the same for every solver."""
