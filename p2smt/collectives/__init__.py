"""Collectives, and what is asked of groups.

``names``: the collectives in every vocabulary.  ``demand``: start and goal of a request, for groups
of any size.  ``contract``: start and goal of a schedule, chunk by chunk, and what a request gives
in all of its groups.
"""
