"""Runs programs, plans and schedules on real ranks, checks their results and times them.

``job`` and ``work`` are what is run, ``options`` how, ``summary`` what comes of it.  ``ranks``
starts processes; ``programs`` and ``schedules`` are what each rank does, and the reference
executors; ``payload`` has data whose results are known; ``groups`` and ``site`` are where a rank
stands.
"""
