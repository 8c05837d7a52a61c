"""Bounds on steps and on rounds a chunk, each with a certificate.

``steps`` bounds the steps; ``rate`` the rounds a chunk: ``crossings`` names sets of ranks that
chunks must cross, ``min_cuts`` seeks more by ``max_flow``; ``question`` asks for prices, ``exact``
makes fractions of them that prove it.
"""
