"""Outputs on journals of searches."""
