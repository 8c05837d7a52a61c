"""The exact search: the cheapest path through all states of a frame, of any length, proved.

In reading order: ``table`` (all states, numbered), ``symmetry`` (digits that nothing tells apart),
``moves`` (where collectives and slices lead), ``sends`` (where permutes lead, and their prices),
``graph`` (the steps from a state under a memory cap), ``relaxed`` (a bound from the states up to
symmetry), ``astar`` (the search), ``best`` (its entry) and ``least`` (the least cap that some plan
meets).
"""
