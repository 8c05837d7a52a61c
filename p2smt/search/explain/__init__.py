"""What an answer rests on: where another one wins, and what holds whatever the numbers are.

``numbers``: what can change; ``linear``: what steps cost as a number changes; ``breakpoint``: where
another answer is cheaper first; ``always``: what needs no number; ``explain``: all of it, and
solving again on both sides.
"""
