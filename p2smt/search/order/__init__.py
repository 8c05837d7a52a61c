"""The order of alternatives and what is proved of it.

``ranking``: the best ones, one after the other; ``near``: all that cost nearly as little.
"""
