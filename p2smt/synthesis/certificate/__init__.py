"""Certificates of bounds on schedules, and a check that shares nothing with what found them."""
