"""The shape of every ``--json`` output, a file for each command; ``catalogue`` lists them all.

They are what tools may rely on, and are held against what the commands print.
"""
