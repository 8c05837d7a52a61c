"""Certificates of bounds on schedules, and their check: the standard library alone.

``certificate`` is the value and its file, ``plain`` reads plain data strictly; ``check`` derives
the bound again: ``demand`` says what a collective must bring where, ``symmetry`` verifies
generators, ``duality`` adds up the prices, ``ways`` measures the cheapest ways.  Nothing here knows
how a bound was found.
"""
