"""Maps of a fabric onto itself, or onto its reverse: checked, and searched for.

``symmetry`` is the value and its check, ``colours`` tells ranks and edges apart, ``search`` finds
maps, ``generators`` those of the whole group; ``named`` are those that somebody names.
"""
