"""Synthesis of collective schedules on a fabric, with proofs.

``synthesize`` answers one size, ``frontier`` all of them; ``bounds`` (by ``min_cuts``) say what no
schedule can beat, and ``certificate`` proves it.  ``symmetry_search`` asks the solver, group by
group (``group_order``, ``subgroups``); ``seeds`` (with ``classics_in_steps``) are what needs no
solver; ``schedule_replay`` checks what it finds, ``lowering`` makes
thread blocks of it.
"""
