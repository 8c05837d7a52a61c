"""Who shares which link: what the messages of all groups of a step put on ports and links.

In reading order: ``level_use`` (the types, and messages between siblings), ``rings`` (what rings
and trees send where, and which uplinks are crossed, how often), ``footprint`` (groups of a matrix,
in closed form), ``footprint_explicit`` (any groups, device by device).
"""
