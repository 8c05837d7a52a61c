"""What a program costs before any number is known: rationals times latencies and bandwidths.

:mod:`form` has the costs, :mod:`steps` reads them off the rules of the numeric model,
:mod:`exact` says why floats of those are rationals.
"""
