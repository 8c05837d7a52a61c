"""What an answer rests on: where another one wins, and what holds whatever the numbers are.

``numbers``: what can change; ``tables``: the programs of a request as arrays; ``linear`` and
``sampled``: what steps cost as a number changes, exactly or at some factors; ``crossing``: where
another answer is cheaper first; ``both_sides``: solving again there; ``always``: what needs no
number; ``explain``: all of it.
"""
