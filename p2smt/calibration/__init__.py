"""Fits the links of a topology to measured times."""
