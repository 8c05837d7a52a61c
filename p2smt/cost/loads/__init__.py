"""Who shares which link: what the messages of all groups of a step put on ports and links.

In reading order: ``level_use`` (the types), ``routing`` (messages between siblings), ``rings`` and
``trees`` (what these algorithms send where), ``footprint`` (groups of a matrix, in closed form),
``footprint_explicit`` (any groups, device by device).
"""
