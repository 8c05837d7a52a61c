"""A transfer, told.

``output``: the shape of ``--json``; ``data``: what fills it; ``screens``: what a person reads;
``runs``: what ranks found; ``told``: pairs, hops and busy ports, for ``story`` and ``picture``.
"""
