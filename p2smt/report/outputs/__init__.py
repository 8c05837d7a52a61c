"""What every command prints with ``--json``, a file for each command; ``catalogue`` lists them.

Commands print these very classes, and `p2smt schema` describes them.
"""
