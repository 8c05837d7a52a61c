"""Fabrics: which rank can send to which, and what they share on the way.

``fabric`` is the value, ``wiring`` how links, switches and network cards become one, ``families``
the regular ones, ``levels`` a level hierarchy as a fabric, ``file`` files and presets.
"""
