"""Fits what a library makes of nominal links: efficiencies, hops and the cost of a call."""
