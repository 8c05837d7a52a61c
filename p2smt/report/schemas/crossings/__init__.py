"""Outputs that hold for every hardware: symbolic costs, crossings, least sufficient sets."""
