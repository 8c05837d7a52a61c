"""Groups of symmetries for schedules, and how they move chunks.

``table`` holds the elements of a small group, ``regular`` makes groups that leave no rank where it
is, ``subgroups`` picks those of use, ``actions`` says how a group can move copies of one thing,
``lift`` how it moves the chunks of a collective, ``ladder`` lists what to try, from the largest.
"""
