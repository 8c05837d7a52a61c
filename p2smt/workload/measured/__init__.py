"""Measured training runs: read, predicted, and a constant fitted to them."""
