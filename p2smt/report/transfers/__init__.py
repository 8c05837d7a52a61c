"""A transfer, told.

``output``: the shape of ``--json``; ``data``: what fills it; ``screens``: what a person reads.
"""
