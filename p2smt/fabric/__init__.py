"""Fabrics: which rank can send to which, and what they share on the way.

``fabric`` is the value, ``wiring`` how links, switches and network cards become one,
``fabric_file`` reads them, and ``symmetries`` finds and checks the maps of a fabric onto itself, or
onto its reverse.
"""
