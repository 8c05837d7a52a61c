"""Runs programs, plans and schedules on real ranks, checks their results and times them.

``job`` and ``work`` are what is run, ``payload`` how, and data whose results are known, ``summary``
what comes of it.  ``ranks`` starts processes; ``programs``, ``schedules`` and ``arrays`` are what
each rank does; ``numpy_reference`` does it in one process; ``process_groups`` is where a rank
stands, ``unwritten`` what memory holds before anything is written.
"""
