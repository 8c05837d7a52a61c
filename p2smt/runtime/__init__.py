"""Runs programs and plans on real ranks, checks their results and times them."""
