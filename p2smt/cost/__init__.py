"""Time of steps, programs and requests on a cluster, and proved bounds.

In reading order: ``loads`` (who shares which link), ``algorithms`` (what each sends), ``step_time``
(a step's time by its payload), ``alpha_beta`` (the textbook's), ``library`` (what communication
libraries run, and its price), ``pipeline`` (chunks), ``scene`` (whole requests on a placement),
``rank_list`` (on ranks in any order), ``bounds``, ``regime`` (what decides a time).
"""
