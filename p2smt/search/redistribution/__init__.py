"""Finds the fastest redistribution under a memory cap, with a proof."""
