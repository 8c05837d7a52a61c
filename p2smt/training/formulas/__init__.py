"""What strategies compute, hold and send, as one table of formulas."""
