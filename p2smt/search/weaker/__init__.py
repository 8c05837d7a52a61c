"""Answers without a proof, for where the search has none in time or is refused.

``starts``: matrices known beforehand; ``single``: what they cost with one collective a request;
``descent``: better ones near them; ``merged``: programs over fewer levels than a request has;
``nests``: the best of those programs that scatter, join and gather; ``sufficient_first``: programs
known beforehand.
"""
