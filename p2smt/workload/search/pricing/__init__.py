"""What strategies take on placements: all matrices, the scenes that they lead to, and bounds."""
